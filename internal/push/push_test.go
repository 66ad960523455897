package push_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/push"
)

func b64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decrypt reads a message as a browser does: RFC 8188, 2 and RFC 8291, 3.4, with
// nothing of the library that encrypts.
func decrypt(t *testing.T, body, private, auth []byte) []byte {
	t.Helper()
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		t.Fatalf("%d bytes are no message", len(body))
	}
	salt, size, sender, sealed := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:21+int(body[20])], body[21+int(body[20]):]
	if len(sealed) > int(size) {
		t.Fatalf("more than one record: %d bytes of %d", len(sealed), size)
	}
	own, err := ecdh.P256().NewPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		t.Fatal(err)
	}
	key := func(secret, salt []byte, info string, n int) []byte {
		b, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ikm := key(shared, auth, "WebPush: info\x00"+string(own.PublicKey().Bytes())+string(sender), 32)
	block, err := aes.NewCipher(key(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, key(ikm, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain = []byte(strings.TrimRight(string(plain), "\x00"))
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		t.Fatalf("the record has no end: %q", plain)
	}
	return plain[:len(plain)-1]
}

// TestDecoder holds the decoder against the example of RFC 8291, section 5.
func TestDecoder(t *testing.T) {
	t.Parallel()
	const body = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	got := decrypt(t, b64(t, body), b64(t, "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), b64(t, "BTBZMqHH6r4Tts7J_aSIgg"))
	if string(got) != "When I grow up, I want to be a watermelon" {
		t.Errorf("%q", got)
	}
}

// browser is a subscription with its secrets.
type browser struct {
	push.Subscription
	private, auth []byte
}

func newBrowser(t *testing.T, endpoint, language string) browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := browser{private: key.Bytes(), auth: make([]byte, 16)}
	if _, err := rand.Read(b.auth); err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	b.Subscription = push.Subscription{Endpoint: endpoint, P256dh: enc(key.PublicKey().Bytes()), Auth: enc(b.auth), Language: language}
	return b
}

// service is a push service: it keeps what comes and answers as told.
type service struct {
	mu     sync.Mutex
	status map[string]int // by path; 201 where nothing is said
	got    chan received
}

type received struct {
	path   string
	header http.Header
	body   []byte
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	status := s.status[r.URL.Path]
	s.mu.Unlock()
	if status == http.StatusTemporaryRedirect {
		w.Header().Set("Location", "/elsewhere")
	}
	if status == 0 {
		status = 201
	}
	w.WriteHeader(status)
	s.got <- received{r.Host + r.URL.Path, r.Header, body}
}

// client calls the service whatever the name.
func (s *service) client(t *testing.T) *http.Client {
	t.Helper()
	web := httptest.NewTLSServer(s)
	t.Cleanup(web.Close)
	c := push.PublicClient()
	c.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is another name's
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, web.Listener.Addr().String())
		},
	}
	return c
}

// source is the authority's part.
type source struct {
	mu       sync.Mutex
	waits    map[string]push.Waiting
	browsers map[string][]push.Subscription
	dropped  chan string
	looked   chan string
	asked    int // for somebody's browsers
}

func (s *source) Waits(_ context.Context, id string) (push.Waiting, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.looked <- id }()
	if id == "broken" {
		return push.Waiting{}, true, errors.New("broken")
	}
	w, ok := s.waits[id]
	if !ok {
		w.Person = "mara@example.com" // who was to answer, and has
	}
	return w, ok, nil
}

func (s *source) Browsers(_ context.Context, person string) ([]push.Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.browsers[person], nil
}

func (s *source) Drop(_ context.Context, person, endpoint string) error {
	s.dropped <- person + " " + endpoint
	return nil
}

type words struct{}

func (words) Push(language, agent, risk string) (string, string, error) {
	return "Vogt", language + ": " + agent + " " + risk, nil
}
func (words) PushAccount(language string) (string, string, error) {
	return "Vogt", language + ": account", nil
}

// run lets a sender send until stop, which waits for what it is doing.
func run(s *push.Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	return func() { cancel(); <-ended }
}

func start(t *testing.T) (*push.Sender, *service, *source) {
	t.Helper()
	s, service, source := prepare(t)
	t.Cleanup(run(s))
	return s, service, source
}

