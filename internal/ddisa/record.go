package ddisa

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/inet"
)

// Mode is what a domain decided about the services that its people log in to.
type Mode string

// The modes. The zero value is a domain that decided nothing.
const (
	NoMode        Mode = ""
	Open          Mode = "open"
	AllowlistAdm  Mode = "allowlist-admin"
	AllowlistUser Mode = "allowlist-user"
	Deny          Mode = "deny"
)

// Record is a TXT record at _ddisa.DOMAIN that counts.
type Record struct {
	// IDP is the authority's address exactly as it was written: whoever compares
	// compares text, so that a final slash makes another authority.
	IDP            string
	Mode           Mode
	Priority       int    // the lowest wins
	PolicyEndpoint string // "" for none
	// Ignored says what of the record does not count, for whoever wrote it.
	Ignored []string
}

const (
	version         = "v=ddisa1"
	defaultPriority = 10
	maxPriority     = 65535
	maxRecord       = 4096 // bytes of one record
	maxRecords      = 32   // of one domain
)

// ErrOther is the error of a text that is no DDISA record of this version at all.
var ErrOther = errors.New("it does not begin with " + version + " and a space")

// ParseRecord reads the text of a record, all strings of it joined (RFC 7208,
// section 3.3, does the same for SPF): "v=ddisa1 idp=https://id.example.com;
// mode=open; priority=5; policy_endpoint=https://…". Unknown keys are ignored, and
// so is a mode or priority that is none, which Record.Ignored tells. With plain the
// authority may be http on this machine, which no record in the public DNS may be.
func ParseRecord(text string, plain bool) (Record, error) {
	if len(text) > maxRecord {
		return Record{}, fmt.Errorf("it has %d bytes, more than %d", len(text), maxRecord)
	}
	first, rest, _ := strings.Cut(text, " ")
	if first != version {
		return Record{}, ErrOther
	}
	r := Record{Priority: defaultPriority}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(rest, ";") {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !ok {
			if key != "" {
				r.ignore("%.40q has no value", key)
			}
			continue
		}
		if key == "policy" {
			key = "policy_endpoint"
		}
		if seen[key] {
			// One reader would take the first, another the last.
			return Record{}, fmt.Errorf("%.40s stands in it twice", strconv.QuoteToASCII(key))
		}
		seen[key] = true
		if err := r.set(key, value, plain); err != nil {
			return Record{}, err
		}
	}
	if r.IDP == "" {
		return Record{}, errors.New("idp is missing")
	}
	return r, nil
}

func (r *Record) ignore(format string, args ...any) {
	r.Ignored = append(r.Ignored, fmt.Sprintf(format, args...))
}

func (r *Record) set(key, value string, plain bool) error {
	switch key {
	case "idp":
		if err := CheckIDP(value, plain); err != nil {
			return fmt.Errorf("idp: %w", err)
		}
		r.IDP = value
	case "mode":
		switch m := Mode(strings.ToLower(value)); m {
		case Open, AllowlistAdm, AllowlistUser, Deny:
			r.Mode = m
		default:
			r.ignore("the mode %.40s is none of open, allowlist-admin, allowlist-user, deny", strconv.QuoteToASCII(value))
		}
	case "priority":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			r.ignore("the priority %.40s is no number from 0 to %d", strconv.QuoteToASCII(value), maxPriority)
			return nil
		}
		r.Priority = int(n)
	case "policy_endpoint":
		if u, err := inet.ParseURL(value); err != nil || u.Scheme != "https" {
			r.ignore("the policy endpoint %.40s is no https address", strconv.QuoteToASCII(value))
			return nil
		}
		r.PolicyEndpoint = value
	default:
		r.ignore("the key %.40s is not known", strconv.QuoteToASCII(key))
	}
	return nil
}

// CheckIDP says why text is no address of an authority: https, without user, query
// and fragment (RFC 8414, section 2). With plain, http on this machine is one too.
func CheckIDP(text string, plain bool) error {
	u, err := inet.ParseURL(text)
	switch {
	case err != nil:
		return err
	case strings.Contains(u.Rest, "?"):
		return errors.New("the address has a query")
	case u.Scheme == "https":
		return nil
	case plain && onThisMachine(u.Host):
		return nil
	}
	return errors.New("the address does not begin with https://")
}

func onThisMachine(h inet.Host) bool {
	if h.Addr().IsValid() {
		return inet.Classify(h.Addr()) == inet.Loopback
	}
	return h.Name() == "localhost" || strings.HasSuffix(h.Name(), ".localhost") // RFC 6761, section 6.3
}

// Candidate is one of the texts that lie at a domain's name.
type Candidate struct {
	Text   string
	Record Record
	Err    error // why it does not count; nil if it does
}

// choose reads the texts at a domain's name and returns the record that wins. Equal
// priorities are decided by the text, since the DNS gives no order and everybody has
// to choose alike.
func choose(texts []string, plain bool) (won Record, found bool, all []Candidate) {
	if len(texts) > maxRecords {
		texts = texts[:maxRecords]
	}
	for _, text := range texts {
		c := Candidate{Text: text}
		c.Record, c.Err = ParseRecord(text, plain)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Record.Priority, b.Record.Priority), cmp.Compare(a.Record.IDP, b.Record.IDP), cmp.Compare(a.Text, b.Text))
	})
	if len(all) == 0 || all[0].Err != nil {
		return Record{}, false, all
	}
	return all[0].Record, true, all
}
