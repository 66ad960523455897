package boxtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/egress"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/inet"
)

const (
	helperPackage = "vogt/cmd/vogt-confine"
	vogtPackage   = "vogt/cmd/vogt"
	clientPackage = "vogt/internal/egress/boxtest/client"
)

func TestMain(m *testing.M) { os.Exit(confinetest.Main(m, helperPackage, vogtPackage, clientPackage)) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// records keeps what is recorded.
type records struct {
	mu  sync.Mutex
	all []egress.Record
}

func (r *records) Begin(egress.Record) error { return nil }

func (r *records) End(record egress.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record)
}

// has reports whether a connection is on record.
func (r *records) has(host string, protocol egress.Protocol, verdict egress.Verdict, reason egress.Reason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.all {
		if record.Host == host && record.Protocol == protocol && record.Verdict == verdict && record.Reason == reason {
			return true
		}
	}
	return false
}

func (r *records) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

func (r *records) list() []egress.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// box is a box with a way out.
type box struct {
	t         *testing.T
	request   confine.Request
	records   *records
	resolved  func() []string // the names that the proxy has resolved
	authority []byte          // of inspected hosts
}

// newBox makes one that reaches what config grants. All names that are granted lie
// on this machine.
func newBox(t *testing.T, config egress.Config) *box {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workspace := filepath.Join(home, "work")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	parse, _ := confine.Builtin("default")
	profile, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	profile.Network = plan.Proxied
	for _, p := range []string{vogtPackage, clientPackage} {
		profile.Read = append(profile.Read, confinetest.Program(t, p))
	}
	var mu sync.Mutex
	var asked []string
	b := &box{t: t, records: &records{}, resolved: func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}}
	config.Audit = b.records
	config.Own = func() ([]netip.Addr, error) { return nil, nil }
	config.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, name)
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	proxy, err := egress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	b.authority = proxy.Authority()
	b.request = confine.Request{
		Profile: profile, Workspace: workspace, Home: home, State: filepath.Join(home, "state"),
		Environ: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
		Serve:   map[int]func(net.Listener){confine.ProxyPort: func(l net.Listener) { _ = proxy.Serve(context.Background(), l) }},
		Direct: &confine.Direct{
			Network: egress.Synthetic(), Ports: proxy.DirectPorts(),
			Serve: func(l net.Listener) { _ = proxy.ServeDirect(context.Background(), l) },
			Names: func(c net.PacketConn) { _ = proxy.ServeNames(context.Background(), c) },
		},
	}
	return b
}

// run runs a text of sh in the box, and returns what it prints and its exit code.
func (b *box) run(text string) (string, int) {
	b.t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	printed := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(r)
		printed <- string(data)
	}()
	request := b.request
	request.Program, request.Argv = "/bin/sh", []string{"sh", "-c", text}
	out, err := confine.Run(confinetest.Program(b.t, helperPackage), request, confine.Streams{In: in, Out: w, Err: w})
	w.Close()
	output := <-printed
	if err != nil {
		b.t.Fatalf("%v\n%s", err, output)
	}
	return output, out.Code
}

// need skips a test whose program this machine lacks.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// unset takes away what tells programs of the proxy.
const unset = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY NODE_USE_ENV_PROXY\n"

// theSecret is what the box must not have.
const theSecret = "Bearer t0p-secret"

// newSite makes a web server that says which host it was asked for, at a port for TLS and
// one without.
func newSite(t *testing.T, names ...string) (plain, secure uint16, certificate []byte) {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := "hello"
		if r.Header.Get("Authorization") == theSecret {
			said = "welcome"
		}
		fmt.Fprintf(w, "%s %s\n", said, r.Host)
	})
	p := httptest.NewServer(handler)
	t.Cleanup(p.Close)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "boxtest"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // what is cut is meant to be
	s.StartTLS()
	t.Cleanup(s.Close)
	return portOf(p.Listener), portOf(s.Listener), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// toSites dials the ports of a site in the place of those that clients name.
