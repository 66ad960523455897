package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"vogt/cmd/vogt/messages"
	"vogt/internal/catalog"
	"vogt/internal/egress"
	"vogt/internal/execution/confine"
	"vogt/internal/inet"
	"vogt/internal/terminal"
)

// way is a proxy with what belongs to it.
type way struct {
	proxy *egress.Proxy
	hosts *hosts
	file  *os.File
	asker *hostAsker // asks a person about hosts, or nil
	// report tells the authority of connections, or is nil.
	report *boxReport
	ended  context.Context
	end    context.CancelFunc
}

// close ends the record.
func (w *way) close() {
	w.end()
	w.file.Close()
}

// over ends what is still asked.
func (w *way) over() {
	w.end()
	if w.asker != nil {
		w.asker.work.Wait()
	}
}

// wayOptions are what differs between a box's proxy and the one of a command that
// runs without a box.
type wayOptions struct {
	record   string // file in which connections are recorded
	command  string // whose they are, for the record
	password string // that clients have to show, or none
	refused  messages.Key
	asker    *hostAsker // asks a person about hosts that no rule names, or nil
}

// newWay makes the proxy to the hosts of a profile. Connections are recorded in a
// file; those that are refused are told on standard error, once for each host.
func (e *env) newWay(p *confine.Profile, o wayOptions) (*way, error) {
	record := o.record
	hosts, err := e.readHosts(p)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		return nil, err
	}
	if st, err := os.Stat(record); err == nil && st.Size() > maxRecord {
		if err := os.Rename(record, record+".1"); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	audit := &egressRecord{file: file, refused: func(r egress.Record) {
		where := net.JoinHostPort(terminal.Visible(r.Host), strconv.Itoa(int(r.Port)))
		switch {
		case r.Host == "":
			where = "?" // it could not be read
		case r.Port == 0:
			where = terminal.Visible(r.Host) // only its address was asked for
		}
		e.say(o.refused, where, e.whyRefused(r))
	}}
	var report *boxReport
	if e.reports {
		if report, err = e.newBoxReport(e.agent); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		audit.report = report.add
	}
	config := egress.Config{
		Identity: egress.Identity{Agent: e.agent, Command: o.command},
		Policy: egress.Policy{Rules: hosts.rules, HostKind: catalog.New().HostKind, Limits: egress.Limits{
			Upload: int64(p.Limits.Upload), AskTime: hostWait, Questions: openHosts,
		}},
		Audit:    audit,
		Password: o.password,
	}
	if o.asker != nil {
		config.Ask = o.asker.ask
	}
	if e.reach != nil {
		e.reach(&config)
	}
	proxy, err := egress.New(config)
	if err != nil {
		file.Close()
		return nil, err
	}
	w := &way{proxy: proxy, hosts: hosts, file: file, asker: o.asker, report: report}
	w.ended, w.end = context.WithCancel(context.Background())
	if o.asker != nil {
		o.asker.over = w.ended
		var denying sync.Mutex
		rules := slices.Clone(hosts.rules)
		o.asker.deny = func(q egress.Question) {
			denying.Lock()
			defer denying.Unlock()
			rules = append(rules, egress.Rule{Host: q.Host, Ports: []uint16{q.Port}, Deny: true})
			config.Policy.Rules = slices.Clone(rules)
			if err := proxy.Replace(config.Policy); err != nil {
				e.say(messages.AskNeedsLogin, err)
			}
		}
	}
	return w, nil
}

// whyRefused is the word for why a connection was refused, and what it means to who
// started the program. What is not listed is about the program's own protocol, and
// the program is told more than fits here.
func (e *env) whyRefused(r egress.Record) string {
	host := terminal.Visible(r.Host)
	if p := r.Port; p != 0 && p != 80 && p != 443 {
		host = net.JoinHostPort(host, strconv.Itoa(int(p)))
	}
	var means string
	switch r.Reason {
	case egress.NotGranted:
		means = e.text(messages.NotGranted, host)
	case egress.NeverAsked:
		means = e.text(messages.NeverAskedAbout, host)
	case egress.CannotResolve:
		means = e.text(messages.NoAddress)
	case egress.RefusedAddress:
		means = e.text(messages.NotPublic)
	case egress.ClientGone:
		means = e.text(messages.ClientGone)
	case egress.CannotConnect:
		means = e.text(messages.NotConnected)
	case egress.DeniedByRule:
		means = e.text(messages.RuleDenies)
	case egress.Denied:
		means = e.text(messages.PersonDenied)
	case egress.Unanswered:
		means = e.text(messages.NobodyAnswered)
	case egress.NoName:
		means = e.text(messages.NotByName)
	default:
		return r.Reason.String()
	}
	return r.Reason.String() + ": " + means
}

