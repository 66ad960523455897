package pages_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/statement"
)

// class makes a class, which a test knows to be one.
func class(t testing.TB, c grant.Class, agent string, folders, hosts []string) grant.Pattern {
	t.Helper()
	p, err := grant.NewClass(c, agent, folders, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gitLog is a pattern that no class is.
func gitLog(t testing.TB) grant.Pattern {
	t.Helper()
	p, err := grant.Pattern{Agent: claude, Programs: []string{"rg"}, Read: []string{"/etc/**"}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text is a page without its tags.
func text(a answer) string {
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(a.body, " "))), " ")
}

func says(t *testing.T, a answer, words ...string) {
	t.Helper()
	want(t, a, 200)
	for _, w := range words {
		if !strings.Contains(text(a), w) {
			t.Errorf("the page does not say %q:\n%s", w, text(a))
		}
	}
}

func silent(t *testing.T, a answer, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text(a), w) {
			t.Errorf("the page says %q", w)
		}
	}
}

// bodyOf is the data of the button that makes a call.
func bodyOf(t *testing.T, a answer, call string) (out struct {
	Operation string            `json:"operation"`
	Params    map[string]string `json:"params"`
}) {
	t.Helper()
	m := regexp.MustCompile(`data-post="` + regexp.QuoteMeta(call) + `" data-body="([^"]*)"`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no button calls %s:\n%s", call, text(a))
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPatterns(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	s.populate()
	s.signIn(mara)
	says(t, s.get("/patterns"), "No pattern is in force", "New pattern", "Suggestions", "Safe commands")
	old := s.authority.AddStanding(gitLog(t), func(g *api.Standing) { g.Reason = "looking at nginx" })
	clock.advance(31 * 24 * time.Hour)
	box := s.authority.AddStanding(class(t, grant.ClassBox, "group:builders", []string{"/home/mara/projects/shop"}, nil), func(g *api.Standing) {
		g.Uses, g.LastUsedAt = 1234, clock.now().Add(-time.Hour).Unix()
	})
	paused := s.authority.AddStanding(class(t, grant.ClassEdit, "*", []string{"/srv"}, nil), func(g *api.Standing) { g.Paused = "more than 60 uses in a minute" })
	over := s.authority.AddStanding(class(t, grant.ClassInspect, ops, nil, nil), func(g *api.Standing) { g.Status = grant.Expired })
	list := s.get("/patterns")
	says(t, list, "Build and test in the box", "For the group builders", "In /home/mara/projects/shop", "used 1,234 times, last", "ends",
		"Change files", "For all your agents", "paused", "It covers nothing at the moment: more than 60 uses in a minute",
		"rg", "For claude", "It may read.", "Reads in /etc/**", "At most medium risk.", "looking at nginx", "never used", "unused for 30 days", "1 was not needed for 30 days", "1 that is over")
	silent(t, list, "Read version control")
	if n := strings.Count(list.body, "unused for 30 days"); n != 1 {
		t.Errorf("%d patterns are marked as unused, want the old one", n)
	}
	if body := bodyOf(t, list, "/p/trust"); body.Operation != api.TrustStandingResume || body.Params["id"] != paused {
		t.Errorf("resuming prepares %+v", body)
	}
	says(t, s.get("/patterns?over=1"), "Read version control and builds", "ended", "Those in force")
	silent(t, s.get("/patterns?over=1"), "Revoke")
	mine := s.get("/patterns?agent=" + url.QueryEscape(ops))
	says(t, mine, "Patterns for ops", "Change files", "Those of all agents")
	silent(t, mine, "looking at nginx", "builders")
	says(t, s.get("/patterns?lang=de"), "In der Box bauen und testen", "Für die Gruppe builders", "1.234-mal benutzt", "seit 30 Tagen unbenutzt", "Höchstens mittleres Risiko")

	// One with parts that the form has no field for is not offered for a new one.
	again := strings.Count(s.get("/patterns").body, "Write one like it")
	machine, few, boxed := gitLog(t), gitLog(t), gitLog(t)
	machine.Machine, few.Limits.Uses, boxed.Box, boxed.Read = "nuc", 3, &grant.Box{Profile: "read"}, nil
	for _, p := range []grant.Pattern{machine, few, boxed} {
		id := s.authority.AddStanding(p, nil)
		if n := strings.Count(s.get("/patterns").body, "Write one like it"); n != again || again == 0 {
			t.Errorf("%+v: %d patterns are offered for new ones, want %d", p, n, again)
		}
		want(t, s.post("/p/patterns/"+id+"/revoke", map[string]any{}), 200)
	}
	want(t, s.post("/p/patterns/"+box+"/revoke", map[string]any{}), 200, "The pattern was revoked")
	want(t, s.post("/p/patterns/"+box+"/revoke", map[string]any{}), 200, "revoked already, elsewhere") // another tab was first
	want(t, s.post("/p/patterns/"+over+"x/revoke", map[string]any{}), 404)
	want(t, s.post("/p/patterns/"+old+"/revoke", map[string]any{}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) }), 403)
	silent(t, s.get("/patterns?lang=en"), "builders")
	s.authority.AddPerson("eve@evil.example", "Eve")
	s.signIn("eve@evil.example")
	want(t, s.post("/p/patterns/"+old+"/revoke", map[string]any{}), 404)
	silent(t, s.get("/patterns"), "nginx")
}

