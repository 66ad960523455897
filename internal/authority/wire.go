package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// patternOf reads a standing grant of the OpenApe wire as a pattern. Nothing
// becomes wider: what a pattern cannot say is an error that tells so (see
// docs/decisions/0020). known reports whether the catalog knows a program.
func patternOf(w api.StandingRequest, known func(program string) bool) (p grant.Pattern, err error) {
	if w.Audience == "" || w.Audience == "*" {
		return p, fmt.Errorf("audience %q: name the one that requests are meant for, such as shapes", w.Audience)
	}
	p.Agent, p.Audience, p.Machine, p.Unseen = lower(w.Delegate), w.Audience, w.Host, true
	if w.Host == "*" {
		p.Machine = ""
	}
	if w.CLI != "" {
		if !known(w.CLI) {
			return p, fmt.Errorf("cli_id %q: the catalog does not know this program, so nothing of it could be covered", w.CLI)
		}
		p.Programs = []string{w.CLI}
	}
	if w.MaxRisk != "" {
		if err := p.MaxRisk.UnmarshalText([]byte(w.MaxRisk)); err != nil {
			return p, fmt.Errorf("max_risk: %w", err)
		}
	}
	folder, err := folderOf(w.Chain)
	if err != nil {
		return p, err
	}
	switch {
	case readsOnly(w.Action):
		p.Does, p.Read = []grant.Deed{grant.DeedRead}, []string{folder}
		// A read inside named folders is low, and the pattern names them; the
		// reading of a request, which does not know them, rates it medium.
		p.MaxRisk = max(p.MaxRisk, detail.Medium)
	case w.Action == "": // any action, up to the risk
		p.Does, p.Write = []grant.Deed{grant.DeedRead, grant.DeedWrite, grant.DeedDelete}, []string{folder}
	default:
		return p, fmt.Errorf("action %q: a pattern cannot permit it without what it includes; leave action out for all actions up to max_risk, or name read", w.Action)
	}
	return p.Complete()
}

// readsOnly reports whether an action of the wire changes nothing.
func readsOnly(action string) bool {
	switch action {
	case "read", "list", "get", "view", "show", "search", "status":
		return true
	}
	return false
}

// folderOf is the pattern of paths that a resource chain stands for: one link
// that names one path. A star there stands for a part of one name, which is less
// than on the wire, where it crosses slashes.
func folderOf(chain []detail.Resource) (string, error) {
	const want = `; name one path, such as [{"resource":"filesystem","selector":{"path":"/home/me/project/**"}}]`
	if len(chain) != 1 || len(chain[0].Selector) != 1 {
		return "", fmt.Errorf("resource_chain_template: any resource, or several at once, is more than a pattern may say%s", want)
	}
	for key, value := range chain[0].Selector {
		if !slices.Contains([]string{"filesystem", "file", "path", "directory", "folder", "dir"}, chain[0].Name) ||
			!slices.Contains([]string{"path", "glob", "file", "filename"}, key) {
			return "", fmt.Errorf("resource_chain_template: %s[%s=…] is nothing that the authority finds in a command%s", chain[0].Name, key, want)
		}
		if slices.Contains(strings.Split(value, "/"), "..") {
			return "", fmt.Errorf("resource_chain_template: %q leads through ..%s", value, want)
		}
		return path.Clean(value), nil
	}
	return "", nil
}

// wireStanding is a standing grant as the OpenApe wire shows it. The pattern
// beside it is what counts: paths stand there whole.
func (a *Authority) wireStanding(s store.Standing) *api.StandingRequest {
	p := s.Pattern
	out := &api.StandingRequest{
		Kind: "standing", Owner: s.Author, Requester: p.Agent, Delegate: p.Agent, Audience: p.Audience, Host: p.Machine,
		MaxRisk: p.MaxRisk.String(), Type: grant.Timed, Duration: (s.Until - s.Created).Seconds(), Reason: s.Reason, Chain: []detail.Resource{},
	}
	if out.Audience == "" {
		out.Audience = "*"
	}
	if out.Host == "" {
		out.Host = "*"
	}
	if len(p.Programs) > 0 {
		out.CLI = strings.Join(p.Programs, ",")
	}
	if len(p.Does) == 1 {
		out.Action = string(p.Does[0])
	}
	for _, glob := range slices.Concat(p.Read, p.Write) {
		out.Chain = append(out.Chain, detail.Resource{Name: "filesystem", Selector: map[string]string{"path": glob}})
	}
	return out
}

