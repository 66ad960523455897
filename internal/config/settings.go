package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"vogt/internal/inet"
)

// Daemon is the configuration of vogtd, in the file vogtd.toml.
type Daemon struct {
	// Listen is the address and port of the HTTP server.
	Listen string `toml:"listen"`
	// PagesHost is the host name of the approval pages. It is the passkeys' RP
	// ID too, which cannot be an IP address (Web Authentication Level 2,
	// section 5.1.2).
	PagesHost string `toml:"pages_host"`
	// Issuer is the base URL under which clients and tokens know the authority;
	// empty for http:// and Listen.
	Issuer string `toml:"issuer"`
	// BearerDecisions is up to which risk a token alone may approve: "none",
	// "medium" or "high".
	BearerDecisions string `toml:"bearer_decisions"`
	// RequireSignature demands a passkey or key for every approval from this
	// risk up: "medium", "high", "critical", or "all"; empty for what the
	// authority demands anyway.
	RequireSignature string `toml:"require_signature"`
	// SecondApprover demands that two different persons allow what is of this risk or
	// more: "low", "medium", "high" or "critical"; empty for one always.
	SecondApprover string `toml:"second_approver"`
	// SecondApproverAgents are the addresses of agents for which two must allow
	// whatever they ask for.
	SecondApproverAgents []string `toml:"second_approver_agents"`
	// PendingTTL is how long a request waits for a person.
	PendingTTL time.Duration `toml:"pending_ttl"`
	// ApprovedTTL is how long an approved once-grant waits to be used.
	ApprovedTTL time.Duration `toml:"approved_ttl"`

	// Admins are the addresses of people who administer accounts at the pages.
	Admins []string `toml:"admins"`
	// TrustedProxies are addresses, or networks such as "10.0.0.0/8", of proxies
	// that are believed when they name the client.
	TrustedProxies []string `toml:"trusted_proxies"`
	// ProxyHeader is the one header that they name it in: "x-forwarded-for" or
	// "forwarded" (RFC 7239).
	ProxyHeader string `toml:"proxy_header"`
	// AllowedOrigins are pages of other origins that may call the interface.
	AllowedOrigins []string `toml:"allowed_origins"`

	Limits Limits `toml:"limits"`
	Rates  Rates  `toml:"rates"`
	Notify Notify `toml:"notify"`
	Mail   Mail   `toml:"mail"`
	Push   Push   `toml:"push"`
	Log    Log    `toml:"log"`
	// Clients are services at which people log in with their account here.
	Clients []OAuthClient `toml:"clients"`
	DDISA   DDISA         `toml:"ddisa"`
}

// DDISA is how the authority finds out what mail domains decided, and what services
// are that call themselves by their domain.
type DDISA struct {
	// Lookup is whether it asks: "auto" where the issuer is https, since no domain can
	// name another one; "on" or "off".
	Lookup string `toml:"lookup"`
	// Providers are resolvers that are asked by HTTPS when the machine's own fails.
	Providers []string `toml:"providers"`
	// Clients is what a service has to publish: "strict" wants metadata in its
	// standard form; "permissive" takes the older one, and answers a service that
	// publishes nothing at its own host, asking the person each time.
	Clients string `toml:"clients"`
	// Origins are scheme, host and port of services whose metadata may lie on another
	// port than 443 or in a private network.
	Origins []string `toml:"origins"`
	// Records stand in the place of what domains publish.
	Records []DDISARecord `toml:"records"`
	// Allow is what administrators of domains allow.
	Allow []DDISAAllow `toml:"allow"`
}

// DDISARecord is what a domain says, for networks without a DNS that knows.
type DDISARecord struct {
	Domain string `toml:"domain"`
	IDP    string `toml:"idp"`
	Mode   string `toml:"mode"`
}

// DDISAAllow are services that a domain's administrators allow.
type DDISAAllow struct {
	Domain  string   `toml:"domain"`
	Clients []string `toml:"clients"`
}

// OAuthClient is a public OAuth client that is known by name alone.
type OAuthClient struct {
	ID   string `toml:"id"`   // its client_id
	Name string `toml:"name"` // as people are shown it
	// RedirectURIs are where it may have answers sent, compared letter by letter.
	RedirectURIs []string `toml:"redirect_uris"`
}

// Rates are how many calls a minute are answered.
type Rates struct {
	Strict     int `toml:"strict"`     // of one address: passkeys, registration, recovery
	Strangers  int `toml:"strangers"`  // of one address: everything else without a login
	Logins     int `toml:"logins"`     // of one identity that has logged in from the address
	Management int `toml:"management"` // of one address with the management token
	Principal  int `toml:"principal"`  // of one principal
	Local      int `toml:"local"`      // how many times as much this machine's own addresses may
}

