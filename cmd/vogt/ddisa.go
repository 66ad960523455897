package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/config"
	"vogt/internal/ddisa"
	"vogt/internal/fetch"
	"vogt/internal/inet"
	"vogt/internal/terminal"
)

// mockFlag makes a command take records from the variable of tests. Without it the
// variable is not heeded: what starts vogt could else choose where people log in.
const mockFlag = "mock-records"

func addMockFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, mockFlag, false, "take records from $"+ddisa.MockVariable+" instead of the DNS, for tests")
}

// domains is what domains say, as this machine finds it.
type domains struct {
	resolver *ddisa.Resolver
	fetch    *fetch.Client
	mock     bool
}

// openDomains makes the resolver of a command.
func (e *env) openDomains(settings config.Client, mock bool) (*domains, error) {
	asking, getting := ddisa.ResolverConfig{Providers: settings.DDISA.Providers, Now: e.now}, fetch.Config{Private: true}
	if mock {
		fixed, err := ddisa.ParseMock(e.getenv(ddisa.MockVariable))
		if err != nil {
			return nil, &usageError{text: "--" + mockFlag + ": " + err.Error()}
		}
		asking.Fixed = fixed
		// Whoever wrote these records may name this machine in them.
		for _, record := range fixed {
			if u, err := inet.ParseURL(record.IDP); err == nil && u.Scheme == "http" {
				getting.Origins = append(getting.Origins, u.Origin.String())
			}
		}
	} else if e.getenv(ddisa.MockVariable) != "" {
		e.say(messages.MockNotHeeded, ddisa.MockVariable, mockFlag)
	}
	if e.outside != nil {
		e.outside(&asking, &getting)
	}
	resolver, err := ddisa.NewResolver(asking)
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	client, err := fetch.New(getting)
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	return &domains{resolver: resolver, fetch: client, mock: mock}, nil
}

// authorityFor decides where email logs in. configured is the address that somebody
// has given or that an earlier login had, "" for none. It has to be the one that the
// domain's record names, to the letter, unless force is set: else a login could be
// led elsewhere. Without one the record is followed.
//
// An address on this machine is compared with no record: a record cannot name one,
// and what the DNS says of a domain says nothing about who listens here.
func (e *env) authorityFor(ctx context.Context, settings config.Client, email, configured string, mock, force bool) (string, error) {
	if configured != "" && (force || !mock && onThisMachine(configured)) {
		return configured, nil
	}
	domain, err := ddisa.DomainOf(email)
	if err != nil {
		if configured == "" {
			configured = config.DefaultClient().Authority
			e.say(messages.NoRecordPossible, terminal.Visible(email), configured)
		}
		return configured, nil
	}
	d, err := e.openDomains(settings, mock)
	if err != nil {
		return "", err
	}
	answer, err := d.resolver.Lookup(ctx, domain)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && configured == "":
		return "", withCode(exitUnavailable, errors.New(e.text(messages.RecordUnknown, domain.RecordName(), terminal.Visible(oneLine(err)))))
	case err != nil:
		e.say(messages.RecordNotCompared, domain.RecordName(), terminal.Visible(oneLine(err)), terminal.Visible(configured))
		return configured, nil
	case !answer.Found && configured == "":
		configured = config.DefaultClient().Authority
		e.say(messages.NoNamedAuthority, domain, domain.RecordName(), configured)
		return configured, nil
	case !answer.Found:
		return configured, nil
	case configured != "" && configured != answer.Record.IDP:
		return "", withCode(exitRefused, errors.New(e.text(messages.OtherAuthority, domain, terminal.Visible(answer.Record.IDP), terminal.Visible(configured))))
	}
	if _, err := ddisa.Discover(ctx, d.fetch, answer.Record.IDP); err != nil {
		if errors.Is(err, ddisa.ErrOtherIssuer) {
			return "", withCode(exitRefused, errors.New(e.text(messages.OtherIssuer, domain, terminal.Visible(answer.Record.IDP), terminal.Visible(err.Error()))))
		}
		return "", withCode(exitUnavailable, errors.New(e.text(messages.NoDiscovery, domain, terminal.Visible(answer.Record.IDP), terminal.Visible(err.Error()))))
	}
	if configured == "" {
		e.say(messages.FoundAuthority, domain, terminal.Visible(answer.Record.IDP))
	}
	return answer.Record.IDP, nil
}

