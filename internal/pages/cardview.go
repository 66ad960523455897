package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"vogt/internal/audit/mask"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

// How much of a long text a card shows before "all on one page", in bytes, and
// how many arguments it lists openly and at all.
const (
	textShown  = 8 << 10
	textTall   = 1200          // characters
	maskedMost = 4 * textShown // searched for secrets, in bytes
	argsOpen   = 12
	argsShown  = 64
	argsWhole  = 2000
	argShown   = 1 << 10
	reasonMost = 300 // characters
)

// ask is the heading of a card. It says what kind of thing is asked; the
// program's name in it is the only word that comes from outside.
type ask struct {
	Kind    string // run, runas, connect, permissions, nothing
	Program string
	User    string
	To      string // host and port
	Count   int    // arguments or permissions
}

func askOf(argv []string, r grant.Request) ask {
	switch {
	case r.Connect != nil && len(argv) == 0:
		return ask{Kind: "connect", To: whereTo(*r.Connect)}
	case len(argv) > 0 && r.RunAs != "":
		user, _ := firstRunes(r.RunAs, 40)
		return ask{Kind: "runas", Program: baseName(argv[0]), User: user, Count: len(argv) - 1}
	case len(argv) > 0:
		return ask{Kind: "run", Program: baseName(argv[0]), Count: len(argv) - 1}
	case len(r.Permissions) > 0 || len(r.Details) > 0:
		return ask{Kind: "permissions", Count: max(len(r.Permissions), len(r.Details))}
	}
	return ask{Kind: "nothing"}
}

// whereTo is the host and port of a connection, as they stand in its statement.
func whereTo(c grant.Connect) string { return strings.TrimPrefix(c.Network().Mode(), "connect ") }

// riskName is the level as markup knows it. What nobody rated is critical.
func riskName(r detail.Risk) string {
	if r < detail.Low || r > detail.Critical {
		return detail.Critical.String()
	}
	return r.String()
}

// lineShown is how many characters of a command a list shows, lineMasked how
// many bytes of it are searched for secrets first.
const (
	lineShown  = 160
	lineMasked = 4 << 10
)

// lineOf is a request in one line, for lists.
func lineOf(r grant.Request) string {
	words := r.Command
	if r.Connect != nil {
		return whereTo(*r.Connect)
	}
	if len(words) == 0 {
		words = r.Permissions
	}
	line, more := firstRunes(reading.Line(maskedArgv(firstBytes(words, lineMasked))), lineShown)
	if more {
		line += "…"
	}
	return line
}

// offerView is one reach on the card.
type offerView struct {
	Offer
	Digest  statement.Digest
	Expires int64 // unix seconds
	Until   template.HTML
	Span    template.HTML
	Key     string // of the catalog: once, timed, always, task
	Passkey bool
	Outside bool // no page can give this proof
	Checked bool
	Box     bool // for a connection of a box
}

// standOut is a line of "What stands out".
type standOut struct {
	Tone, Icon string
	Text       template.HTML
}

// argView is one argument of the list.
type argView struct {
	N    int
	Text string
	Left int // characters left out
}

// commandView is the command of a card, as text and as list.
type commandView struct {
	Text     string
	Left     int // characters of the text left out
	Length   int // characters in all
	Args     []argView
	More     int  // arguments left out
	Folded   bool // the list starts closed
	Tall     bool // the text scrolls in a well of its own
	Total    int
	Unbound  bool // the statement does not contain it
	Secrets  int  // values masked
	Page     string
	Unmasked string
}

// cardView is a card as its templates read it.
type cardView struct {
	Card
	ID       string
	Open     bool
	Whole    bool // everything on one page
	Risk     string
	Ask      ask
	Title    template.HTML // "Card 1 of 6"
	Left     remaining
	Place    int // from 1; 0 when it is not among the rows
	Total    int
	Previous string
	Next     string
	Host     string
	HostCode string // punycode, where it differs
	Offers   []offerView
	First    statement.Digest // of the narrowest offer; a denial names it
	OnlyKey  bool             // no offer can be accepted on a page
	Mine     bool             // the reader was the first of two to allow it
	Odd      []standOut
	Command  commandView
	Does     *doesView // nil without a command
	Why      string    // what gives it its risk, for the catalog
	Says     string
	SaysMore bool
	Facts    []factView
	Fields   []fieldView
	Digest   statement.Digest
	Outcome  outcomeView
}