// AddStandingByBearer is the wire's standing grant with nothing but a person's
// token. It permits, so it works only as far as the bearer_decisions switch does.
func (a *Authority) AddStandingByBearer(ctx context.Context, by Actor, w api.StandingRequest) (api.Standing, error) {
	const tried = "standing.add"
	if !by.Person() {
		return api.Standing{}, a.refuse(ctx, by, "", tried, problem(403, "Only a person signs standing grants", "", "Ask your owner: vogt standing add.").kind("forbidden"))
	}
	p, err := patternOf(w, func(program string) bool { return a.reader.Knows(program) })
	if err == nil && p.Agent != "*" {
		err = checkEmail(p.Agent)
	}
	if err != nil {
		return api.Standing{}, problem(400, "The standing grant cannot be taken as it is", err.Error()+".", "Correct it, or sign a pattern: vogt standing add --help names what one may hold.")
	}
	life, err := standingLife(w)
	if err != nil {
		return api.Standing{}, err
	}
	if !p.MaxRisk.Within(a.cfg.Bearer) {
		return api.Standing{}, a.refuse(ctx, by, "", tried, problem(403, "A login alone permits nothing", fmt.Sprintf("A standing grant up to risk %s needs a passkey or a signature.", p.MaxRisk),
			"Sign it: vogt standing add. For clients that cannot sign there is the authority's bearer_decisions switch.").kind("forbidden"))
	}
	var out api.Standing
	err = a.update(ctx, func(t *txn) error {
		s, err := t.standingByBearer(by, p, t.now+life, shorten(w.Reason, maxReason))
		if err != nil {
			return err
		}
		out = a.standingView(s)
		return t.answerWaiting(by.Principal.Email)
	})
	return out, err
}

// standingLife is how long a standing grant of the wire lasts. "always" ends as
// every pattern does.
func standingLife(w api.StandingRequest) (grant.Millis, error) {
	const day = 24 * 60 * 60
	seconds := int64(grant.DefaultDays) * day
	switch {
	case w.Type == grant.Timed && w.Duration == 0:
		return 0, problem(400, "The duration is missing", "A timed standing grant needs duration, in seconds.", "").kind("missing_duration")
	case w.Type == grant.Timed:
		seconds = w.Duration
	case w.Type != "" && w.Type != grant.Always:
		return 0, problem(400, "A standing grant is used more than once", fmt.Sprintf("grant_type %q: want always or timed.", w.Type), "").kind("invalid_grant_type")
	case w.Duration != 0:
		return 0, problem(400, "The request contradicts itself", "duration is for grant_type timed.", "")
	}
	if seconds < 1 || seconds > grant.MaxDays*day {
		return 0, problem(400, "The duration is out of range", fmt.Sprintf("duration is %d s, want 1 to %d.", seconds, grant.MaxDays*day), "")
	}
	return grant.Millis(seconds * 1000), nil
}

// standingByBearer puts a pattern into force that a login alone has asked for,
// and writes down that it was no more.
func (t *txn) standingByBearer(by Actor, p grant.Pattern, until grant.Millis, reason string) (store.Standing, error) {
	if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
		return store.Standing{}, err
	}
	s, err := t.insertStanding(by.Principal, p, until, reason, grant.Bearer)
	if err != nil {
		return s, err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return s, err
	}
	subject := by.Principal.Email
	if p.Agent != "*" {
		subject = p.Agent
	}
	_, err = t.record(recordTrust, "", subject, trustRecord{
		Operation: api.TrustStandingAdd, By: by.Name(), Subject: subject, Strength: grant.Bearer,
		Params: map[string]string{"id": s.ID, "pattern": string(encoded), "reason": reason},
	})
	return s, err
}
