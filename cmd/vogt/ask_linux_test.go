package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/egress"
	"vogt/internal/grant"
)

// cleanup lets a test end what startVogtd starts.
type cleanup struct{ t *testing.T }

func (c cleanup) Defer(f func()) { c.t.Cleanup(f) }

// hostAsking is an owner with an agent, a real authority, and a server that every name
// leads to.
type hostAsking struct {
	*user
	key     string
	work    string
	server  *httptest.Server
	askTime time.Duration
}

func newHostAsking(t *testing.T) *hostAsking {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed (Debian: apt-get install curl)")
	}
	a := &hostAsking{user: newUser(t)}
	key, public := a.user.key("owner-key")
	a.key = key
	issuer, err := startVogtd(cleanup{t}, program(t, "vogtd"), public)
	if err != nil {
		t.Fatal(err)
	}
	a.must("login", ownerEmail, "--idp", issuer, "--key", key)
	a.must("agent", "add", "bot")
	a.work = filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(a.work, 0o700); err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "reached %s", r.Host)
	}))
	t.Cleanup(a.server.Close)
	return a
}

// reach leads every name to the server, by way of an address that looks public.
func (a *hostAsking) reach(c *egress.Config) {
	c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	c.Own = func() ([]netip.Addr, error) { return nil, nil }
	c.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", a.server.Listener.Addr().String())
	}
	if a.askTime != 0 {
		c.Policy.Limits.AskTime = a.askTime
	}
}

// start starts a text of bash in a box of the agent.
func (a *hostAsking) start(text string, flags ...string) (end func() result) {
	a.t.Helper()
	file := func(name string) *os.File {
		f, err := os.CreateTemp(a.t.TempDir(), name)
		if err != nil {
			a.t.Fatal(err)
		}
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		a.t.Fatal(err)
	}
	out, errs := file("stdout"), file("stderr")
	args := append([]string{"agent", "start", "bot", "--workspace", a.work}, flags...)
	args = append(args, "--", "bash", "-c", text)
	done := make(chan int, 1)
	var once sync.Once
	var r result
	go func() {
		done <- Run(a.ctx, args, &env{
			stdin: null, stdout: out, stderr: errs, now: time.Now, helper: program(a.t, "vogt-confine"), reach: a.reach,
			environ: []string{"HOME=" + a.home, "VOGT_HOME=" + a.home, "PATH=" + os.Getenv("PATH")},
		})
	}()
	end = func() result {
		once.Do(func() {
			r.code = <-done
			for _, f := range []struct {
				file *os.File
				to   *string
			}{{out, &r.stdout}, {errs, &r.stderr}} {
				text, err := os.ReadFile(f.file.Name())
				if err != nil {
					a.t.Error(err)
				}
				*f.to = string(text)
			}
			null.Close()
			out.Close()
			errs.Close()
		})
		return r
	}
	a.t.Cleanup(func() {
		a.vogt("agent", "kill", "bot")
		end()
	})
	return end
}

// cards waits until so many cards wait for the owner.
func (a *hostAsking) cards(n int) (all []api.Grant) {
	a.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.After(30 * time.Second)
	for {
		all = nil
		if err := json.Unmarshal([]byte(a.must("grant", "inbox", "--json").stdout), &all); err != nil {
			a.t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		select {
		case <-look.C:
		case <-limit:
			a.t.Fatalf("%d cards wait, want %d: %+v", len(all), n, all)
		}
	}
}

// expect demands the end of a box.
func (a *hostAsking) expect(what string, r result, want string) {
	a.t.Helper()
	if got := strings.TrimSpace(r.stdout); got != want {
		a.t.Errorf("%s: exit code %d\n%s\nwant\n%s\n%s", what, r.code, got, want, r.stderr)
	}
}

const (
	askOnce = `curl -s http://app.example/; echo`
	// askCode prints the status, and the reason of a refusal.
	askCode = `curl -s -o answer -w '%{http_code} ' http://app.example/; grep -o '"reason":"[^"]*"' answer`
)

func TestApproveLetsHeldConnectionsThrough(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(askOnce + ";" + askOnce)
	card := a.cards(1)[0]
	if card.Request.Connect == nil || card.Request.Connect.Host != "app.example" || card.Request.Connect.Port != 80 || len(card.Request.Command) != 0 || card.Risk != "high" || card.Requester == ownerEmail {
		t.Errorf("the card is %+v, %+v", card, card.Request)
	}
	if got := card.Request.Context.Executable; !strings.HasSuffix(got, "/curl") {
		t.Errorf("the program is %q", got)
	}
	shown := a.must("grant", "show", card.ID).stdout
	for _, want := range []string{"Connection:  connect app.example:80", "(claimed)", "Box: "} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
	if r := a.must("grant", "approve", card.ID); !strings.Contains(r.stderr, "connect app.example:80") || !strings.Contains(r.stderr, "nothing is known of it") {
		t.Errorf("it was signed without showing\n%s", r.stderr)
	}
	// Once is for what was held: the next asks again.
	next := a.cards(1)[0]
	if next.ID == card.ID {
		t.Fatal("the card was answered and waits still")
	}
	a.must("grant", "deny", next.ID)
	r := end()
	if n := strings.Count(r.stdout, "reached app.example"); n != 1 || !strings.Contains(r.stdout, "a person was asked and refused") {
		t.Errorf("%d connections were made\n%s\n%s", n, r.stdout, r.stderr)
	}
	if g := a.grantOf(card.ID); g.Status != grant.Used {
		t.Errorf("the grant is %s", g.Status)
	}
}

func (a *hostAsking) grantOf(id string) (g api.Grant) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.must("grant", "show", id, "--json").stdout), &g); err != nil {
		a.t.Fatal(err)
	}
	return g
}