func (s *server) cardView(v *visit, id string, inbox Inbox) (*cardView, error) {
	card, err := s.backend.Cards.Card(v.Context(), v.session, id)
	if err != nil {
		return nil, err
	}
	card.Grant = card.Grant.As(grant.At(v.now))
	g := card.Grant
	c := &cardView{Card: card, ID: g.ID, Open: g.Status == grant.Pending, Risk: riskName(g.Risk), Host: g.Request.Host, Total: inbox.Total}
	argv := card.Statement.Argv
	if argv == nil {
		argv = g.Request.Command
	}
	c.Mine = c.Open && g.Endorsed != nil && g.Endorsed.By == v.session.Person.Email
	c.Whole = v.URL.Query().Get("all") == "1"
	c.Ask = askOf(argv, g.Request)
	c.Command = commandOf(argv, c.Whole)
	c.Command.Unbound, c.Command.Page = card.Statement.Argv == nil, c.Page()
	if len(argv) > 0 {
		c.Does = doesOf(card.Reading, argv, v.notes, c.Whole)
		if !c.Whole {
			c.Does.Page = c.Page()
		}
		c.Does.cover(card.Reading, card.Covered)
		crossing := card.Statement.Purpose == statement.Crossing || g.Request.RunAs != ""
		c.Why = why(g.Risk, crossing, card.Reading)
	}
	if g.Request.Connect != nil {
		c.Why = "network"
	}
	if code, err := idna.Punycode.ToASCII(c.Host); err == nil && code != c.Host {
		c.HostCode = code
	}
	reason := g.Request.Reason
	if card.Statement.Reason != nil {
		reason = *card.Statement.Reason
	}
	reason, c.SaysMore = firstRunes(reason, reasonMost)
	c.Says = mask.Text(reason)
	c.Facts = factsOf(card)
	c.Fields, c.Digest = fieldsOf(v, card.Statement), card.Statement.Digest()
	for i := range c.Fields {
		c.Fields[i].Above = c.Fields[i].Key == "argv" && len(argv) > 0
	}
	for i, w := range inbox.Rows {
		if w.Grant.ID != id {
			continue
		}
		c.Place = i + 1
		if i > 0 {
			c.Previous = inbox.Rows[i-1].Grant.ID
		}
		if i+1 < len(inbox.Rows) {
			c.Next = inbox.Rows[i+1].Grant.ID
		}
	}
	if c.Place == 0 && len(inbox.Rows) > 0 {
		c.Next = inbox.Rows[0].Grant.ID
	}
	if c.Title, err = c.title(v); err != nil {
		return nil, err
	}
	if c.Odd, err = c.standOuts(v, argv); err != nil {
		return nil, err
	}
	if !c.Open {
		c.Outcome, err = outcomeOf(v, card)
		return c, err
	}
	if c.Left, err = v.remaining(g.Created.Time(), g.ValidUntil.Time()); err != nil {
		return nil, err
	}
	return c, c.offers(v)
}

func (c *cardView) title(v *visit) (template.HTML, error) {
	if c.Place == 0 {
		return v.text("card.title")
	}
	return v.text("card.place", "i", v.number(int64(c.Place)), "n", v.number(int64(c.Total)))
}

func (c *cardView) offers(v *visit) error {
	if len(c.Card.Offers) == 0 {
		return fmt.Errorf("grant %s: pending without an offer", c.ID)
	}
	c.OnlyKey = true
	for _, o := range c.Card.Offers {
		view := offerView{Offer: o, Digest: o.Statement.Digest(), Key: string(o.Type),
			Passkey: !grant.Click.AtLeast(o.Needs), Outside: !grant.Passkey.AtLeast(o.Needs) || c.Mine}
		if c.Grant.Request.Connect != nil {
			view.Box = true
			if o.Type == grant.Always {
				view.Key = "task" // the statement binds the box
			}
		}
		if o.Type == grant.Timed {
			if o.Statement.Expiry == nil {
				return fmt.Errorf("grant %s: a timed offer without an end", c.ID)
			}
			view.Expires = int64(*o.Statement.Expiry)
			var err error
			if view.Until, err = v.moment(time.Unix(view.Expires, 0)); err != nil {
				return err
			}
			if view.Span, err = v.span(o.Duration); err != nil {
				return err
			}
		}
		if !view.Outside && c.OnlyKey {
			view.Checked, c.OnlyKey = true, false
		}
		c.Offers = append(c.Offers, view)
	}
	c.First = c.Offers[0].Digest
	return nil
}

