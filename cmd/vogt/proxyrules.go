package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vogt/cmd/vogt/messages"
	"vogt/internal/egress"
	"vogt/internal/egress/secret"
	"vogt/internal/execution/confine"
)

// hosts are what a profile says of hosts, for the proxy.
type hosts struct {
	rules     []egress.Rule
	files     []string // with secrets
	variables []string // with secrets
}

// readHosts reads the hosts of a profile, and the secrets for them.
func (e *env) readHosts(p *confine.Profile) (*hosts, error) {
	h := &hosts{}
	for _, host := range p.Hosts {
		rule, err := hostRule(host)
		if err != nil {
			return nil, fmt.Errorf("profile %s: hosts: %q: %w", p.Name, host, err)
		}
		h.rules = append(h.rules, rule)
	}
	for i := range p.Named {
		rule, err := e.namedRule(&p.Named[i], h)
		if err != nil {
			return nil, fmt.Errorf("profile %s: host %s: %w", p.Name, p.Named[i].Name, err)
		}
		h.rules = append(h.rules, rule)
	}
	return h, nil
}

// checkAllowed refuses values of --allow that are no hosts, before anything is made
// of them. An address is not repeated as it is: there may be a password in it.
func (e *env) checkAllowed(hosts []string) error {
	for _, text := range hosts {
		if strings.Contains(text, "/") {
			host := "HOST"
			if u, err := url.Parse(text); err == nil && u.Host != "" {
				host = u.Host
			}
			return &usageError{text: e.text(messages.AllowAddress, host)}
		}
		rule, err := hostRule(text)
		if err == nil {
			err = rule.Check()
		}
		if err != nil {
			return &usageError{text: e.text(messages.AllowBad, text, err)}
		}
	}
	return nil
}

// hostRule reads a host of a profile: name, *.name or name:port.
func hostRule(text string) (egress.Rule, error) {
	name, port, ok := strings.Cut(text, ":")
	if !ok {
		return egress.Rule{Host: text}, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return egress.Rule{}, fmt.Errorf("%q is no port from 1 to 65535", port)
	}
	return egress.Rule{Host: name, Ports: []uint16{uint16(n)}}, nil
}

// namedRule reads a host of which a profile says more.
func (e *env) namedRule(host *confine.Host, h *hosts) (egress.Rule, error) {
	rule := egress.Rule{Host: host.Name, Ports: host.Ports, Upload: int64(host.Upload), Deny: host.Deny}
	for _, text := range host.Within {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return rule, fmt.Errorf("within: %q is no network, such as 10.1.0.0/16", text)
		}
		rule.Within = append(rule.Within, network)
	}
	switch host.Carry {
	case "":
	case "tls":
		rule.Carry = egress.CarryTLS
	case "ssh":
		rule.Carry = egress.CarrySSH
	case "anything":
		rule.Carry = egress.CarryAnything
	default:
		return rule, fmt.Errorf("carry is %q, want tls, ssh or anything", host.Carry)
	}
	if len(host.Requests)+len(host.Headers) == 0 {
		return rule, nil
	}
	rule.Inspect = &egress.Inspect{}
	for _, text := range host.Requests {
		methods, path, ok := strings.Cut(text, " ")
		if !ok {
			return rule, fmt.Errorf("requests: %q, want methods and a path, as in \"GET,HEAD /path\"", text)
		}
		rule.Inspect.Requests = append(rule.Inspect.Requests, egress.Permitted{Methods: strings.Split(methods, ","), Path: path})
	}
	for _, header := range host.Headers {
		field, err := e.header(header, h)
		if err != nil {
			return rule, fmt.Errorf("header %s: %w", header.Name, err)
		}
		rule.Inspect.Set = append(rule.Inspect.Set, field)
	}
	return rule, nil
}

// header reads the secret for a header field.
func (e *env) header(header confine.Header, h *hosts) (egress.Field, error) {
	source := secret.Source{File: header.File, Variable: header.Variable, Command: header.Command}
	if rest, ok := strings.CutPrefix(source.File, "~/"); ok {
		source.File = filepath.Join(e.getenv("HOME"), rest)
	}
	word, err := source.Read(context.Background(), e.getenv)
	if err != nil {
		return egress.Field{}, err
	}
	if source.File != "" {
		h.files = append(h.files, source.File)
	}
	if source.Variable != "" {
		h.variables = append(h.variables, source.Variable)
	}
	value := word
	switch {
	case header.Basic != "":
		value = "Basic " + base64.StdEncoding.EncodeToString([]byte(header.Basic+":"+word))
	case header.Value != "":
		value = strings.Replace(header.Value, "{secret}", word, 1)
	}
	return egress.Field{Name: header.Name, Value: egress.NewSecret(value)}, nil
}

// systemAuthorities are the files in which systems keep the authorities for TLS.
var systemAuthorities = [...]string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// trusted are the system's authorities and the session's, for programs that read one
// file.
func (e *env) trusted(session []byte) ([]byte, error) {
	files := systemAuthorities[:]
	if own := e.getenv("SSL_CERT_FILE"); own != "" {
		files = []string{own}
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return append(append(data, '\n'), session...), nil
	}
	return session, nil // there is no other that programs could trust
}