// Mail is the command that sends a letter to a person: registration links and
// recoveries. Without one there are neither.
type Mail struct {
	// Command is program and arguments, as in Notify: VOGT_OWNER is whom to write
	// to, VOGT_SUMMARY what, and VOGT_APPROVE_URL the link that belongs to it,
	// which is a secret.
	Command []string      `toml:"command"`
	Limit   time.Duration `toml:"limit"`
	// Registration opens the authority to whoever can be reached by mail.
	Registration bool `toml:"registration"`
}

// Push is how browsers are told of requests (RFC 8030).
type Push struct {
	// Hosts are the push services that are called; a name that begins with "*."
	// stands for all below it. An empty list switches push off.
	Hosts []string `toml:"hosts"`
	// Contact is how a push service reaches the operator: an https address or a
	// mail address. Empty for the pages' own address.
	Contact string `toml:"contact"`
}

// Limits bound what one agent, and all agents of one owner, may take up.
type Limits struct {
	PendingPerAgent    int `toml:"pending_per_agent"`    // requests that wait for a person
	StoredPerAgent     int `toml:"stored_per_agent"`     // bytes of waiting requests
	CreationsPerSecond int `toml:"creations_per_second"` // new requests of one agent
	WaitsPerAgent      int `toml:"waits_per_agent"`      // calls that block for an answer
	OwnerFactor        int `toml:"owner_factor"`         // an owner's agents together: so many times the above
}

// Notify is the command that announces waiting requests.
type Notify struct {
	// Command is program and arguments; nothing in it is expanded and no shell
	// reads it. Empty for no announcement.
	Command []string `toml:"command"`
	// ShowCommand puts the text of the request's command into the announcement,
	// which may leave the machine.
	ShowCommand bool `toml:"show_command"`
	// Limit is how long the command may run.
	Limit time.Duration `toml:"limit"`
}

// Log is how a program logs.
type Log struct {
	Level  string `toml:"level"`  // "debug", "info", "warn" or "error"
	Format string `toml:"format"` // "text" or "json"
}

// DefaultDaemon is the configuration of vogtd where no file says otherwise.
func DefaultDaemon() Daemon {
	return Daemon{
		Listen:          "127.0.0.1:8648",
		PagesHost:       "vogt.localhost",
		BearerDecisions: "none",
		PendingTTL:      48 * time.Hour,
		ApprovedTTL:     time.Hour,
		Limits: Limits{
			PendingPerAgent:    30,
			StoredPerAgent:     8 << 20,
			CreationsPerSecond: 10,
			WaitsPerAgent:      4,
			OwnerFactor:        10,
		},
		ProxyHeader: "x-forwarded-for",
		Rates:       Rates{Strict: 10, Strangers: 120, Logins: 60, Management: 60, Principal: 60_000, Local: 10},
		Notify:      Notify{Limit: 10 * time.Second},
		Mail:        Mail{Limit: 30 * time.Second},
		Push: Push{Hosts: []string{
			"fcm.googleapis.com", "*.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com",
		}},
		Log:   Log{Level: "info", Format: "text"},
		DDISA: DDISA{Lookup: "auto", Providers: resolvers(), Clients: "permissive"},
	}
}