func prepare(t *testing.T) (*push.Sender, *service, *source) {
	t.Helper()
	service := &service{status: map[string]int{}, got: make(chan received, 100)}
	source := &source{waits: map[string]push.Waiting{}, browsers: map[string][]push.Subscription{}, dropped: make(chan string, 100), looked: make(chan string, 100)}
	scalar := make([]byte, 32)
	scalar[31] = 7
	public, private, err := push.KeyPair(scalar)
	if err != nil {
		t.Fatal(err)
	}
	s := push.New(push.Config{
		Public: public, Private: private, Contact: "ops@example.com", Pages: "https://vogt.example", Hosts: []string{"push.example", "*.below.example"},
		Source: source, Words: words{}, Client: service.client(t),
	})
	return s, service, source
}

const grantID = "7c1e6c1e-5b0c-4f6c-9a53-0d6a5d9b2f11"

// TestMessage: what a browser gets, and what its push service learns.
func TestMessage(t *testing.T) {
	t.Parallel()
	s, service, source := start(t)
	b := newBrowser(t, "https://push.example/mara", "de")
	source.waits[grantID] = push.Waiting{Person: "mara@example.com", Agent: "helper", Risk: "high"}
	source.browsers["mara@example.com"] = []push.Subscription{b.Subscription}
	s.Pending(grantID)
	r := <-service.got
	var m push.Message
	if err := json.Unmarshal(decrypt(t, r.body, b.private, b.auth), &m); err != nil {
		t.Fatal(err)
	}
	want := push.Message{Type: "grant-pending", GrantID: grantID, Title: "Vogt", Body: "de: helper high", Link: "https://vogt.example/grants/" + grantID}
	if m != want {
		t.Errorf("%+v", m)
	}
	for header, want := range map[string]string{"Content-Encoding": "aes128gcm", "Ttl": "86400", "Urgency": "high", "Topic": strings.ReplaceAll(grantID, "-", "")} {
		if got := r.header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	checkVAPID(t, r.header.Get("Authorization"), s.Public)

	s.Announce("mara@example.com")
	r = <-service.got
	if err := json.Unmarshal(decrypt(t, r.body, b.private, b.auth), &m); err != nil || m.Type != "account" || m.Link != "https://vogt.example/account" {
		t.Errorf("%+v %v", m, err)
	}
}

// checkVAPID verifies the authorization of RFC 8292, 3.
func checkVAPID(t *testing.T, header, public string) {
	t.Helper()
	rest, ok := strings.CutPrefix(header, "vapid t=")
	jwt, key, ok2 := strings.Cut(rest, ", k=")
	if !ok || !ok2 || key != public {
		t.Fatalf("%q", header)
	}
	parts := strings.Split(jwt, ".")
	point, sig := b64(t, key), b64(t, parts[2])
	pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(pub, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the signature does not verify")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(b64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Aud != "https://push.example" || claims.Sub != "mailto:ops@example.com" || time.Until(time.Unix(claims.Exp, 0)) > 24*time.Hour {
		t.Errorf("%+v", claims)
	}
}

// TestOnlyWhatWaits: who answered meanwhile is not told any more.
func TestOnlyWhatWaits(t *testing.T) {
	t.Parallel()
	s, _, source := prepare(t)
	stop := run(s)
	for _, id := range []string{"answered", "broken"} {
		s.Pending(id)
		<-source.looked
	}
	stop()
	if source.asked != 0 {
		t.Error("her browsers were looked up")
	}
	s, service, source := prepare(t)
	b := newBrowser(t, "https://push.example/mara", "en")
	source.browsers["mara@example.com"] = []push.Subscription{b.Subscription}
	source.waits["waits"] = push.Waiting{Person: "mara@example.com"}
	defer run(s)()
	s.Pending("waits")
	r := <-service.got
	if m := string(decrypt(t, r.body, b.private, b.auth)); !strings.Contains(m, `"waits"`) {
		t.Errorf("she is told %s", m)
	}
}

// TestGone: a subscription that is over is forgotten, another trouble is not.
func TestGone(t *testing.T) {
	t.Parallel()
	s, service, source := start(t)
	service.status = map[string]int{"/gone": 410, "/missing": 404, "/busy": 429, "/broken": 500, "/moved": 307, "/mine": 201}
	var all []push.Subscription
	for path := range service.status {
		all = append(all, newBrowser(t, "https://push.example"+path, "en").Subscription)
	}
	// One whose host is no longer allowed is over, too, and not called.
	all = append(all, newBrowser(t, "https://elsewhere.example/x", "en").Subscription)
	source.browsers["mara@example.com"] = all
	s.Announce("mara@example.com")
	dropped := map[string]bool{}
	for range 3 {
		dropped[<-source.dropped] = true
	}
	for _, want := range []string{"push.example/gone", "push.example/missing", "elsewhere.example/x"} {
		if !dropped["mara@example.com https://"+want] {
			t.Errorf("%s is not forgotten: %v", want, dropped)
		}
	}
	for range 6 {
		if r := <-service.got; strings.Contains(r.path, "elsewhere") {
			t.Errorf("%s was called", r.path)
		}
	}
	if len(source.dropped) != 0 {
		t.Errorf("also forgotten: %s", <-source.dropped)
	}
}

// TestFlood: one person is told ten times at once, and another's is not held up.
func TestFlood(t *testing.T) {
	t.Parallel()
	s, service, source := start(t)
	for _, who := range []string{"mara", "omar"} {
		source.browsers[who] = []push.Subscription{newBrowser(t, "https://push.example/"+who, "en").Subscription}
		source.waits[who] = push.Waiting{Person: who}
	}
	for range 40 {
		s.Pending("mara")
	}
	for range 40 {
		<-source.looked
	}
	s.Pending("omar")
	told := map[string]int{}
	for told["push.example/omar"] == 0 {
		told[(<-service.got).path]++
	}
	if told["push.example/mara"] > 11 {
		t.Errorf("%v", told)
	}
}

// TestEndpoints: where messages may be sent.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	hosts := []string{"push.example", "*.below.example"}
	for endpoint, want := range map[string]bool{
		"https://push.example/x":                            true,
		"https://push.example:443/x":                        true,
		"https://PUSH.example/x?y":                          true,
		"https://a.below.example/x":                         true,
		"https://a.b.below.example/x":                       true,
		"https://below.example/x":                           false,
		"https://evilbelow.example/x":                       false,
		"https://push.example.evil.test/x":                  false,
		"https://evil.test/push.example":                    false,
		"https://push.example@evil.test/x":                  false,
		"https://user@push.example/x":                       false,
		"https://evil.test#push.example":                    false,
		"https://evil.test\\@push.example/x":                false,
		"http://push.example/x":                             false,
		"https://push.example:8443/x":                       false,
		"https://127.0.0.1/x":                               false,
		"https://[::1]/x":                                   false,
		"https://2130706433/x":                              false,
		"https://localhost/x":                               false,
		"https://push.example./x":                           false,
		"file:///etc/passwd":                                false,
		"https:push.example":                                false,
		"//push.example/x":                                  false,
		"":                                                  false,
		"https://push.example/" + strings.Repeat("x", 2000): false,
		"https://push.example/\r\nX: y":                     false,
	} {
		if err := push.CheckEndpoint(endpoint, hosts); (err == nil) != want {
			t.Errorf("%.60q: %v", endpoint, err)
		}
	}
	good := newBrowser(t, "", "")
	if err := push.CheckKeys(good.P256dh, good.Auth); err != nil {
		t.Error(err)
	}
	for name, keys := range map[string][2]string{
		"no point": {"AAAA", good.Auth}, "a point beside the curve": {"B" + strings.Repeat("A", 86), good.Auth},
		"short auth": {good.P256dh, "AAAA"}, "nothing": {"", ""}, "swapped": {good.Auth, good.P256dh},
	} {
		if push.CheckKeys(keys[0], keys[1]) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestPublicOnly: whatever a name resolves to, no private address is called.
func TestPublicOnly(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 10)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			reached <- struct{}{}
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		resp, err := push.PublicClient().Get("https://" + host + ":" + port + "/")
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "not a public address") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if len(reached) != 0 {
		t.Error("the port was reached")
	}
}