// oneLine is an error that has several causes, in one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func newDNSCheckCommand(e *env) *cobra.Command {
	var mock bool
	cmd := &cobra.Command{
		Use:   "dns-check EMAIL|DOMAIN",
		Short: "Say which authority a domain names, and whether it answers",
		Long: `A domain names the authority of its people in a TXT record at _ddisa.DOMAIN:

  v=ddisa1 idp=https://id.example.com; mode=allowlist-user

"vogt login EMAIL" follows it. dns-check shows what lies there, what of it counts
and why the rest does not, and asks the authority whether it calls itself by that
address, to the letter. It exits with 1 when there is no record that counts, or the
authority is not there or calls itself otherwise, and with 69 when the DNS cannot
be asked.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.dnsCheck(cmd.Context(), args[0], mock)
		}),
	}
	addMockFlag(cmd, &mock)
	return cmd
}

// domainReport is what --json tells of a domain.
type domainReport struct {
	Domain    string          `json:"domain"`
	Name      string          `json:"record_name"`
	Source    string          `json:"source"`
	Authority string          `json:"idp,omitempty"`
	Mode      string          `json:"mode,omitempty"`
	Priority  *int            `json:"priority,omitempty"`
	Policy    string          `json:"policy_endpoint,omitempty"`
	Ignored   []string        `json:"ignored,omitempty"`
	Others    []unusedRecord  `json:"others,omitempty"`
	Failed    []string        `json:"failed_resolvers,omitempty"`
	Discovery *foundAuthority `json:"discovery,omitempty"`
	OK        bool            `json:"ok"`
	Why       string          `json:"problem,omitempty"`
}

type unusedRecord struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}

type foundAuthority struct {
	Issuer  string   `json:"issuer,omitempty"`
	Version string   `json:"ddisa_version,omitempty"`
	Methods []string `json:"ddisa_auth_methods_supported,omitempty"`
}

func (e *env) dnsCheck(ctx context.Context, what string, mock bool) error {
	parse := ddisa.ParseDomain
	if strings.Contains(what, "@") {
		parse = ddisa.DomainOf
	}
	domain, err := parse(what)
	if err != nil {
		return &usageError{text: err.Error()}
	}
	paths, err := e.paths()
	if err != nil {
		return err
	}
	settings, err := e.settings(paths)
	if err != nil {
		return err
	}
	d, err := e.openDomains(settings, mock)
	if err != nil {
		return err
	}
	answer, err := d.resolver.Lookup(ctx, domain)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return withCode(exitUnavailable, errors.New(e.text(messages.RecordUnknown, domain.RecordName(), terminal.Visible(oneLine(err)))))
	}
	report := e.reportOf(answer)
	if answer.Found {
		found, err := ddisa.Discover(ctx, d.fetch, answer.Record.IDP)
		report.Discovery = &foundAuthority{Issuer: found.Issuer, Version: found.Version, Methods: found.AuthMethods}
		if report.OK = err == nil; !report.OK {
			report.Why = err.Error()
		}
	} else {
		report.Why = e.text(messages.NoRecordThere, domain.RecordName())
	}
	if err := e.print(report, report.write); err != nil {
		return err
	}
	if !report.OK {
		return withCode(exitMismatch, nil)
	}
	return nil
}

func (e *env) reportOf(a ddisa.Answer) domainReport {
	r := domainReport{Domain: a.Domain.String(), Name: a.Domain.RecordName(), Source: a.Source}
	for _, err := range a.Failed {
		r.Failed = append(r.Failed, oneLine(err))
	}
	others := a.Candidates
	if a.Found {
		r.Authority, r.Mode, r.Priority, r.Policy, r.Ignored = a.Record.IDP, string(a.Record.Mode), &a.Record.Priority, a.Record.PolicyEndpoint, a.Record.Ignored
		others = others[min(1, len(others)):]
	}
	for _, c := range others {
		why := e.text(messages.RecordLoses)
		if c.Err != nil {
			why = c.Err.Error()
		}
		r.Others = append(r.Others, unusedRecord{Text: c.Text, Why: why})
	}
	return r
}

// write shows the report; names of facts are the same in every language.
func (r domainReport) write(w io.Writer) error {
	s := &sheet{w: w}
	s.fact("Domain", r.Domain)
	s.fact("Record", r.Name)
	s.fact("Source", r.Source)
	for _, f := range r.Failed {
		s.fact("Failed", f)
	}
	s.some("Authority", r.Authority)
	if r.Priority != nil {
		mode := r.Mode
		if mode == "" {
			mode = "-"
		}
		s.fact("Mode", mode)
		s.fact("Priority", strconv.Itoa(*r.Priority))
	}
	s.some("Policy", r.Policy)
	for _, text := range r.Ignored {
		s.fact("Ignored", text)
	}
	for _, o := range r.Others {
		s.fact("Unused", strconv.Quote(o.Text)+": "+o.Why)
	}
	if d := r.Discovery; d != nil {
		s.some("Issuer", d.Issuer)
		s.some("DDISA", d.Version)
		s.some("Log-ins", strings.Join(d.Methods, ", "))
	}
	if r.OK {
		s.fact("Result", "ok")
	} else {
		s.fact("Problem", r.Why)
	}
	return s.err
}