func TestPermissionOfABox(t *testing.T) {
	for _, reach := range [][]string{{"--always"}, {"--for", "1h"}} {
		t.Run(reach[0], func(t *testing.T) {
			a := newHostAsking(t)
			end := a.start(askOnce + ";" + askOnce + ";" + askOnce)
			a.must(append([]string{"grant", "approve", a.cards(1)[0].ID}, reach...)...)
			a.expect("the same box", end(), strings.TrimSpace(strings.Repeat("reached app.example\n", 3)))
			// Another box asks anew, and so does another host.
			other := a.start(askCode)
			a.must("grant", "deny", a.cards(1)[0].ID)
			a.expect("another box", other(), `403 "reason":"denied"`)
		})
	}
}

// A permission that is revoked while the box runs is over.
func TestRevokedWhileTheBoxRuns(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(askOnce + `; until curl -s http://app.example/ | grep -q denied-by-rule; do touch through; done; echo over`)
	id := a.cards(1)[0].ID
	a.must("grant", "approve", id, "--always")
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		if _, err := os.Stat(filepath.Join(a.work, "through")); err == nil {
			break
		}
	}
	a.must("grant", "revoke", id)
	a.expect("revoked", end(), "reached app.example\nover")
}

func TestDenied(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(askCode + `; curl -s --socks5-hostname 127.0.0.1:3128 http://app.example/; echo "socks $?"`)
	first := a.cards(1)[0]
	a.must("grant", "deny", first.ID)
	// A tunnel is another way to the host, which was not denied.
	second := a.cards(1)[0]
	if second.ID == first.ID {
		t.Fatal("the card was answered and waits still")
	}
	a.must("grant", "deny", second.ID)
	// curl's 97 is a refusal by the proxy (SOCKS code 2).
	a.expect("denied", end(), "403 \"reason\":\"denied\"\nsocks 97")
	a.cards(0)
}

func TestNobodyAnswers(t *testing.T) {
	a := newHostAsking(t)
	a.askTime = 300 * time.Millisecond
	end := a.start(askCode)
	a.expect("unanswered", end(), `403 "reason":"unanswered"`)
	a.cards(0) // what nobody waits for is taken back
}