func toSites(plain, secure uint16) func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		switch to.Port() {
		case 80:
			to = netip.AddrPortFrom(to.Addr(), plain)
		case 443, 8443:
			to = netip.AddrPortFrom(to.Addr(), secure)
		}
		return inet.SystemDial(ctx, to)
	}
}

// Programs that know of no proxy reach what is granted, and nothing else.
func TestDirect(t *testing.T) {
	need(t, "curl", "python3")
	plain, secure, certificate := newSite(t, "granted.test", "other.test")
	b := newBox(t, egress.Config{
		Policy: egress.Policy{Rules: []egress.Rule{
			{Host: "granted.test", Within: loopback}, {Host: "port.test", Ports: []uint16{8443}, Within: loopback},
			{Host: "denied.test", Deny: true},
		}},
		Dial: toSites(plain, secure),
	})
	if err := os.WriteFile(filepath.Join(b.request.Workspace, "ca.pem"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	client := confinetest.Program(t, clientPackage)
	python := func(address string) string {
		return fmt.Sprintf("/usr/bin/python3 -c 'import ssl,urllib.request as u; print(u.urlopen(\"%s\", context=ssl.create_default_context(cafile=\"ca.pem\")).read().decode())'", address)
	}
	for _, tt := range []struct {
		name, text string
		want       string // in the output
		code       int
		host       string // on record
		verdict    egress.Verdict
		reason     egress.Reason
		protocol   egress.Protocol
	}{
		{"curl", "curl -sS --noproxy '*' http://granted.test/", "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"curl, TLS", "curl -sS --noproxy '*' --cacert ca.pem https://granted.test/", "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"Go", client + " ca.pem http://granted.test/", "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"Go, TLS", client + " ca.pem https://granted.test/", "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"Python", python("http://granted.test/"), "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"Python, TLS", python("https://granted.test/"), "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.Direct},
		{"curl with the proxy", "https_proxy=http://127.0.0.1:3128 curl -sS --cacert ca.pem https://granted.test/", "hello granted.test", 0, "granted.test", egress.Allowed, egress.NoReason, egress.HTTPConnect},

		{"a name that is not granted", "curl -sS --noproxy '*' https://other.test/", "Could not resolve", 6, "other.test", egress.Refused, egress.NotGranted, egress.Name},
		{"a name that is denied", client + " ca.pem https://denied.test/", "no such host", 1, "denied.test", egress.Refused, egress.DeniedByRule, egress.Name},
		{"a name below", "curl -sS --noproxy '*' https://c2VjcmV0.granted.test/", "Could not resolve", 6, "c2vjcmv0.granted.test", egress.Refused, egress.NotGranted, egress.Name},
		{"a port that is not granted", "curl -sS --noproxy '*' http://port.test/", "not-granted", 0, "port.test", egress.Refused, egress.NotGranted, egress.Direct},
		{"a port that is another's", "curl -sSk --noproxy '*' https://granted.test:8443/", "alert", 35, "granted.test", egress.Refused, egress.NotGranted, egress.Direct},
		{"a port that nobody has", "curl -sS --noproxy '*' http://granted.test:81/", "connect", 7, "", egress.Refused, egress.NoReason, egress.NoProtocol},
		{"another name in TLS", "curl -sSk --noproxy '*' --connect-to other.test:443:granted.test:443 https://other.test/", "SSL", 35, "granted.test", egress.Refused, egress.OtherServerName, egress.Direct},
		{"another name in Host", "curl -sS --noproxy '*' -H 'Host: other.test' http://granted.test/", "request", 0, "granted.test", egress.Refused, egress.BadRequest, egress.Direct},
		{"a proxy's request", "printf 'GET http://other.test/ HTTP/1.1\\r\\nHost: granted.test\\r\\n\\r\\n' | curl -sS --noproxy '*' --max-time 20 telnet://granted.test:80", "request", 0, "granted.test", egress.Refused, egress.BadRequest, egress.Direct},
		{"a raw address", "curl -sS --noproxy '*' --max-time 20 https://1.1.1.1/", "connect", 7, "", egress.Refused, egress.NoReason, egress.NoProtocol},
		{"a raw address with the name", "curl -sSk --noproxy '*' --max-time 20 --resolve granted.test:443:127.0.0.1 https://granted.test/", "SSL", 35, "", egress.Refused, egress.NoName, egress.Direct},
		{"an address that stands for nothing", "curl -sSk --noproxy '*' https://198.18.9.9/", "SSL", 35, "", egress.Refused, egress.NoName, egress.Direct},
		{"an address that was guessed", "curl -sSk --noproxy '*' https://198.18.0.2/", "curl:", 35, "granted.test", egress.Refused, egress.NoServerName, egress.Direct},
		{"HTTP/3", "printf x > /dev/udp/198.18.0.2/443 2>&1 || /usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((\"198.18.0.2\", 443)); s.send(b\"x\"); s.settimeout(20); s.recv(1)'", "refused", 1, "", egress.Refused, egress.NoReason, egress.NoProtocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.records.all = nil
			output, code := b.run(unset + tt.text)
			if code != tt.code || !strings.Contains(output, tt.want) {
				t.Errorf("exit code %d: %q; want %d, %q", code, output, tt.code, tt.want)
			}
			if tt.protocol != egress.NoProtocol && !b.records.has(tt.host, tt.protocol, tt.verdict, tt.reason) {
				t.Errorf("recorded is %+v", b.records.all)
			}
		})
	}
	for _, name := range b.resolved() {
		if name != "granted.test" {
			t.Errorf("%s was resolved", name)
		}
	}
}

// A question for a name carries nothing out: not as a name, not in another form, and
// not to another resolver.
func TestNamesCarryNothing(t *testing.T) {
	need(t, "python3")
	b := newBox(t, egress.Config{Policy: egress.Policy{
		Rules: []egress.Rule{{Host: "*.granted.test", Within: nil}}, HostKind: func(string) string { return "" },
	}})
	// Each line says what came of it.
	const script = `
import socket, struct
def ask(server, name, kind=1, extra=b""):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in name.split(b".")) + b"\0" + struct.pack(">HH", kind, 1) + extra
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    try:
        s.connect((server, 53)); s.send(q); a = s.recv(4096)
        print(name.decode("latin1")[:20], kind, "code", a[3] & 15, "answers", struct.unpack(">H", a[6:8])[0], "length", len(a) <= len(q) + 16)
    except OSError as e:
        print(name.decode("latin1")[:20], kind, type(e).__name__, e.errno)
ask("127.0.0.1", b"secret.data.granted.test")
ask("127.0.0.1", b"secret.data.granted.test", 16)
ask("127.0.0.1", b"secret.data.granted.test", 10)
ask("127.0.0.1", b"secret.data.granted.test", 65)
ask("127.0.0.1", b"secret.other.test")
ask("127.0.0.1", b"secret.other.test", 16, b"x" * 500)
ask("127.0.0.1", b"secret\0x.granted.test")
ask("8.8.8.8", b"secret.granted.test")
ask("198.18.0.1", b"secret.granted.test")
for port in (53, 853):
    s = socket.socket()
    try:
        s.connect(("127.0.0.1", port)); print("connected", port)
    except OSError as e:
        print("tcp", port, e.errno)
`
	if err := os.WriteFile(filepath.Join(b.request.Workspace, "ask.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	output, _ := b.run("/usr/bin/python3 ask.py")
	const want = `secret.data.granted. 1 code 0 answers 1 length True
secret.data.granted. 16 code 0 answers 0 length True
secret.data.granted. 10 code 0 answers 0 length True
secret.data.granted. 65 code 0 answers 0 length True
secret.other.test 1 code 3 answers 0 length True
secret.other.test 16 code 3 answers 0 length True
` + "secret\x00x.granted.tes 1 code 3 answers 0 length True" + `
secret.granted.test 1 OSError 101
secret.granted.test 1 ConnectionRefusedError 111
tcp 53 111
tcp 853 111
`
	if output != want {
		t.Errorf("got\n%s\nwant\n%s", output, want)
	}
	if got := b.resolved(); len(got) > 0 {
		t.Errorf("resolved were %q", got)
	}
}

// ssh goes by the proxy, to the host that is granted and to no other.
func TestSSH(t *testing.T) {
	need(t, "ssh", "ssh-keygen", "git")
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("sshd is not installed (Debian: apt-get install openssh-server)")
	}
	dir := t.TempDir()
	port := startSSHD(t, sshd, dir)
	b := newBox(t, egress.Config{Policy: egress.Policy{Rules: []egress.Rule{
		{Host: "git.test", Ports: []uint16{port}, Within: loopback, Carry: egress.CarrySSH, Upload: 1 << 20},
	}}})
	b.request.Profile.Sockets = plan.OwnSockets
	data, err := os.ReadFile(filepath.Join(dir, "user"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.request.Workspace, "key"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	const options = " -F none -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
	proxy := fmt.Sprintf("-o 'ProxyCommand=%s proxy connect %%h %%p' -p %d ", confinetest.Program(t, vogtPackage), port)
	for _, tt := range []struct {
		name, text string
		want       string
		code       int
	}{
		{"a command", "ssh" + options + proxy + "git.test 'echo from there; exit 3'", "from there\n", 3},
		{"by SOCKS", "https_proxy= HTTPS_PROXY= ssh" + options + proxy + "git.test 'echo from there'", "from there\n", 0},
		{"both directions", "head -c 300000 /dev/zero | ssh" + options + proxy + "git.test 'wc -c; head -c 5 /dev/zero | wc -c'", "300000\n5\n", 0},
		{"directly", fmt.Sprintf("ssh"+options+"-p %d git.test 'echo from there'", port), "from there\n", 0},
		{"another host", "ssh" + options + proxy + "other.test true", "other.test:" + fmt.Sprint(port) + " is not reached: 403 Forbidden: no rule grants", 255},
		{"something else than SSH", fmt.Sprintf("printf 'GET / HTTP/1.1\\r\\n\\r\\n' | %s proxy connect git.test %d", confinetest.Program(t, vogtPackage), port), "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.records.forget()
			output, code := b.run(tt.text)
			if code != tt.code || !strings.Contains(output, tt.want) {
				t.Errorf("exit code %d: %q; want %d, %q", code, output, tt.code, tt.want)
			}
			if tt.name != "something else than SSH" {
				return
			}
			refused := func() bool {
				// The box may end before the proxy has looked at what came.
				return b.records.has("git.test", egress.HTTPConnect, egress.Refused, egress.NoSSH) ||
					b.records.has("git.test", egress.HTTPConnect, egress.Refused, egress.ShuttingDown)
			}
			for deadline := time.After(20 * time.Second); !refused(); {
				select {
				case <-time.After(time.Millisecond):
				case <-deadline:
					t.Fatalf("recorded is %+v", b.records.list())
				}
			}
		})
	}
}

// startSSHD runs a server for this user and a key, and returns its port.
func startSSHD(t *testing.T, sshd, dir string) uint16 {
	t.Helper()
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nLogLevel ERROR\n",
		filepath.Join(dir, "host"), filepath.Join(dir, "user.pub"))
	file := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// A process for each connection, as from inetd(8): none is left at the end.
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f, err := conn.(*net.TCPConn).File()
			conn.Close()
			if err != nil {
				return
			}
			cmd := exec.Command(sshd, "-i", "-e", "-f", file)
			var said strings.Builder
			cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &said
			err = cmd.Start()
			f.Close()
			if err != nil {
				t.Errorf("sshd: %v", err)
				return
			}
			work.Go(func() {
				if err := cmd.Wait(); err != nil && said.Len() > 0 {
					if _, ended := errors.AsType[*exec.ExitError](err); !ended {
						t.Errorf("sshd: %v: %s", err, said.String())
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	return portOf(l)
}

// Programs reach an inspected host with a secret that the box does not have, whether
// they know of the proxy or not.
func TestInspect(t *testing.T) {
	need(t, "curl", "python3")
	plain, secure, certificate := newSite(t, "api.test", "plain.test")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	b := newBox(t, egress.Config{
		Policy: egress.Policy{Rules: []egress.Rule{
			{Host: "api.test", Within: loopback, Inspect: &egress.Inspect{
				Requests: []egress.Permitted{{Methods: []string{"GET"}, Path: "/v1/"}},
				Set:      []egress.Field{{Name: "Authorization", Value: egress.NewSecret(theSecret)}},
			}},
			{Host: "plain.test", Within: loopback},
		}},
		Dial: toSites(plain, secure), Roots: roots,
	})
	b.request.Trust = append(b.authority, certificate...) // as those of the system are there too
	b.request.Variables = egress.TrustVariables(plan.TrustPath)
	client := confinetest.Program(t, clientPackage) + " " + plan.TrustPath
	const python = "/usr/bin/python3 -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "
	for _, tt := range []struct {
		name, text, want string
		code             int
	}{
		{"curl", "curl -sS https://api.test/v1/x", "welcome api.test", 0},
		{"Python", python + "https://api.test/v1/x", "welcome api.test", 0},
		{"curl without the proxy", unset + "curl -sS https://api.test/v1/x", "welcome api.test", 0},
		{"Python without the proxy", unset + python + "https://api.test/v1/x", "welcome api.test", 0},
		{"Go without the proxy", client + " https://api.test/v1/x", "welcome api.test", 0},
		{"node", "command -v node >/dev/null || { echo welcome api.test; exit; }; node -e 'require(\"https\").get(\"https://api.test/v1/x\", r => r.on(\"data\", d => console.log(String(d))))'", "welcome api.test", 0},
		{"another host has its own certificate", "curl -sS https://plain.test/v1/x", "hello plain.test", 0},
		{"and gets no secret", unset + client + " https://plain.test/v1/x", "hello plain.test", 0},
		{"what is not permitted", "curl -sS -X POST -d x https://api.test/v1/x", "request-not-permitted", 0},
		{"and without the proxy", unset + "curl -sS https://api.test/v2/x", "request-not-permitted", 0},
		{"plain HTTP", unset + "curl -sS http://api.test/v1/x", "not-inspected", 0},
		{"a client that trusts nobody", "SSL_CERT_FILE= curl -sS --cacert /dev/null https://api.test/v1/x", "curl: (", 77},
		{"the secret", "cat /proc/*/environ /proc/*/cmdline /run/vogt/* | tr '\\0' '\\n' | grep -a t[0]p-s || echo nowhere", "nowhere\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			output, code := b.run(tt.text)
			if code != tt.code || !strings.Contains(output, tt.want) || strings.Contains(output, "t0p-secret") {
				t.Errorf("exit code %d: %q; want %d, %q", code, output, tt.code, tt.want)
			}
		})
	}
}

// A person is asked about a host that no rule names, while the connection of a program
// that knows of no proxy is held.
func TestDirectAsks(t *testing.T) {
	need(t, "curl")
	plain, secure, certificate := newSite(t, "asked.test")
	b := newBox(t, egress.Config{
		Dial: toSites(plain, secure),
		Ask: func(_ context.Context, q egress.Question) egress.Answer {
			if q.Host == "asked.test" {
				return egress.Answer{Decision: egress.Permit, Within: loopback}
			}
			return egress.Answer{Decision: egress.Deny}
		},
	})
	if err := os.WriteFile(filepath.Join(b.request.Workspace, "ca.pem"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"curl -sS --cacert ca.pem https://asked.test/": "hello asked.test",
		"curl -sS http://asked.test/":                  "hello asked.test",
		"curl -sS https://denied.test/":                "alert access denied",
		"curl -sS http://denied.test/":                 `"reason":"denied"`,
		"curl -sS http://printer.local/":               "Could not resolve",
	} {
		if output, _ := b.run(unset + text); !strings.Contains(output, want) {
			t.Errorf("%s: %q, want %q", text, output, want)
		}
	}
}
