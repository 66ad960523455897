// Package push tells people's browsers of requests that wait, by Web Push: RFC
// 8030 (delivery), RFC 8291 (encryption) and RFC 8292 (who sends).
//
// It owns which endpoints may be called and how, the message on the wire, and
// the wait before one is sent: what is answered meanwhile needs no push. It
// leaves out who subscribed and where that is kept (authority), and the words,
// which come from the pages' catalogs.
package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
	"golang.org/x/time/rate"
)

// Message is what a browser gets, encrypted. It is shown on lock screens and
// passes the memory of browsers, so nothing of the request itself is in it.
type Message struct {
	Type    string `json:"type"` // grant-pending or account
	GrantID string `json:"grant_id,omitempty"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Link    string `json:"deep_link"` // on the pages' origin
}

// The types of messages.
const (
	GrantPending = "grant-pending"
	Account      = "account"
)

// Subscription is one browser of one person.
type Subscription struct {
	Endpoint, P256dh, Auth string // keys are base64url
	Language               string
}

// Waiting is a request for which a person is asked.
type Waiting struct {
	Person, Agent, Risk string
}

// Source is the authority, as far as this package needs it.
type Source interface {
	// Waits reports whether the request waits still, and for whom.
	Waits(ctx context.Context, grantID string) (Waiting, bool, error)
	// Browsers lists the subscriptions of a person in good standing.
	Browsers(ctx context.Context, person string) ([]Subscription, error)
	// Drop removes a subscription that its push service no longer knows.
	Drop(ctx context.Context, person, endpoint string) error
}

// Words are the texts of messages in the language of a subscription.
type Words interface {
	Push(language, agent, risk string) (title, body string, err error)
	PushAccount(language string) (title, body string, err error)
}

// Config is what a Sender works with. Public and Private are the key of RFC 8292
// in base64url: an uncompressed P-256 point and its scalar.
type Config struct {
	Public, Private string
	Contact         string // https address, or a mail address
	Pages           string // origin of the pages
	Hosts           []string
	Source          Source
	Words           Words
	Log             *slog.Logger
	// Patience is how long a request may be answered before anybody is told.
	Patience time.Duration
	// Client makes the calls; nil is one that reaches public addresses only.
	Client *http.Client
}

const (
	queueLength = 256
	senders     = 4
	life        = 24 * time.Hour // that a push service keeps a message for
	callLimit   = 15 * time.Second
	// perMinute is how often one person is told; the page shows the rest.
	perMinute = 10
	// maxEndpoint is the longest address of a subscription.
	maxEndpoint = 1024
)

// Sender sends messages, a few at a time.
type Sender struct {
	Config
	queue chan job

	mu    sync.Mutex
	rates map[string]*rate.Limiter
}

type job struct {
	grant  string    // "" for something about the account
	person string    // of the account
	due    time.Time // not before
}

// New returns a Sender; it sends while Run runs.
func New(c Config) *Sender {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Client == nil {
		c.Client = PublicClient()
	}
	return &Sender{Config: c, queue: make(chan job, queueLength), rates: map[string]*rate.Limiter{}}
}

// Pending has the person told whom a request waits for, unless it is answered
// soon. It does not block.
func (s *Sender) Pending(grantID string) {
	s.put(job{grant: grantID, due: time.Now().Add(s.Patience)})
}

// Announce has a person told that something happened to the account.
func (s *Sender) Announce(person string) { s.put(job{person: person}) }

func (s *Sender) put(j job) {
	if len(s.Hosts) == 0 {
		return // push is off
	}
	select {
	case s.queue <- j:
	default:
		s.Log.Warn("a push message was dropped: too many are waiting", "grant", j.grant)
	}
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range senders {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case j := <-s.queue:
					s.do(ctx, j)
				}
			}
		})
	}
	workers.Wait()
}

func (s *Sender) do(ctx context.Context, j job) {
	if wait := time.Until(j.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
	var w Waiting
	if j.grant != "" {
		var waits bool
		var err error
		if w, waits, err = s.Source.Waits(ctx, j.grant); err != nil || !waits {
			if err != nil && ctx.Err() == nil {
				s.Log.Error("push: reading a request", "grant", j.grant, "err", err)
			}
			return
		}
		j.person = w.Person
	}
	if !s.mayTell(j) {
		return
	}
	browsers, err := s.Source.Browsers(ctx, j.person)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("push: reading subscriptions", "err", err)
	}
	for _, b := range browsers {
		m, err := s.message(j, w, b.Language)
		if err == nil {
			err = s.Send(ctx, b, m)
		}
		switch {
		case errors.Is(err, ErrGone):
			err = s.Source.Drop(ctx, j.person, b.Endpoint)
			fallthrough
		default:
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("push: a message was not delivered", "host", hostOf(b.Endpoint), "err", err)
			}
		}
	}
}

// mayTell bounds how often a person is told of requests. What concerns the
// account always passes.
func (s *Sender) mayTell(j job) bool {
	if j.grant == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.rates[j.person]
	if l == nil {
		if len(s.rates) >= 4096 {
			clear(s.rates) // a forgotten one starts full again
		}
		l = rate.NewLimiter(rate.Every(time.Minute/perMinute), perMinute)
		s.rates[j.person] = l
	}
	return l.Allow()
}

func (s *Sender) message(j job, w Waiting, language string) (m Message, err error) {
	if j.grant == "" {
		m = Message{Type: Account, Link: s.Pages + "/account"}
		m.Title, m.Body, err = s.Words.PushAccount(language)
		return m, err
	}
	m = Message{Type: GrantPending, GrantID: j.grant, Link: s.Pages + "/grants/" + url.PathEscape(j.grant)}
	m.Title, m.Body, err = s.Words.Push(language, w.Agent, w.Risk)
	return m, err
}

// ErrGone: the push service no longer knows the subscription.
var ErrGone = errors.New("push: the subscription is over")

// Send encrypts a message for one browser and gives it to the browser's push
// service.
func (s *Sender) Send(ctx context.Context, to Subscription, m Message) error {
	// Looked at again: what was allowed when it was stored need not be now.
	if err := CheckEndpoint(to.Endpoint, s.Hosts); err != nil {
		return ErrGone
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	topic := strings.ReplaceAll(m.GrantID, "-", "") // at most 32 characters of base64url: RFC 8030, 5.4
	if len(topic) > 32 {
		topic = ""
	}
	resp, err := webpush.SendNotificationWithContext(ctx, body, &webpush.Subscription{
		Endpoint: to.Endpoint, Keys: webpush.Keys{P256dh: to.P256dh, Auth: to.Auth},
	}, &webpush.Options{
		HTTPClient: s.Client, Subscriber: s.Contact, VAPIDPublicKey: s.Public, VAPIDPrivateKey: s.Private,
		TTL: int(life / time.Second), Urgency: webpush.UrgencyHigh, Topic: topic, RecordSize: 2048,
	})
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which is as good as a key
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return ErrGone
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("push: the push service answered %d", resp.StatusCode)
	}
	return nil
}

func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// CheckEndpoint accepts the address of a subscription at one of the hosts. A
// host that begins with "*." stands for all names below the rest. The error says
// what is wrong.
func CheckEndpoint(endpoint string, hosts []string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || len(endpoint) > maxEndpoint:
		return errors.New("it is not an address")
	case u.Scheme != "https" || u.Opaque != "":
		return errors.New("it is not an https address")
	case u.User != nil || u.Fragment != "":
		return errors.New("it carries more than host and path")
	case u.Port() != "" && u.Port() != "443":
		return errors.New("it names a port")
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil {
		return errors.New("it names no host")
	}
	for _, allowed := range hosts {
		if below, wild := strings.CutPrefix(allowed, "*"); host == allowed || wild && strings.HasSuffix(host, below) && len(host) > len(below) {
			return nil
		}
	}
	return errors.New("its host is no push service that the operator has allowed")
}

// CheckKeys accepts the keys of a subscription (RFC 8291, 3.1 and 3.2).
func CheckKeys(p256dh, auth string) error {
	if err := checkPoint(p256dh); err != nil {
		return err
	}
	if b, err := decode(auth); err != nil || len(b) != 16 {
		return errors.New("auth is not 16 bytes in base64url")
	}
	return nil
}

// PublicClient calls public addresses only, whatever a name resolves to at the
// moment of the call; follows no redirects; uses no proxy.
func PublicClient() *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: controlPublic}
	return &http.Client{
		Timeout: callLimit,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 5 * time.Second,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