// boxWay is newWay for a box.
func (e *env) boxWay(p *confine.Profile, record string, asker *hostAsker) (*way, error) {
	return e.newWay(p, wayOptions{record: record, command: "confine " + p.Name, refused: messages.HostRefused, asker: asker})
}

// serve serves the listener of the box that all have, with which the box ends, and
// with it what somebody is asked for it.
func (w *way) serve(l net.Listener) {
	var reporting sync.WaitGroup
	defer reporting.Wait()
	if w.report != nil {
		reporting.Go(func() { w.report.run(w.ended) })
	}
	defer w.over()
	_ = w.proxy.Serve(context.Background(), l)
}

// serveDirect and serveNames are for programs in the box that know of no proxy.
func (w *way) serveDirect(l net.Listener) { _ = w.proxy.ServeDirect(context.Background(), l) }

func (w *way) serveNames(c net.PacketConn) { _ = w.proxy.ServeNames(context.Background(), c) }

// maxRecord is from when on a record of connections is put aside as the older one,
// in bytes, and maxRefused how many refused connections of a box are recorded.
const (
	maxRecord  = 32 << 20
	maxRefused = 10_000
)

// neverReached says why no rule lets a host through that is named so: empty if one
// may.
func (e *env) neverReached(text string) string {
	name, _, _ := strings.Cut(text, ":")
	if host, _, err := net.SplitHostPort(text); err == nil {
		name = host
	} else if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		name = a.String()
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return e.text(messages.ThisMachine)
	}
	a, err := netip.ParseAddr(name)
	switch class := inet.Classify(a.Unmap()); {
	case err != nil || class == inet.Public:
		return ""
	case class == inet.Loopback || class == inet.Unspecified:
		return e.text(messages.ThisMachine)
	default:
		return e.text(messages.NoPublicAddress, class)
	}
}

// egressRecord writes each connection as a line of JSON.
type egressRecord struct {
	mu      sync.Mutex
	file    *os.File
	told    map[string]bool
	count   int // of refused connections
	refused func(egress.Record)
	report  func(egress.Record) // to the authority, if set
}

// Begin implements egress.Audit.
func (a *egressRecord) Begin(r egress.Record) error { return a.write("begin", r) }

// End implements egress.Audit.
func (a *egressRecord) End(r egress.Record) {
	if a.report != nil {
		a.report(r)
	}
	if r.Verdict != egress.Refused {
		_ = a.write("end", r) // what was permitted is on record by Begin
		return
	}
	a.mu.Lock()
	a.count++
	recorded := a.count <= maxRefused
	key := fmt.Sprint(r.Host, r.Port, r.Reason)
	told := a.told[key]
	if a.told == nil {
		a.told = map[string]bool{}
	}
	if len(a.told) < 100 {
		a.told[key] = true
	} else {
		told = true
	}
	a.mu.Unlock()
	if recorded {
		_ = a.write("end", r)
	}
	if !told {
		a.refused(r)
	}
}

func (a *egressRecord) write(event string, r egress.Record) error {
	line, err := json.Marshal(map[string]any{
		"event": event, "agent": r.Identity.Agent, "command": r.Identity.Command, "time": r.Start, "protocol": r.Protocol.String(),
		"host": r.Host, "port": r.Port, "address": r.Address, "sni": r.SNI, "verdict": r.Verdict.String(), "reason": fmt.Sprint(r.Reason),
		"basis": r.Basis, "request": r.Request, "sent": r.Sent, "received": r.Received, "ms": r.Duration.Milliseconds(),
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.file.Write(append(line, '\n'))
	if err == nil && n <= len(line) {
		err = errors.New("the record of connections is cut off")
	}
	return err
}
