package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
)

// exchange is one call that the unmodified client, or a person beside it, made to
// the reference server, and how that answered. Ids and names of the machine are
// placeholders: <idN>, <bot>, <host>.
type exchange struct {
	Flow   string          `json:"flow"`
	Who    string          `json:"who"` // owner, other, agent, admin; "" without a login
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
	Binds  string          `json:"binds"` // placeholder of the id that the answer has
	Again  bool            `json:"again"` // with If-None-Match
	number string          // flow and number in it
}

func exchanges(t *testing.T) (all []exchange) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, n := bufio.NewScanner(f), map[string]int{}
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var e exchange
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		n[e.Flow]++
		e.number = fmt.Sprint(e.Flow[:2], ".", n[e.Flow])
		all = append(all, e)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// ape is a client that speaks as the unmodified one does: the headers that it sends,
// a content type without a body, discovery six times where it runs a command, ids
// percent-encoded, and nothing remembered between calls but the bearer.
type ape struct {
	*scene
	other  *authoritytest.Principal
	ids    map[string]string // of ours, by placeholder
	jwt    map[string]string // by id
	tags   map[string]string // by path
	lie    bool
	last   string          // challenge
	grants map[string]bool // by number: it was approved when it was made
}

func newApe(t *testing.T, lie bool) *ape {
	t.Helper()
	s := newScene(t)
	a := &ape{scene: s, other: s.Person("other@example.com"), ids: map[string]string{}, jwt: map[string]string{}, tags: map[string]string{}, lie: lie, grants: map[string]bool{}}
	// The reference gives an agent that enrols so no safe commands.
	var list []api.Standing
	s.owner.Get(api.PathStanding).Into(&list)
	for _, st := range list {
		s.owner.Do("DELETE", api.PathStanding+"/"+st.ID, nil).Want(200)
	}
	return a
}