// Validate returns every problem of d at once, a line each, or nil.
func (d Daemon) Validate() error {
	var p problems
	listen, err := netip.ParseAddrPort(d.Listen)
	if err != nil {
		p.add("listen", `%q is not an IP address and a port such as "127.0.0.1:8648"`, d.Listen)
	}
	p.pagesHost("pages_host", d.PagesHost)
	switch {
	case d.Issuer != "":
		p.baseURL("issuer", d.Issuer)
	case err == nil && !listen.Addr().Unmap().IsLoopback():
		p.add("issuer", "others than this machine can reach %q; write the https address under which they do, and serve it by a proxy", d.Listen)
	}
	p.oneOf("bearer_decisions", d.BearerDecisions, "none", "medium", "high")
	p.oneOf("require_signature", d.RequireSignature, "", "medium", "high", "critical", "all")
	p.oneOf("second_approver", d.SecondApprover, "", "low", "medium", "high", "critical")
	for _, agent := range d.SecondApproverAgents {
		if name, host, ok := strings.Cut(agent, "@"); !ok || name == "" || host == "" || strings.ContainsAny(agent, " *,") || agent != strings.ToLower(agent) {
			p.add("second_approver_agents", "%q is not the address of an agent in lower case, as vogt agent list shows it", agent)
		}
	}
	p.duration("pending_ttl", d.PendingTTL, time.Minute, 30*24*time.Hour)
	p.duration("approved_ttl", d.ApprovedTTL, time.Second, 24*time.Hour)

	p.number("limits.pending_per_agent", d.Limits.PendingPerAgent, 1, 10_000)
	p.number("limits.stored_per_agent", d.Limits.StoredPerAgent, 64<<10, 1<<30)
	p.number("limits.creations_per_second", d.Limits.CreationsPerSecond, 1, 10_000)
	p.number("limits.waits_per_agent", d.Limits.WaitsPerAgent, 1, 1000)
	p.number("limits.owner_factor", d.Limits.OwnerFactor, 1, 1000)

	for _, admin := range d.Admins {
		p.address("admins", admin)
	}
	for _, proxy := range d.TrustedProxies {
		if _, err := Prefix(proxy); err != nil {
			p.add("trusted_proxies", `%q is not an address or a network such as "10.0.0.0/8"`, proxy)
		}
	}
	p.oneOf("proxy_header", d.ProxyHeader, "x-forwarded-for", "forwarded")
	for _, origin := range d.AllowedOrigins {
		p.baseURL("allowed_origins", origin)
		if strings.HasSuffix(origin, "/") {
			p.add("allowed_origins", "%q must end without a slash, as browsers write an origin", origin)
		}
	}
	for _, r := range []struct {
		key   string
		value int
	}{
		{"strict", d.Rates.Strict}, {"strangers", d.Rates.Strangers}, {"logins", d.Rates.Logins},
		{"management", d.Rates.Management}, {"principal", d.Rates.Principal},
	} {
		p.number("rates."+r.key, r.value, 1, 1_000_000)
	}
	p.number("rates.local", d.Rates.Local, 1, 1000)

	p.command("notify.command", d.Notify.Command)
	p.duration("notify.limit", d.Notify.Limit, time.Second, 10*time.Minute)
	p.command("mail.command", d.Mail.Command)
	p.duration("mail.limit", d.Mail.Limit, time.Second, 10*time.Minute)
	if d.Mail.Registration && len(d.Mail.Command) == 0 {
		p.add("mail.registration", "nobody can be reached without mail.command")
	}
	for _, host := range d.Push.Hosts {
		p.pagesHost("push.hosts", strings.TrimPrefix(host, "*."))
	}
	if c := d.Push.Contact; c != "" && strings.HasPrefix(c, "https:") {
		p.baseURL("push.contact", c)
	} else if c != "" {
		p.address("push.contact", c)
	}

	for i, c := range d.Clients {
		if c.ID == "" || len(c.RedirectURIs) == 0 {
			p.add(fmt.Sprintf("clients[%d]", i), "id and redirect_uris are required")
		}
	}

	d.DDISA.validate(&p)

	p.oneOf("log.level", d.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", d.Log.Format, "text", "json")
	return p.err()
}

func (d DDISA) validate(p *problems) {
	p.oneOf("ddisa.lookup", d.Lookup, "auto", "on", "off")
	p.oneOf("ddisa.clients", d.Clients, "strict", "permissive")
	for _, address := range d.Providers {
		p.webAddress("ddisa.providers", address)
	}
	for _, origin := range d.Origins {
		p.baseURL("ddisa.origins", origin)
	}
	for i, r := range d.Records {
		key := fmt.Sprintf("ddisa.records[%d]", i)
		p.pagesHost(key+".domain", r.Domain)
		p.webAddress(key+".idp", r.IDP)
		p.oneOf(key+".mode", r.Mode, "", "open", "allowlist-admin", "allowlist-user", "deny")
		for _, other := range d.Records[:i] {
			if other.Domain == r.Domain {
				p.add(key+".domain", "%q stands here twice", r.Domain)
			}
		}
	}
	for i, a := range d.Allow {
		key := fmt.Sprintf("ddisa.allow[%d]", i)
		p.pagesHost(key+".domain", a.Domain)
		if len(a.Clients) == 0 {
			p.add(key+".clients", "no service is named")
		}
	}
}

// Client is the configuration of vogt, in the file vogt.toml.
type Client struct {
	// Authority is the authority's base URL.
	Authority string `toml:"authority"`
	// AuthorityKey is the public key that the authority must prove to hold; empty
	// until the first contact has stored it.
	AuthorityKey string `toml:"authority_key"`
	// Agent is the agent that requests are made as when none is named.
	Agent string `toml:"agent"`

	Wait  Wait        `toml:"wait"`
	DDISA ClientDDISA `toml:"ddisa"`
}

// ClientDDISA is how the client finds the authority that a domain names.
type ClientDDISA struct {
	// Providers are resolvers that are asked by HTTPS when the machine's own fails.
	Providers []string `toml:"providers"`
}

// Wait is how the client waits for a person.
type Wait struct {
	Limit time.Duration `toml:"limit"` // of a call with --wait, in total
}

// DefaultClient is the configuration of vogt where no file says otherwise.
func DefaultClient() Client {
	return Client{
		Authority: "http://127.0.0.1:8648",
		Wait:      Wait{Limit: 15 * time.Minute},
		DDISA:     ClientDDISA{Providers: resolvers()},
	}
}

// resolvers are those that DDISA Core names.
func resolvers() []string {
	return []string{"https://cloudflare-dns.com/dns-query", "https://dns.google/resolve", "https://dns.quad9.net:5053/dns-query"}
}

// Validate returns every problem of c at once, a line each, or nil.
func (c Client) Validate() error {
	var p problems
	p.baseURL("authority", c.Authority)
	p.word("authority_key", c.AuthorityKey)
	p.word("agent", c.Agent)
	p.duration("wait.limit", c.Wait.Limit, time.Second, 7*24*time.Hour)
	for _, address := range c.DDISA.Providers {
		p.webAddress("ddisa.providers", address)
	}
	return p.err()
}

// problems collects what is wrong, by key.
type problems []string

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, "config: "+key+": "+fmt.Sprintf(format, args...))
}