func TestBoxIsKilledWhileItAsks(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(askOnce)
	card := a.cards(1)[0]
	a.must("agent", "kill", "bot")
	if r := end(); r.code != 128+9 {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	a.cards(0)
	if g := a.grantOf(card.ID); g.Status != grant.Revoked {
		t.Errorf("the request is %s", g.Status)
	}
}

func TestNobodyIsAsked(t *testing.T) {
	a := newHostAsking(t)
	var text strings.Builder
	hosts := []string{"127.0.0.2", "10.0.0.1", "169.254.169.254", "router", "nas.local", "metadata.google.internal", "dns.google", "1.1.1.1"}
	for _, host := range hosts {
		fmt.Fprintf(&text, "curl -s -o /dev/null -w '%%{http_code}\\n' --noproxy '' http://%s/\n", host)
	}
	a.expect("never", a.start(text.String())(), strings.TrimSpace(strings.Repeat("403\n", len(hosts))))
	a.cards(0)
	a.expect("not at all", a.start(askCode, "--ask=false")(), `403 "reason":"not-granted"`)
	a.cards(0)
}

func TestManyConnectionsMakeOneCard(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(`for i in $(seq 20); do curl -s http://app.example/ & done | grep -o reached | wc -l`)
	a.must("grant", "approve", a.cards(1)[0].ID, "--always")
	a.expect("all", end(), "20")
	var all []api.Grant
	if err := json.Unmarshal([]byte(a.must("grant", "list", "--json").stdout), &all); err != nil || len(all) != 1 {
		t.Errorf("%d cards were made, %v", len(all), err)
	}
}

func TestManyHostsMakeFewCards(t *testing.T) {
	a := newHostAsking(t)
	end := a.start(`for i in $(seq 20); do (curl -s http://h$i.example/ > $i; echo >> ended) & done; wait; grep -l too-many-questions [0-9]* | wc -l`)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range look.C { // until all but those that wait are refused
		if st, err := os.Stat(filepath.Join(a.work, "ended")); err == nil && st.Size() == 20-openHosts {
			break
		}
	}
	for _, card := range a.cards(openHosts) {
		a.must("grant", "deny", card.ID)
	}
	a.expect("the rest", end(), "12")
}

// An authority that is away is no permission.
func TestAuthorityIsAway(t *testing.T) {
	a := newHostAsking(t)
	file := filepath.Join(a.home, "config", "agents", "bot", "auth.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close()
	go func() {
		for {
			c, err := lost.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 500 Away\r\nContent-Length: 0\r\n\r\n")
			c.Close()
		}
	}()
	data = elsewhere(t, data, lost.Addr().String())
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	a.expect("away", a.start(askCode)(), `403 "reason":"unanswered"`)
}

// elsewhere is a login at another address.
func elsewhere(t *testing.T, data []byte, address string) []byte {
	t.Helper()
	var auth map[string]any
	if err := json.Unmarshal(data, &auth); err != nil {
		t.Fatal(err)
	}
	for name, v := range auth {
		if text, ok := v.(string); ok && strings.HasPrefix(text, "http://127.0.0.1:") {
			auth[name] = "http://" + address
		}
	}
	data, err := json.Marshal(auth)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// recorded are the records of boxes' connections in the log.
func (a *hostAsking) recorded() (all []string) {
	a.t.Helper()
	for line := range strings.Lines(a.must("audit", "tail", "-n", "500", "--json").stdout) {
		if strings.Contains(line, `"type":"connections"`) {
			all = append(all, line)
		}
	}
	return all
}

func TestConnectionsReachTheLog(t *testing.T) {
	a := newHostAsking(t)
	a.expect("a box", a.start(askOnce+"; curl -s -o /dev/null http://other.example/", "--allow", "app.example:80", "--ask=false")(), "reached app.example")
	all := strings.Join(a.recorded(), "")
	for _, want := range []string{`"source":"observed"`, `"host":"app.example"`, `"verdict":"allowed"`, `"host":"other.example"`, `"reason":"not-granted"`, `"address":"93.184.216.34"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in the log:\n%s", want, all)
		}
	}
	kept, err := filepath.Glob(filepath.Join(a.home, "data", "agents", "bot", "connections", "*.json"))
	if err != nil || len(kept) != 0 {
		t.Errorf("reports are kept that were sent: %v, %v", kept, err)
	}
}

// An authority that is away stops nothing that a rule allows; what it has not heard
// it hears with the next box.
func TestConnectionsAreKeptForTheAuthority(t *testing.T) {
	a := newHostAsking(t)
	var restore []func()
	lost, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lost.Close() // nobody answers there
	for _, name := range []string{"auth.json", "agents/bot/auth.json"} {
		file := filepath.Join(a.home, "config", name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		restore = append(restore, func() {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		away := elsewhere(t, data, lost.Addr().String())
		if err := os.WriteFile(file, away, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.expect("without it", a.start(askOnce, "--allow", "app.example:80")(), "reached app.example")
	for _, f := range restore {
		f()
	}
	if all := a.recorded(); len(all) != 0 {
		t.Fatalf("the log has %q", all)
	}
	a.expect("with it", a.start("true", "--allow", "app.example:80")(), "")
	if all := strings.Join(a.recorded(), ""); strings.Count(all, `"host":"app.example"`) != 1 || !strings.Contains(all, `"source":"observed"`) {
		t.Errorf("the log has %q", all)
	}
}