// fill puts our names into a recorded text. In a path they are percent-encoded.
func (a *ape) fill(text string, path bool) string {
	escape := func(s string) string { return s }
	if path {
		escape = url.QueryEscape
	}
	pairs := []string{"<bot>", escape(a.agent.Email), "<host>", host(a.Server)}
	for k, v := range a.ids {
		pairs = append(pairs, k, v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// bearer is the login, or grant token, with which a call is made.
func (a *ape) bearer(e exchange, path string) string {
	if strings.HasSuffix(path, "/consume") && e.Who != "login" {
		return a.jwt[strings.Split(path, "/")[3]]
	}
	switch e.Who {
	case "owner":
		return a.owner.Bearer
	case "other":
		return a.other.Bearer
	case "agent", "login", "browser":
		return a.agent.Bearer
	case "admin":
		if e.Status == 403 {
			return "wrong"
		}
		return authoritytest.ManagementToken
	}
	return ""
}

// body is what the client sends: permissions are computed again from the details,
// since the record has them cut.
func (a *ape) body(t *testing.T, e exchange) []byte {
	t.Helper()
	if len(e.Body) == 0 {
		return nil
	}
	text := a.fill(string(e.Body), false)
	if e.Path != "/api/grants" {
		return []byte(strings.ReplaceAll(text, "<jwt>", a.jwt[a.ids["<id1>"]]))
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	details, _ := body["authorization_details"].([]any)
	var permissions []string
	for i := range details {
		b, err := json.Marshal(details[i])
		if err != nil {
			t.Fatal(err)
		}
		var w detail.Wire
		if err := json.Unmarshal(b, &w); err != nil {
			t.Fatal(err)
		}
		if a.lie {
			w.CLI, w.Operation, w.Risk, w.Action, w.Display, w.Constraints = "ls", "ls.list", "low", "read", "List files", nil
			w.Chain = []detail.Resource{{Name: "filesystem", Selector: map[string]string{"path": "/home/p"}}}
		}
		w.Permission = w.CanonicalPermission()
		details[i], permissions = w, append(permissions, w.Permission)
	}
	if details != nil {
		body["permissions"] = permissions
	}
	if a.lie {
		body["requester"], body["target_host"] = a.owner.Email, "elsewhere"
		body["status"], body["approved_automatically"] = "approved", true
		c, _ := body["execution_context"].(map[string]any)
		if c == nil {
			c = map[string]any{}
		}
		c["cwd"], c["adapter_id"], c["resolved_executable"], c["argv_hash"] = map[string]string{"path": "/home/p"}, "ls", "/bin/ls", "SHA-256:"+strings.Repeat("0", 64)
		body["execution_context"] = c
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// play makes the call and returns our answer.
func (a *ape) play(t *testing.T, e exchange) authoritytest.Answer {
	t.Helper()
	path := a.fill(e.Path, true)
	c := &authoritytest.Client{S: a.Server, Bearer: a.bearer(e, path)}
	headers := []string{"User-Agent", "node", "Accept", "*/*", "Accept-Encoding", "gzip, deflate", "Sec-Fetch-Mode", "cors"}
	body := a.body(t, e)
	switch {
	case e.Again:
		headers = append(headers, "If-None-Match", a.tags[path])
	case strings.HasSuffix(path, "/authenticate"):
		body = a.signed(t, e, body)
	case strings.HasPrefix(e.Path, "/token") && bytes.HasPrefix(body, []byte(`"`)):
		var form string
		if err := json.Unmarshal(body, &form); err != nil {
			t.Fatal(err)
		}
		body, headers = []byte(form), append(headers, "Content-Type", "application/x-www-form-urlencoded")
	case strings.HasSuffix(path, "/consume"):
		headers = append(headers, "Content-Type", "")
	}
	if e.Method == "POST" && e.Path == "/api/grants" && e.Flow > "07" {
		for range 6 {
			a.Stranger().Do("GET", "/.well-known/openid-configuration", nil, headers[:8]...).Want(200)
		}
	}
	var sent any
	if len(body) > 0 {
		sent = body
	}
	got := c.Do(e.Method, path, sent, headers...)
	if tag := got.Header.Get("ETag"); tag != "" {
		a.tags[path] = tag
	}
	a.remember(e, path, got)
	return got
}

// signed answers the last challenge, with another key where the record was refused.
func (a *ape) signed(t *testing.T, e exchange, body []byte) []byte {
	t.Helper()
	var in map[string]string
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	key := a.NewKey("another")
	for _, p := range []*authoritytest.Principal{a.owner, a.other, a.agent} {
		if e.Status == 200 && p.Email == in["id"] {
			key = p.Key
		}
	}
	in["challenge"] = a.last
	var err error
	if in["signature"], err = sshkey.SignLogin(key.Private, a.last); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (a *ape) remember(e exchange, path string, got authoritytest.Answer) {
	var v struct {
		ID        string `json:"id"`
		Status    string `json:"status"`
		JWT       string `json:"authz_jwt"`
		Challenge string `json:"challenge"`
	}
	_ = json.Unmarshal(got.Body, &v) // what is no such answer has none of these
	if e.Binds != "" && v.ID != "" {
		a.ids[e.Binds] = v.ID
	}
	if v.JWT != "" {
		a.jwt[strings.Split(path, "/")[3]] = v.JWT
	}
	if v.Challenge != "" {
		a.last = v.Challenge
	}
	if e.Method == "POST" && e.Path == "/api/grants" && v.Status == string(grant.Approved) {
		a.grants[e.number] = true
	}
}

// readsOf are the members that the client reads of an answer.
func readsOf(e exchange) []string {
	path, _, _ := strings.Cut(e.Path, "?")
	verb := path[strings.LastIndexByte(path, '/')+1:]
	switch call := e.Method + " " + verb; {
	case e.Again:
		return nil
	case strings.HasPrefix(path, "/api/admin/"):
		switch call {
		case "GET users":
			return []string{"data array", "pagination.has_more bool"}
		case "POST users":
			return []string{"email string", "name string"}
		case "POST ssh-keys":
			return []string{"keyId string", "name string"}
		case "GET ssh-keys":
			return []string{"array", "0.keyId string", "0.name string", "0.publicKey string"}
		}
		return []string{"object"}
	case call == "POST challenge":
		return []string{"challenge string"}
	case call == "POST authenticate":
		return []string{"token string", "expires_in number"}
	case call == "POST enroll":
		return []string{"email string", "name string", "owner string", "approver string"}
	case call == "GET my-agents":
		return []string{"array", "0.name string", "0.email string", "0.isActive bool"}
	case call == "POST grants":
		return []string{"id string", "status string"}
	case call == "GET grants":
		return []string{"data array", "pagination.has_more bool"}
	case call == "POST token" && strings.HasPrefix(path, "/api/grants/"):
		return []string{"authz_jwt string"}
	case call == "POST consume":
		return []string{"status string"}
	case call == "POST batch":
		return []string{"results.0.id string", "results.0.success bool"}
	case call == "POST standing-grants", call == "POST delegations":
		return []string{"id string"}
	case call == "GET standing-grants":
		return []string{"array", "0.id string", "0.status string", "0.request.delegate string", "0.request.audience string", "0.request.resource_chain_template array"}
	case strings.HasSuffix(path, "/yolo-policy") && e.Method != "DELETE":
		return []string{"mode string", "allowPatterns array", "denyPatterns array"}
	case call == "GET delegations", call == "GET sessions":
		return []string{"data array"}
	case strings.HasPrefix(path, "/api/grants/<id") && e.Method == "GET":
		return []string{"id string", "status string"}
	case path == "/" || path == "/authorize" || path == "/token" || path == "/.well-known/openid-configuration":
		return nil
	}
	return []string{"object|array"}
}

// TestReplay makes every recorded call to our server. It answers as the reference
// did, but where a reason says otherwise, with all that the client reads.
func TestReplay(t *testing.T) {
	t.Parallel()
	a := newApe(t, false)
	for _, e := range exchanges(t) {
		got := a.play(t, e)
		want := e.Status
		reason, differs := differently()[e.number]
		if differs {
			want = reason.status
		}
		if got.Status/100 != want/100 || differs && got.Status != want {
			t.Errorf("%s %s %s by %q: %d, want %d\n%.300s", e.number, e.Method, e.Path, e.Who, got.Status, want, got.Body)
			continue
		}
		if fields := readsOf(e); got.Status/100 == 2 && fields != nil {
			reads(t, got, fields...)
		}
		if got.Status/100 >= 4 && e.Path != "/token" {
			if p := got.Problem(got.Status); p.Detail == "" {
				t.Errorf("%s: the client prints nothing: %+v", e.number, p)
			}
		}
	}
}

// different is a call that we answer otherwise than the reference, and why.
type different struct {
	status int
	why    string
}

func differently() map[string]different {
	const (
		there    = "the test's own people are there already"
		pages    = "people are led to the pages; any status is a server that is reached"
		agents   = "an agent enrols nobody"
		answered = "asking again finds the answer that has not been used, in the place of a second card"
		crossing = "another user's rights need a signature made for it, and once"
		fresh    = "codes and assertions are good once: those of the record are not ours"
	)
	return map[string]different{
		"01.2": {409, there}, "01.4": {409, there}, "03.1": {409, there},
		"02.4": {302, pages}, "03.8": {302, pages}, "19.2": {302, pages},
		"02.11": {200, "who exists is not told at the challenge (weakness 28)"},
		"03.10": {403, agents}, "15.10": {403, agents},
		"04.3": {201, "timed without a duration waits (disagreement 22)"}, "09.14": {201, "timed without a duration waits (disagreement 22)"},
		"06.2": {200, "an empty body is {} (shim 1)"}, "06.6": {409, "approved by 06.2"},
		"06.44": {409, answered}, "12.9": {409, answered}, "12.13": {409, answered},
		"10.20": {409, "the record has its paths cut, so that the command is one that was always allowed"},
		"10.27": {400, "a capability without a command binds nothing; it is a standing grant here"}, "10.29": {400, "as 10.27"},
		"11.6": {403, crossing}, "11.8": {400, crossing}, "11.10": {400, crossing}, "11.19": {403, crossing}, "11.21": {400, crossing},
		"13.14": {400, "an account of a model is nothing that a pattern covers (decision 20)"}, "13.16": {404, "as 13.14"},
		"15.11": {401, fresh}, "15.12": {401, fresh}, "17.4": {400, fresh},
		"17.2": {404, "people log in on the pages, where no other origin's cookie counts"},
		"18.1": {200, "agent_id is id (shim 7)"}, "18.2": {200, "agent_id is id (shim 7)"}, "18.3": {200, "agent_id is id (shim 7)"},
		"19.1": {200, "a bearer may read who it is"},
	}
}

// TestReplayWithLies makes every recorded call as a client that lies about program,
// detail, risk, folder, host and requester in each request. It must not be approved
// where the honest one was not, and nothing that it says of itself is believed.
func TestReplayWithLies(t *testing.T) {
	t.Parallel()
	honest, liar := newApe(t, false), newApe(t, true)
	for _, e := range exchanges(t) {
		honest.play(t, e)
		got := liar.play(t, e)
		if liar.grants[e.number] && !honest.grants[e.number] {
			t.Errorf("%s: lying is approved: %.600s", e.number, got.Body)
		}
		if e.Method != "POST" || e.Path != "/api/grants" || got.Status/100 != 2 {
			continue
		}
		var g api.Grant
		if got.Into(&g); g.Requester != liar.agent.Email || g.Owner != liar.owner.Email {
			t.Errorf("%s: it asks as %s of %s", e.number, g.Requester, g.Owner)
		}
		if c := g.Request.Context; c != nil && len(c.Argv) > 0 && c.ArgvHash != detail.ArgvHash(c.Argv) {
			t.Errorf("%s: its argv_hash is believed: %s", e.number, c.ArgvHash)
		}
	}
	// What a lie said to be a harmless ls is what it is.
	for argv, risk := range map[string]string{"rm -rf /home/p": "critical", "sudo id": "critical", "curl http://example.com": "high"} {
		body := shaped(liar.agent.Email, strings.Fields(argv)...)
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var g api.Grant
		liar.agent.Post("/api/grants", liar.body(t, exchange{Path: "/api/grants", Body: raw})).Into(&g)
		if g.Status != grant.Pending || g.Risk != risk {
			t.Errorf("%q: %s, %s", argv, g.Status, g.Risk)
		}
	}
}