func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return errors.New(strings.Join(*p, "\n"))
}

func (p *problems) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		quoted := make([]string, len(allowed))
		for i, a := range allowed {
			quoted[i] = strconv.Quote(a)
		}
		p.add(key, "%q is not one of %s", value, strings.Join(quoted, ", "))
	}
}

func (p *problems) duration(key string, value, least, most time.Duration) {
	if value < least || value > most {
		p.add(key, "%s is not between %s and %s", value, least, most)
	}
}

func (p *problems) number(key string, value, least, most int) {
	if value < least || value > most {
		p.add(key, "%d is not between %d and %d", value, least, most)
	}
}

func (p *problems) command(key string, argv []string) {
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			p.add(key, "argument %d contains a zero byte", i)
		}
	}
	if len(argv) > 0 && (argv[0] == "" || strings.ContainsRune(argv[0], filepath.Separator) && !filepath.IsAbs(argv[0])) {
		p.add(key, "%q is neither the name of a program nor an absolute path", argv[0])
	}
}

// Prefix reads a network, or an address as the network of it alone.
func Prefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// address accepts a plain mail address.
func (p *problems) address(key, value string) {
	local, domain, ok := strings.Cut(value, "@")
	if !ok || local == "" || domain == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"\<>()[],;`, r) }) || strings.Contains(domain, "@") {
		p.add(key, "%q is not an address such as \"you@example.com\"", value)
	}
}

// word accepts one word of printable characters, or none.
func (p *problems) word(key, value string) {
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		p.add(key, "%q contains a space or a character that cannot be printed", value)
	}
}

func (p *problems) pagesHost(key, host string) {
	labels := strings.Split(host, ".")
	bad := func(label string) bool {
		return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
	}
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		p.add(key, "%q is an IP address, which passkeys do not accept; give a name, such as \"vogt.localhost\"", host)
	case len(host) > 253 || slices.ContainsFunc(labels, bad):
		p.add(key, "%q is not a host name in lower case without a port, such as \"vogt.localhost\"", host)
	}
}

// webAddress accepts https, and http on this machine, with a path and query.
func (p *problems) webAddress(key, value string) {
	u, err := inet.ParseURL(value)
	switch {
	case err != nil:
		p.add(key, "%q: %v", value, err)
	case u.Scheme == "http" && !loopback(u.Host.String()):
		p.add(key, "%q leaves this machine without encryption; use https", value)
	}
}

// baseURL accepts scheme, host and port alone. Without encryption only this
// machine's own addresses are accepted.
func (p *problems) baseURL(key, value string) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		p.add(key, `%q is not a URL such as "http://127.0.0.1:8648"`, value)
		return
	}
	if u.User != nil || strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		p.add(key, "%q must be scheme, host and port alone", u.Redacted())
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		p.add(key, "%q leaves this machine without encryption; use https", u.Redacted())
	}
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