// commandOf prepares the command; whole lifts the limits of a first view.
func commandOf(argv []string, whole bool) commandView {
	c := commandView{Total: len(argv)}
	text, most, each := reading.Line(argv), argsShown, argShown
	part := argv
	if whole {
		most, each = argsWhole, len(text)
	} else {
		part = firstBytes(argv, maskedMost)
	}
	masked := maskedArgv(part)
	for i := range part {
		if masked[i] != part[i] {
			c.Secrets++
		}
	}
	c.Text, c.Unmasked, c.Length = reading.Line(masked), text, runes(text)
	if !whole && len(text) > textShown {
		c.Text, _ = cut(c.Text, textShown)
		c.Unmasked, c.Left = cut(text, textShown)
	}
	for i, a := range masked {
		if i == most {
			break
		}
		head, left := cut(a, each)
		if i == len(masked)-1 && len(part[i]) < len(argv[i]) {
			left += runes(argv[i][len(part[i]):])
		}
		c.Args = append(c.Args, argView{N: i, Text: head, Left: left})
	}
	c.More = len(argv) - len(c.Args)
	c.Tall = c.Length > textTall && !whole
	c.Folded = len(argv) > argsOpen || len(text) > 2000
	return c
}

// standOuts are the facts that this package can establish by itself, heaviest
// first.
func (c *cardView) standOuts(v *visit, argv []string) (odd []standOut, err error) {
	add := func(tone, icon string, text template.HTML, textErr error) {
		if err == nil {
			err = textErr
		}
		odd = append(odd, standOut{tone, icon, text})
	}
	if c.Open {
		c.persons(v, add)
	}
	whole := reading.Line(argv)
	r := c.Grant.Request
	if n := countHidden(whole) + countHidden(plainQuotes(r.Reason)) + countHidden(r.Host); n > 0 {
		text, err := v.count("odd.hidden", n)
		add("high", "opaque", text, err)
	}
	for _, word := range mixedWords(whole+" "+r.Host+" "+r.RunAs, 3) {
		head, _ := firstRunes(word, 60)
		text, err := v.text("odd.mixed", "word", marked(head, false))
		add("high", "opaque", text, err)
	}
	if to := r.Connect; to != nil {
		key, tone := "odd.host.unknown", "med"
		if c.HostKind == "multi-tenant" {
			key, tone = "odd.host.shared", "high"
		}
		text, err := v.text(key, "host", marked(to.Host, false))
		add(tone, "network", text, err)
		if r.Context != nil && r.Context.Executable != "" {
			program, _ := firstRunes(r.Context.Executable, pathShown)
			text, err := v.text("odd.program.claimed", "program", marked(program, false))
			add("low", "info", text, err)
		}
	}
	if c.HostCode != "" {
		text, err := v.text("odd.host", "code", marked(c.HostCode, false))
		add("med", "info", text, err)
	}
	if c.Command.Left > 0 {
		text, err := v.count("odd.long", c.Command.Length)
		add("med", "info", text, err)
	}
	if c.Command.Secrets > 0 {
		text, err := v.count("odd.secret", c.Command.Secrets)
		add("med", "key", text, err)
	}
	if c.Grant.Joined > 0 {
		text, err := v.count("odd.joined", c.Grant.Joined)
		add("low", "same", text, err)
	}
	return odd, err
}

// persons says who else must allow it, and in whose place the reader answers.
func (c *cardView) persons(v *visit, add func(tone, icon string, text template.HTML, err error)) {
	if c.For.Email != "" {
		until, err := v.moment(c.Until)
		if err == nil {
			until, err = v.text("odd.deputy", "name", marked(c.For.label(), false), "until", until)
		}
		add("med", "info", until, err)
	}
	if !c.Grant.TwoPersons() {
		return
	}
	key := "odd.second.wait"
	switch {
	case c.Mine:
		key = "odd.second.you"
	case c.Endorser.Email != "":
		key = "odd.second.first"
	}
	text, err := v.text(key, "name", marked(c.Endorser.label(), false))
	add("med", "info", text, err)
}

// Page is the card's own address.
func (c *cardView) Page() string { return "/grants/" + url.PathEscape(c.ID) }

// Pattern is the address where a pattern for such requests is put together; "" where
// no pattern would cover one.
func (c *cardView) Pattern() string {
	if c.Does == nil || c.Does.Unread || c.Grant.Request.RunAs != "" || c.Risk == detail.Critical.String() {
		return ""
	}
	return "/patterns/new?card=" + url.QueryEscape(c.ID)
}

// Call is the address that the card's answers are posted to.
func (c *cardView) Call() string { return "/p/grants/" + url.PathEscape(c.ID) }
