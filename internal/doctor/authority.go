package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/config"
	"vogt/internal/quickstart"
)

// tolerance is the difference of clocks that the authority's limits bear.
const tolerance = 5 * time.Second

// exam is one examination: the subject and what was seen of it first.
type exam struct {
	Subject

	client    config.Client
	read      []string // files that the settings came from
	clientErr error
	address   string // of the authority: that of the login, else that of the settings

	status     quickstart.Status // by the control socket
	controlErr error

	health    api.Health // by the network
	healthErr error
	drift     time.Duration // authority's clock minus ours

	logins []login // of this user's home, the person's first
	login  login   // the identity that acts here, or the zero value
}

// observe looks at what several checks need.
func observe(ctx context.Context, s Subject) *exam {
	x := &exam{Subject: s}
	layers, err := config.LoadLayers(config.DefaultClient(), s.Paths, "vogt", nil)
	if err == nil {
		err = layers.Value.Validate()
	}
	x.client, x.read, x.clientErr = layers.Value, layers.Files, err
	if x.client.Authority == "" {
		x.client = config.DefaultClient()
	}
	x.address = x.client.Authority
	x.logins = readLogins(s.Paths)
	for _, l := range x.logins {
		if l.name == s.Agent {
			x.login, x.address = l, l.Authority
		}
	}
	x.status, x.controlErr = quickstart.NewControl(s.Paths.Data).Status(ctx)
	began := s.Now()
	x.health, x.healthErr = fetchHealth(ctx, x.address)
	ended := s.Now()
	if x.health.Time != 0 {
		middle := began.Add(ended.Sub(began) / 2)
		x.drift = time.UnixMilli(x.health.Time).Sub(middle)
	}
	return x
}

// fetchHealth asks the authority as an unknown client would.
func fetchHealth(ctx context.Context, authority string) (api.Health, error) {
	var h api.Health
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(authority, "/")+api.PathHealth, nil)
	if err != nil {
		return h, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if !local(authority) {
		transport.Proxy = http.ProxyFromEnvironment
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address is in the sentence already
		}
		return h, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return h, fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	return h, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&h)
}

// local reports whether an address is on this machine.
func local(authority string) bool {
	_, ok := loopback(authority)
	return ok
}

// loopback returns the address to which a connection to an authority on this
// machine goes.
func loopback(authority string) (netip.AddrPort, bool) {
	u, err := url.Parse(authority)
	if err != nil {
		return netip.AddrPort{}, false
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	return a, err == nil && a.Addr().IsLoopback()
}

func (x *exam) settings(context.Context) Check {
	const name = "settings"
	if x.clientErr != nil {
		return finding(name, Failed, "correct the file", "%v", x.clientErr)
	}
	switch {
	case len(x.read) == 0:
		return inForce(name, "no vogt.toml; the authority is %s", x.address)
	case x.address != x.client.Authority:
		return finding(name, InPart, fmt.Sprintf("vogt login --idp %s, or set authority = %q in vogt.toml", x.client.Authority, x.address),
			"%s names the authority %s, but the login is at %s, which is used", strings.Join(x.read, " and "), x.client.Authority, x.address)
	}
	return inForce(name, "%s: the authority is %s", strings.Join(x.read, " and "), x.address)
}

func (x *exam) authority(context.Context) Check {
	const name = "authority"
	if x.healthErr == nil {
		return inForce(name, "it answers, version %s, epoch %d", x.health.Version, x.health.Epoch)
	}
	fix := "vogt up"
	if !local(x.address) {
		fix = "ask whoever runs it, or check the network: curl " + x.address + api.PathHealth
	}
	return finding(name, Failed, fix, "%s cannot be reached: %v. Nothing that needs an approval runs until it is back", x.address, x.healthErr)
}

// unreachable is the finding of checks that need the authority's answer.
func (x *exam) unreachable(name string) (Check, bool) {
	if x.healthErr == nil {
		return Check{}, false
	}
	return finding(name, InPart, "vogt up", "it cannot be told while the authority is not reached"), true
}

func (x *exam) owner(context.Context) Check {
	const name = "owner"
	if c, ok := x.unreachable(name); ok {
		return c
	}
	if !x.health.SetUp {
		return finding(name, NotInForce, "vogt up", "nobody owns this authority yet: whoever sets it up first does")
	}
	return inForce(name, "the authority has an owner")
}

func (x *exam) issuer(context.Context) Check {
	const name = "issuer"
	if c, ok := x.unreachable(name); ok {
		return c
	}
	if want := strings.TrimSuffix(x.address, "/"); x.health.Issuer != want {
		return finding(name, Failed, fmt.Sprintf("set authority = %q in vogt.toml if that is your authority; else find out who answers there", x.health.Issuer),
			"the authority calls itself %s and not %s, so its tokens are refused", x.health.Issuer, want)
	}
	return inForce(name, "the authority calls itself what the settings call it")
}

func (x *exam) clock(context.Context) Check {
	const name = "clock"
	if c, ok := x.unreachable(name); ok {
		return c
	}
	drift := x.drift.Round(time.Millisecond)
	if drift.Abs() > tolerance {
		return finding(name, Failed, "sudo timedatectl set-ntp true", "the authority's clock differs by %v from this machine's: limits of time come too early or too late", drift)
	}
	return inForce(name, "this clock and the authority's differ by %v", drift)
}

func (x *exam) bearer(context.Context) Check {
	const name = "bearer-decisions"
	if c, ok := x.unreachable(name); ok {
		return c
	}
	switch x.health.Bearer {
	case "none":
		return inForce(name, "a stored token permits nothing; a decision needs a page or a signature")
	case "":
		return finding(name, InPart, "", "this authority does not say whether stored tokens may decide")
	}
	return finding(name, NotInForce, "vogt down && vogt up --bearer-decisions none (and remove bearer_decisions from vogtd.toml)",
		"bearer_decisions = %q: whoever can read a person's token may approve up to that risk", x.health.Bearer)
}

// material is the part of a verifier key that does not change with the name
// of the log.
func material(key string) string {
	parts := strings.SplitN(key, "+", 3)
	return parts[len(parts)-1]
}

func (x *exam) logKey(context.Context) Check {
	const name = "log-key"
	pins := map[string]string{}
	if x.client.AuthorityKey != "" && x.address == x.client.Authority {
		pins["vogt.toml"] = x.client.AuthorityKey
	}
	if x.login.LogKey != "" {
		pins[x.login.path] = x.login.LogKey
	}
	if len(pins) == 0 {
		return finding(name, InPart, "vogt login", "the key of the audit log is not pinned here yet: the first contact would be believed")
	}
	if c, ok := x.unreachable(name); ok {
		return c
	}
	for where, key := range pins {
		if material(key) != material(x.health.LogKey) {
			return finding(name, Failed, "stop, and ask whoever runs the authority whether its data was replaced; only then remove the old key there",
				"%s pins another log key than the authority has: its data was replaced, or it is not the authority that you know", where)
		}
	}
	return inForce(name, "the key of the audit log is the pinned one")
}
