package grant

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vogt/internal/detail"
)

// PolicyMode says what a policy does with a call that none of its lists names.
type PolicyMode string

// The modes, named as on the wire.
const (
	AllowList PolicyMode = "allow-list" // asks
	DenyList  PolicyMode = "deny-list"  // approves, within what the authority reads
)

// Policy approves requests of one agent without a card, by patterns of words. What
// it names is compared call by call with what the authority has read; what cannot
// be read, and what is critical, it never approves (package coverage). The zero
// value approves nothing.
type Policy struct {
	Agent    string      `json:"agent"`
	Audience string      `json:"audience"` // of requests; "*" for any
	Mode     PolicyMode  `json:"mode"`
	Allow    []string    `json:"allow,omitempty"`    // patterns of calls: words, * in a word or for any words
	Deny     []string    `json:"deny,omitempty"`     // these win in both modes
	DenyRisk detail.Risk `json:"deny_risk,omitzero"` // this risk and above is asked
	Limits   Limits      `json:"limits"`
}

const (
	maxPolicyPatterns = 64
	maxPolicyPattern  = 200 // characters
	// MaxPolicy is the largest policy in bytes of JSON.
	MaxPolicy = 16 << 10
)

// ParsePolicy reads a policy from its JSON, whole, and returns it in its one form.
func ParsePolicy(text string) (p Policy, err error) {
	if err := whole(text, MaxPolicy, &p); err != nil {
		return p, err
	}
	return p.Complete()
}

// Complete fills in what is usual and checks the policy.
func (p Policy) Complete() (Policy, error) {
	if p.Audience == "" {
		p.Audience = "*"
	}
	if p.Limits.PerMinute == 0 {
		p.Limits.PerMinute = defaultPerMinute
	}
	if p.Limits.Deletes == 0 {
		p.Limits.Deletes = defaultDeletes
	}
	p.Allow, p.Deny = slices.Clone(p.Allow), slices.Clone(p.Deny)
	switch {
	case p.Agent == "" || p.Agent == "*":
		return p, errors.New("agent is missing: the address of one agent")
	case p.Mode != AllowList && p.Mode != DenyList:
		return p, fmt.Errorf("mode %q: want %s or %s", p.Mode, AllowList, DenyList)
	case p.Mode == DenyList && len(p.Deny) == 0:
		return p, errors.New("a deny-list that denies nothing approves nothing: name at least one pattern to deny")
	case p.Limits.PerMinute < 0 || p.Limits.PerMinute > maxPerMinute || p.Limits.Deletes < 0 || p.Limits.Deletes > maxPerMinute || p.Limits.Uses != 0:
		return p, fmt.Errorf("limits: want 1 to %d uses a minute and deletions an hour, and no limit in all", maxPerMinute)
	case p.DenyRisk > detail.Critical:
		return p, fmt.Errorf("deny_risk %s: want low, medium, high or critical", p.DenyRisk)
	}
	for _, list := range [][]string{p.Allow, p.Deny} {
		if len(list) > maxPolicyPatterns {
			return p, fmt.Errorf("a list has %d patterns, the limit is %d", len(list), maxPolicyPatterns)
		}
		for i, s := range list {
			if list[i] = strings.Join(strings.Fields(s), " "); list[i] == "" {
				return p, errors.New("a pattern is empty")
			}
			if n := len([]rune(s)); n > maxPolicyPattern {
				return p, fmt.Errorf("a pattern has %d characters, the limit is %d", n, maxPolicyPattern)
			}
			if err := plain(list[i]); err != nil {
				return p, fmt.Errorf("pattern %q: %w", s, err)
			}
		}
	}
	for _, text := range []string{p.Agent, p.Audience} {
		if err := plain(text); err != nil {
			return p, fmt.Errorf("%q: %w", text, err)
		}
	}
	return p, nil
}

// Highest is the highest risk that the policy may approve.
func (p Policy) Highest() detail.Risk {
	if p.DenyRisk == detail.Unrated || p.DenyRisk > detail.High {
		return detail.High
	}
	return p.DenyRisk - 1
}