func TestManyPatterns(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	for range 120 {
		s.authority.AddStanding(gitLog(t), nil)
	}
	seen := map[string]bool{}
	next := "/patterns"
	for n := 0; next != "" && n < 5; n++ {
		a := s.get(next)
		want(t, a, 200)
		for _, m := range regexp.MustCompile(`<li id="(s-[^"]*)"`).FindAllStringSubmatch(a.body, -1) {
			seen[m[1]] = true
		}
		next = ""
		if m := regexp.MustCompile(`href="([^"]*)">Earlier ones`).FindStringSubmatch(a.body); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 120 {
		t.Errorf("the list shows %d patterns, want 120", len(seen))
	}
	for _, from := range []string{"-7", "x", "99999999999999999999", "1000"} {
		want(t, s.get("/patterns?from="+from), 200)
	}
}

// TestDraftFaults: what is wrong is said at its field, nothing that was typed is
// lost, and no button signs it.
func TestDraftFaults(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	long := strings.Repeat("x", 9000)
	tests := []struct {
		query url.Values
		field string
		fault string
	}{
		{url.Values{"class": {"box"}, "folders": {"/p"}}, "agent", "Choose one of your agents"},
		{url.Values{"agent": {"stranger@x"}, "class": {"box"}, "folders": {"/p"}}, "agent", "Choose one of your agents"},
		{url.Values{"agent": {"group:nobody"}, "class": {"box"}, "folders": {"/p"}}, "agent", "Choose one of your agents"},
		{url.Values{"agent": {claude}}, "", "Choose what may run"},
		{url.Values{"agent": {claude}, "class": {"everything"}}, "", "Choose what may run"},
		{url.Values{"agent": {claude}, "class": {"box"}}, "folders", "Name a folder"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {" \n"}}, "folders", "Name a folder"},
		{url.Values{"agent": {claude}, "class": {"box"}, "folders": {"/p\n/q"}}, "folders", "exactly one folder"},
		{url.Values{"agent": {claude}, "class": {"box"}, "folders": {"projects"}}, "folders", "Not one whole folder: projects"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/"}}, "folders", "Not one whole folder: /"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/p/../.."}}, "folders", "Not one whole folder"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/home/*/p"}}, "folders", "Not one whole folder"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/<b>p</b>/*"}}, "folders", "Not one whole folder: /<b>p</b>/*"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {strings.Repeat("/p\n", 70)}}, "folders", "At most 64"},
		{url.Values{"agent": {claude}, "class": {"install"}, "folders": {"/p"}}, "hosts", "Name the hosts"},
		{url.Values{"agent": {claude}, "class": {"install"}, "folders": {"/p"}, "hosts": {"https://a.example/"}}, "hosts", "Not a host’s name that can stand here: https://a.example/"},
		{url.Values{"agent": {claude}, "class": {"install"}, "folders": {"/p"}, "hosts": {"*.a.example"}}, "hosts", "Not a host’s name"},
		{url.Values{"agent": {claude}, "class": {"install"}, "folders": {"/p"}, "hosts": {"A.example"}}, "hosts", "Not a host’s name"},
		{url.Values{"agent": {claude}, "class": {"own"}, "folders": {"/p"}, "programs": {"/bin/rg"}}, "programs", "Not a program’s name: /bin/rg"},
		{url.Values{"agent": {claude}, "class": {"own"}, "folders": {"/p"}, "risk": {"high"}}, "programs", "about programs that you name"},
		{url.Values{"agent": {claude}, "class": {"own"}, "connect": {"1"}, "programs": {"curl"}}, "hosts", "Name the hosts"},
		{url.Values{"agent": {claude}, "class": {"own"}, "programs": {"rg"}, "operations": {"a/b"}, "folders": {"/p"}}, "", "This cannot be a pattern"},
		{url.Values{"agent": {claude}, "class": {"inspect"}, "days": {"0"}}, "days", "A number of days, 1 to 366"},
		{url.Values{"agent": {claude}, "class": {"inspect"}, "days": {"367"}}, "days", "A number of days, 1 to 366"},
		{url.Values{"agent": {claude}, "class": {"inspect"}, "days": {"ever"}}, "days", "A number of days, 1 to 366"},
		{url.Values{"agent": {claude}, "class": {"inspect"}, "reason": {strings.Repeat("r", 301)}}, "reason", "At most 300 bytes"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/" + long}}, "folders", "too long"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/\xff"}}, "folders", "no text"},
		{url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/p\u202e"}}, "", "This cannot be a pattern"},
	}
	for _, test := range tests {
		test.query.Set("show", "1")
		a := s.get("/patterns/new?" + test.query.Encode())
		says(t, a, test.fault)
		if strings.Contains(a.body, `data-post="/p/trust"`) {
			t.Errorf("%v: it can be signed", test.query)
		}
		if test.field != "" && !regexp.MustCompile(`id="`+test.field+`"[^>]*aria-invalid="true"`).MatchString(a.body) {
			t.Errorf("%v: the fault is not at %s", test.query, test.field)
		}
		for _, field := range []string{"folders", "hosts", "reason"} {
			if typed := test.query.Get(field); typed != "" && typed == strings.TrimSpace(typed) && !strings.Contains(typed, "\xff") && !strings.Contains(html.UnescapeString(a.body), typed) {
				t.Errorf("%v: what was typed into %s is lost", test.query, field)
			}
		}
	}
}

// TestPreviewAndSign goes the way from the form to the change of trust.
func TestPreviewAndSign(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	s.signIn(mara)
	form := s.get("/patterns/new?card=" + ids["read"])
	says(t, form, "New pattern", "For claude", "Look around", "Put together by yourself")
	if !strings.Contains(form.body, `<option value="`+strings.ReplaceAll(html.EscapeString(claude), "+", "&#43;")+`" selected>`) || !strings.Contains(form.body, ">/home/mara/projects/shop</textarea>") {
		t.Errorf("the card's agent and folder are not filled in:\n%s", form.body)
	}
	if strings.Contains(form.body, "data-post=\"/p/trust\"") || strings.Contains(form.body, ` checked`) && strings.Contains(form.body, `name="class" value="safe" checked`) {
		t.Error("the form decides something by itself")
	}
	query := url.Values{"agent": {claude}, "class": {"edit"}, "folders": {"/home/mara/projects/shop/"}, "hosts": {"left.over"}, "days": {" 30 "}, "reason": {"the shop"}, "show": {"1"}}
	preview := s.get("/patterns/new?" + query.Encode())
	says(t, preview, "Change files", "For claude", "Would run without a card", "Would still ask", "4 things were asked in the last 30 days", "None would have been covered",
		"rg -n listen /etc/nginx", "asked once", "its risk is high, the pattern ends at medium", "it is critical, which is asked every time", "/home/mara/projects/shop/**", "30", "the shop")
	silent(t, preview, "left.over")
	says(t, s.get("/patterns/new?lang=de&"+query.Encode()), "Dateien ändern", "sein Risiko ist hoch, das Muster endet bei mittel", "er ist kritisch, was jedes Mal gefragt wird", "Weiter zur Unterschrift")
	body := bodyOf(t, preview, "/p/trust")
	p, err := grant.ParsePattern(body.Params["pattern"])
	if err != nil || body.Operation != api.TrustStandingAdd || p.Class != grant.ClassEdit || p.Agent != claude || p.Write[0] != "/home/mara/projects/shop/**" || len(p.Hosts) > 0 || body.Params["days"] != "30" || body.Params["reason"] != "the shop" {
		t.Fatalf("it would sign %+v: %v", body, err)
	}
	if n := len(s.authority.Patterns()); n != 0 {
		t.Fatalf("looking made %d patterns", n)
	}
	made := s.post("/p/trust", body)
	want(t, made, 200)
	var next struct{ Location string }
	if err := json.Unmarshal([]byte(made.body), &next); err != nil {
		t.Fatal(err)
	}
	says(t, s.get(next.Location+"?lang=en"), "Permit a class of commands to "+claude, "Class Change files", "Reads and writes in /home/mara/projects/shop/**", "Lasts, in days 30", "Reason the shop")
	if n := len(s.authority.Patterns()); n != 0 {
		t.Fatalf("preparing made %d patterns", n)
	}

	// What the authority refuses is said with its reason.
	for _, refused := range []struct {
		err    error
		status int
		kind   string
		says   string
	}{
		{&pages.Refusal{As: pages.ErrInvalid, Reason: "class edit: the pattern holds something else."}, 400, "invalid", "class edit: the pattern holds something else."},
		{&pages.Refusal{As: pages.ErrRefused, Reason: "Too many standing grants. 2000 are in force."}, 409, "refused", "A rule is against it. Nothing was changed. Too many standing grants."},
		{&pages.Refusal{As: pages.ErrBusy, Reason: "Too many changes wait."}, 429, "busy", "too much at once"},
	} {
		s.authority.Refuse(refused.err)
		want(t, s.post("/p/trust", body), refused.status, "urn:vogt:pages:"+refused.kind, refused.says)
	}
	if !errors.Is(&pages.Refusal{As: pages.ErrBusy}, pages.ErrBusy) {
		t.Error("a refusal is not what it wraps")
	}
}

// TestOwnPattern: one that is no class keeps its parts on the way.
func TestOwnPattern(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	query := url.Values{"agent": {"*"}, "class": {"own"}, "programs": {"rm, mkdir"}, "folders": {"/srv/a\n/srv/b"}, "write": {"1"}, "delete": {"1"}, "risk": {"high"}, "show": {"1"}}
	preview := s.get("/patterns/new?" + query.Encode())
	says(t, preview, "mkdir , rm", "For all your agents", "It may delete.", "Reads and writes in /srv/a/** , /srv/b/**", "At most high risk.")
	p, err := grant.ParsePattern(bodyOf(t, preview, "/p/trust").Params["pattern"])
	if err != nil || p.Class != "" || len(p.Does) != 3 || len(p.Write) != 2 || p.MaxRisk != detail.High {
		t.Fatalf("it would sign %+v: %v", p, err)
	}
	query = url.Values{"agent": {claude}, "class": {"own"}, "programs": {"curl"}, "connect": {"1"}, "hosts": {"*.a.example b.example"}, "show": {"1"}}
	says(t, s.get("/patterns/new?"+query.Encode()), "It may contact hosts.", "Contacts only *.a.example , b.example")
}

// TestSuggestions: a suggestion leads to the form, filled in, and from there to exactly
// its pattern.
func TestSuggestions(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	says(t, s.get("/patterns/suggestions"), "No suggestion")
	s.authority.Suggest(
		api.Suggestion{Key: "a", Pattern: gitLog(t), Cards: 41, Examples: []api.Previewed{{Command: "rg -n <b>listen</b> /etc/nginx", Count: 40}, {Command: "rg token=ghp_0123456789abcdef0123456789abcdef0123 /etc", Count: 1}}},
		api.Suggestion{Key: "b", Pattern: class(t, grant.ClassInstall, claude, []string{"/home/mara/projects/shop"}, []string{"registry.example"}), Cards: 3})
	a := s.get("/patterns/suggestions")
	says(t, a, "41 cards of the last 30 days fit this pattern.", "rg -n <b>listen</ b> /etc/nginx", "Install packages through a mirror", "Contacts only registry.example")
	silent(t, a, "ghp_0123456789abcdef")
	links := regexp.MustCompile(`href="(/patterns/new\?[^"]*)"`).FindAllStringSubmatch(a.body, -1)
	if len(links) != 2 {
		t.Fatalf("%d suggestions can be used", len(links))
	}
	for i, want := range []grant.Pattern{gitLog(t), class(t, grant.ClassInstall, claude, []string{"/home/mara/projects/shop"}, []string{"registry.example"})} {
		link := html.UnescapeString(links[i][1])
		silent(t, s.get(link), "Go on to sign")
		preview := s.get(link + "&show=1")
		got, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if signed := bodyOf(t, preview, "/p/trust").Params["pattern"]; signed != string(got) {
			t.Errorf("the suggestion is\n%s\nand what it leads to\n%s", got, signed)
		}
	}
}

func TestPatternFromCard(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	s.signIn(mara)
	if card := s.get("/grants/" + ids["read"]); !strings.Contains(card.body, `href="/patterns/new?card=`+ids["read"]+`"`) {
		t.Error("the card does not lead to a pattern")
	}
	// What nothing may cover does not.
	if card := s.get("/grants/" + ids["crossing"]); strings.Contains(card.body, "/patterns/new") {
		t.Error("a crossing leads to a pattern")
	}
	if err := s.authority.Apply(ids["read"], grant.Deny{Decision: grant.Decision{By: mara, At: grant.At(s.now()), Strength: grant.Click}}); err != nil {
		t.Fatal(err)
	}
	says(t, s.get("/patterns/new?card="+ids["read"]), "The card is closed by now.", "/home/mara/projects/shop")
	want(t, s.get("/patterns/new?card=x"), 404)
	s.authority.AddPerson("eve@evil.example", "Eve")
	s.signIn("eve@evil.example")
	want(t, s.get("/patterns/new?card="+ids["read"]), 404)
	// A folder that is none is not suggested.
	s.signIn(mara)
	odd := "/p\u202e/../*"
	id := s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"ls"}, Context: &grant.Context{Cwd: &statement.File{Path: &odd}}}, detail.Low)
	silent(t, s.get("/patterns/new?card="+id), "\u202e", "U+202E")
}

func TestSafePage(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	a := s.get("/patterns/safe")
	says(t, a, "Safe commands", "They may be used where they are on", "claude off", "ops off", "grep")
	mine := "/patterns/safe?for=" + url.QueryEscape(claude)
	says(t, s.get(mine), "On for claude", "Folders in which it may look around")
	for folders, fault := range map[string]string{"p": "Not one whole folder: p", "/": "Not one whole folder", strings.Repeat("/p\n", 17): "At most 16"} {
		bad := s.get(mine + "&show=1&folders=" + url.QueryEscape(folders))
		says(t, bad, fault)
		if strings.Contains(bad.body, `data-post="/p/trust"`) {
			t.Errorf("%q can be signed", folders)
		}
	}
	body := bodyOf(t, s.get(mine+"&show=1&folders="+url.QueryEscape("/p\r\n/q\r\n")), "/p/trust")
	if body.Operation != api.TrustSafeOn || body.Params["email"] != claude || body.Params["safe"] != `["/p","/q"]` {
		t.Errorf("it would sign %+v", body)
	}
	if all := bodyOf(t, s.get("/patterns/safe?for=&show=1&folders="), "/p/trust"); all.Params["email"] != "" || all.Params["safe"] != "[]" {
		t.Errorf("it would sign %+v", all)
	}
	want(t, s.get("/patterns/safe?for=stranger@x"), 404)
	s.authority.AddStanding(class(t, grant.ClassSafe, claude, []string{"/p"}, nil), nil)
	on := s.get("/patterns/safe")
	says(t, on, "claude on /p", "Off, at once")
	if form := s.get(mine); !strings.Contains(form.body, ">/p</textarea>") {
		t.Error("the form does not begin with what is in force")
	}
	says(t, s.get("/agents/"+url.PathEscape(claude)), "Safe commands on: /p")
	want(t, s.post("/p/safe/off", map[string]string{"email": "stranger@x"}), 404)
	want(t, s.post("/p/safe/off", map[string]string{"email": claude}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) }), 403)
	want(t, s.post("/p/safe/off", map[string]string{"email": claude}), 200)
	says(t, s.get("/patterns/safe"), "claude off")
	want(t, s.post("/p/safe/off", map[string]string{"email": ""}), 200)
	says(t, s.get("/patterns/safe"), "They are off for all")
}

func TestAgentsScope(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	s.signIn(mara)
	page := "/agents/" + url.PathEscape(claude)
	says(t, s.get(page), "Its patterns", "Nothing that narrows its patterns.", "Safe commands off")
	labels := []api.Label{{Label: "secret", Since: s.now().Unix(), GrantID: ids["read"]}, {Label: "foreign", Since: s.now().Unix()}, {Label: "wrote:/p/<b>a</b>", Since: s.now().Unix()}, {Label: "wrote:*", Since: s.now().Unix()}}
	for range 20 {
		labels = append(labels, api.Label{Label: "wrote:/p/more"})
	}
	s.authority.Label(claude, labels...)
	a := s.get(page)
	says(t, a, "It may have seen credentials.", "It has read what strangers wrote.", "It wrote /p/<b>a</b>.", "It wrote more than is remembered.", "12 more")
	body := bodyOfOperation(t, a, api.TrustLabelsEnd)
	if body["email"] != claude {
		t.Errorf("ending labels prepares %v", body)
	}
	id := s.authority.NewTrust(pages.NewTrust{Operation: api.TrustGroupSet, Params: map[string]string{"name": "builders", "agents": claude + "," + ops}})
	says(t, s.get("/trust/"+id), "Make the group builders these agents", claude+", "+ops)
}

// bodyOfOperation finds the parameters of the button that prepares an operation.
func bodyOfOperation(t *testing.T, a answer, operation string) map[string]string {
	t.Helper()
	for _, m := range regexp.MustCompile(`data-post="/p/trust" data-body="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
		var body struct {
			Operation string
			Params    map[string]string
		}
		if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &body); err != nil {
			t.Fatal(err)
		}
		if body.Operation == operation {
			return body.Params
		}
	}
	t.Fatalf("no button prepares %s", operation)
	return nil
}

// TestTrustWords: the changes about patterns have words of their own.
func TestTrustWords(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	pattern := func(p grant.Pattern) string {
		t.Helper()
		p, err := p.Complete()
		if err != nil {
			t.Fatal(err)
		}
		return wire(t, p)
	}
	digest := strings.Repeat("ab", 32)
	for _, test := range []struct {
		operation string
		params    map[string]string
		en, de    []string
	}{
		{api.TrustAgentAdd, map[string]string{"name": "codex", "public_key": someKey, "safe": `["/p","/q"]`}, []string{"Safe commands in /p, /q"}, []string{"Sichere Befehle in /p, /q"}},
		{api.TrustAgentAdd, map[string]string{"name": "codex", "public_key": someKey, "safe": "off"}, []string{"Safe commands in off: none"}, []string{"aus: keine"}},
		{api.TrustAgentAdd, map[string]string{"name": "codex", "public_key": someKey, "safe": "[]"}, []string{"Safe commands in in no folder"}, []string{"in keinem Ordner"}},
		{api.TrustAgentAdd, map[string]string{"name": "codex", "public_key": someKey, "safe": `<b>{`}, []string{"Safe commands in <b>{"}, nil},
		{api.TrustSafeOn, map[string]string{"email": claude, "safe": `["/p"]`}, []string{"Let " + claude + " look around", "Safe commands in /p", "Commands that only look"}, []string{"mit sicheren Befehlen"}},
		{api.TrustSafeOn, map[string]string{"email": "", "safe": "[]"}, []string{"Let all your agents look around"}, []string{"Alle deine Agenten"}},
		{api.TrustGroupSet, map[string]string{"name": "builders", "agents": ""}, []string{"Make the group builders", "nobody", "leaves it"}, []string{"niemand"}},
		{api.TrustLabelsEnd, map[string]string{"email": claude}, []string{"End the labels of " + claude, "narrows its patterns no more"}, []string{"Kennzeichen"}},
		{api.TrustStandingAdd, map[string]string{"pattern": pattern(class(t, grant.ClassInstall, "group:builders", []string{"/p"}, []string{"a.example"}))},
			[]string{"Permit a class of commands to the group builders", "Class Install packages through a mirror", "Group of agents builders", "whose only network is the hosts below default", "The box is about /p/**", "Network of the box a.example"}, []string{"Der Gruppe builders"}},
		{api.TrustStandingAdd, map[string]string{"pattern": pattern(grant.Pattern{Agent: "*", Files: []string{digest}, Read: []string{"/p/**"}})},
			[]string{"to all your agents", "For all your agents", "Programs with this content (SHA-256) " + digest, "Reads in /p/**"}, []string{"Für alle deine Agenten"}},
		{api.TrustStandingAdd, map[string]string{"pattern": pattern(class(t, grant.ClassBox, claude, []string{"/p"}, nil))},
			[]string{"Only in the box, without a network default"}, nil},
		{api.TrustStandingAdd, map[string]string{"pattern": `{"agent":"*","class":"safe","does":["any"],"box":{"profile":"default"}}`}, []string{"Change something this page has no words for"}, nil},
	} {
		id := s.authority.NewTrust(pages.NewTrust{Operation: test.operation, Params: test.params})
		says(t, s.get("/trust/"+id+"?lang=en"), test.en...)
		says(t, s.get("/trust/"+id+"?lang=de"), test.de...)
	}
}

// TestCoveredCalls: what patterns cover by now is marked, and the card says that it
// asks about the rest.
func TestCoveredCalls(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	ask := func(line string, by ...pages.Covering) string {
		id := s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"sh", "-c", line}}, detail.Medium)
		s.authority.Cover(id, by...)
		return "/grants/" + id
	}
	safe, own, none := pages.Covering{ID: "s-1", Class: grant.ClassSafe}, pages.Covering{ID: "s-2"}, pages.Covering{}
	marked := func(path string) (calls []string) {
		a := s.get(path)
		want(t, a, 200)
		for _, m := range regexp.MustCompile(`<li class="claim"><code>([^<]*)`).FindAllStringSubmatch(a.body, -1) {
			calls = append(calls, strings.TrimSpace(m[1]))
		}
		return calls
	}
	for _, test := range []struct {
		name  string
		path  string
		calls string
		says  string
	}{
		{"two of three", ask("cat a; rm b; ls", safe, safe, none, own), "cat a|ls", "2 of 3 calls are covered by your patterns by now. You are asked about the rest."},
		{"the shell alone", ask("rm b", safe, none), "", ""},
		{"none", ask("rm b", none, none), "", ""},
		{"a list that is too short", ask("cat a; ls", safe, safe), "", ""},
		{"what starts others", ask("nice cat a; rm b", safe, safe, safe, none), "nice cat a|cat a", "1 of 2 calls is covered"},
		{"what starts one that is not", ask("cat a; nice rm b", safe, safe, safe, none), "cat a", "1 of 2 calls is covered"},
	} {
		if got := strings.Join(marked(test.path), "|"); got != test.calls {
			t.Errorf("%s: marked are %q, want %q", test.name, got, test.calls)
		}
		a := s.get(test.path)
		says(t, a, test.says)
		if test.says == "" {
			silent(t, a, "covered by")
		}
	}
	a := s.get(ask("cat a; rm b; ls", safe, safe, none, own))
	says(t, a, "covered by Look around", "covered by s-2")
	want(t, a, 200, `href="/patterns#s-1"`)
	// A call that is not shown counts, and does not mark what starts it.
	long := "nice sh -c '" + strings.Repeat("cat a; ", 40) + "rm b'"
	by := []pages.Covering{safe, safe, safe}
	for range 40 {
		by = append(by, safe)
	}
	id := ask(long, append(by, none)...)
	says(t, s.get(id), "40 of 41 calls are covered")
	for _, call := range marked(id) {
		if call != "cat a" {
			t.Errorf("%q is marked, though not all that it starts is covered", call)
		}
	}
}

func wire(t testing.TB, p grant.Pattern) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// patternGallery adds the pages about patterns, with one of every kind.
func patternGallery(t testing.TB, s *site) map[string]string {
	t.Helper()
	paths := map[string]string{}
	a, shop := s.authority, []string{"/home/mara/projects/shop"}
	a.NewGroup("builders", claude, ops)
	for _, c := range grant.Classes() {
		var hosts []string
		folders := shop
		switch c {
		case grant.ClassInspect:
			folders = nil
		case grant.ClassInstall:
			hosts = []string{"registry.example", "mirror.example"}
		}
		a.AddStanding(class(t, c, claude, folders, hosts), func(g *api.Standing) { g.Uses, g.LastUsedAt, g.Reason = 41, s.now().Unix(), "the shop" })
	}
	a.AddStanding(gitLog(t), func(g *api.Standing) { g.CreatedAt -= 40 * 24 * 3600 })
	a.AddStanding(class(t, grant.ClassEdit, "group:builders", shop, nil), func(g *api.Standing) { g.Paused = "more than 60 uses in a minute" })
	a.AddStanding(class(t, grant.ClassSafe, "*", nil, nil), func(g *api.Standing) { g.Status = grant.Revoked })
	a.Suggest(api.Suggestion{Key: "a", Pattern: gitLog(t), Cards: 41, Examples: []api.Previewed{{Command: "rg -n listen /etc/nginx", Count: 40}}})
	a.Label(claude, api.Label{Label: "secret", Since: s.now().Unix(), GrantID: "g-1"}, api.Label{Label: "foreign", Since: s.now().Unix()}, api.Label{Label: "wrote:/home/mara/projects/shop/" + strings.Repeat("long", 40), Since: s.now().Unix()}, api.Label{Label: "wrote:*", Since: s.now().Unix()})
	covered := a.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"sh", "-c", "cat a.txt; nice cat b.txt; rm b"}}, detail.Medium)
	safe := pages.Covering{ID: "s-1", Class: grant.ClassSafe}
	a.Cover(covered, safe, safe, safe, safe, pages.Covering{})
	paths["card-covered"] = "/grants/" + covered
	paths["patterns"], paths["patterns-over"], paths["patterns-agent"] = "/patterns", "/patterns?over=1", "/patterns?agent="+url.QueryEscape(ops)
	paths["suggestions"], paths["safe"], paths["safe-on"] = "/patterns/suggestions", "/patterns/safe", "/patterns/safe?for="+url.QueryEscape(claude)+"&show=1&folders=/p"
	query := url.Values{"agent": {claude}, "class": {"edit"}, "folders": shop, "show": {"1"}}
	paths["pattern-new"], paths["pattern-preview"] = "/patterns/new?card="+covered, "/patterns/new?"+query.Encode()
	query.Set("class", "own")
	query.Set("folders", strings.Repeat("long", 60))
	query.Set("connect", "1")
	query.Set("days", "no")
	query.Del("agent")
	paths["pattern-faults"] = "/patterns/new?" + query.Encode()
	for name, n := range map[string]pages.NewTrust{
		"trust-pattern": {Operation: api.TrustStandingAdd, Params: map[string]string{"pattern": wire(t, class(t, grant.ClassInstall, claude, shop, []string{"registry.example"})), "days": "90"}},
		"trust-labels":  {Operation: api.TrustLabelsEnd, Params: map[string]string{"email": claude}},
		"trust-group":   {Operation: api.TrustGroupSet, Params: map[string]string{"name": "builders", "agents": claude + "," + ops}},
	} {
		paths[name] = "/trust/" + a.NewTrust(n)
	}
	paths["agent-labels"] = "/agents/" + url.PathEscape(claude)
	return paths
}

// everyPatternPage looks at each page about patterns in both languages, on a phone and
// on a desk.
func everyPatternPage(t *testing.T, b *tab) {
	b.enter()
	paths := patternGallery(t, b.s)
	for _, tongue := range []string{"en", "de"} {
		b.Visit("/patterns?lang=" + tongue) // a cookie keeps it
		for name, path := range paths {
			b.Phone(tongue == "en")
			b.Visit(path)
			b.Shot(name + ".360." + tongue)
			b.Check(name + " on a phone, " + tongue)
			b.Viewport(1440, 900, tongue == "de")
			b.Shot(name + ".1440." + tongue)
			b.Check(name + " on a desk, " + tongue)
			if tongue == "de" {
				b.Viewport(320, 740, false)
				b.Check(name + " at 320 px, " + tongue)
			}
		}
	}
}

// hostilePatterns puts an attack into every field of patterns, and looks at the pages
// that a browser makes of it.
func hostilePatterns(b *tab, agent, attack string) {
	a := b.s.authority
	p := grant.Pattern{Agent: agent, Machine: attack, Programs: []string{attack}, Operations: []string{attack}, Does: []grant.Deed{grant.DeedRead}, Read: []string{"/" + attack + "/**"}, Write: []string{attack}, Hosts: []string{attack}, MaxRisk: detail.Medium}
	a.AddStanding(p, func(g *api.Standing) { g.Reason, g.Paused = attack, attack })
	a.AddStanding(grant.Pattern{Agent: "group:" + attack, Does: []grant.Deed{grant.DeedAny}, Box: &grant.Box{Profile: attack, Workspace: attack}, Files: []string{attack}}, nil)
	a.AddStanding(grant.Pattern{Agent: agent, Class: grant.ClassSafe, Programs: grant.SafeCommands(), Read: []string{"/" + attack + "/**"}}, nil)
	a.NewGroup(attack, agent)
	a.Suggest(api.Suggestion{Key: attack, Pattern: grant.Pattern{Agent: agent, Class: grant.ClassInspect, Programs: []string{attack}}, Cards: 3, Examples: []api.Previewed{{Command: attack, Count: 3, Why: attack}}})
	a.Label(agent, api.Label{Label: attack}, api.Label{Label: "wrote:" + attack, GrantID: attack})
	q := url.Values{}
	for _, field := range []string{"agent", "class", "folders", "hosts", "programs", "operations", "risk", "days", "reason"} {
		q.Set(field, attack)
	}
	whole := url.QueryEscape(attack)
	for _, path := range []string{
		"/patterns", "/patterns?agent=" + whole, "/patterns?agent=" + url.QueryEscape(agent), "/patterns?over=" + whole + "&from=" + whole, "/patterns/suggestions",
		"/patterns/safe", "/patterns/safe?for=" + url.QueryEscape(agent) + "&show=1&folders=" + whole, "/patterns/safe?for=" + url.QueryEscape(agent) + "&show=1&folders=/" + whole,
		"/patterns/new?" + q.Encode(), "/patterns/new?show=1&" + q.Encode(), "/patterns/new?card=" + whole,
		"/patterns/new?show=1&class=edit&folders=/p&agent=" + url.QueryEscape(agent) + "&reason=" + whole,
		"/agents/" + url.PathEscape(agent),
		"/trust/" + a.NewTrust(pages.NewTrust{Operation: api.TrustSafeOn, Params: map[string]string{"email": attack, "safe": attack}}),
		"/trust/" + a.NewTrust(pages.NewTrust{Operation: api.TrustGroupSet, Params: map[string]string{"name": attack, "agents": attack}}),
		"/trust/" + a.NewTrust(pages.NewTrust{Operation: api.TrustStandingAdd, Params: map[string]string{"pattern": attack, "days": attack, "reason": attack}}),
	} {
		b.innocent(path, attack)
	}
}
