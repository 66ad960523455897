package client

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/grant"
	"vogt/internal/passkey/assertion"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
)

// Proof is a receipt that was verified.
type Proof struct {
	Receipt api.Receipt
	Answer  string // "approved" or "denied", as the log has it
	// Verified says what was checked and holds, Trusted what is the authority's
	// word alone. Both are sentences without a full stop.
	Verified []string
	Trusted  []string
}

// ReceiptError tells that a receipt proves nothing, because a part of it does
// not fit.
type ReceiptError struct {
	Part   string // "grant", "digest", "checkpoint", "record", "inclusion" or "evidence"
	Detail string
}

// Error implements error.
func (e *ReceiptError) Error() string { return e.Part + ": " + e.Detail }

func misfit(part, format string, args ...any) error {
	return &ReceiptError{part, fmt.Sprintf(format, args...)}
}

// decisionRecord is what the log keeps of a decision.
type decisionRecord struct {
	Grant     string              `json:"grant"`
	By        string              `json:"by"`
	Answer    string              `json:"answer"`
	Strength  grant.Strength      `json:"strength"`
	Digest    statement.Digest    `json:"digest"`
	Statement statement.Statement `json:"statement"`
	Evidence  json.RawMessage     `json:"evidence"`
}

// VerifyReceipt fetches the receipt of a grant and verifies all that can be
// verified without trust in the authority's word: that the digest is that of
// the statement, that the decision is a record of the log that the pinned key
// has signed, and that the evidence is a signature over the digest. A part that
// does not fit is a *ReceiptError.
func (c *Client) VerifyReceipt(ctx context.Context, id string) (Proof, error) {
	r, err := c.Receipt(ctx, id)
	if err != nil {
		return Proof{}, err
	}
	p := Proof{Receipt: r}
	switch {
	case r.GrantID != id || r.Statement.GrantID != id:
		return p, misfit("grant", "it is about the grant %.80q", r.Statement.GrantID)
	case r.Statement.Issuer != c.wire.base:
		return p, misfit("grant", "its statement was made by %.200q", r.Statement.Issuer)
	case r.Statement.Digest() != r.Digest:
		return p, misfit("digest", "that of the statement is %s", r.Statement.Digest())
	}
	p.Verified = append(p.Verified, "the digest is that of the statement that is shown")
	rec, err := c.includedRecord(ctx, &p)
	if err != nil {
		return p, err
	}
	if err := p.recorded(rec); err != nil {
		return p, err
	}
	if err := c.verifyFirst(ctx, &p); err != nil {
		return p, err
	}
	return p, c.verifyEvidence(ctx, &p)
}

// verifyFirst verifies the yes of the first of two persons, where the statement says
// that two must allow it.
func (c *Client) verifyFirst(ctx context.Context, p *Proof) error {
	r := p.Receipt
	if d := r.Deputy; d != "" || r.For != "" {
		p.Trusted = append(p.Trusted, "that "+r.DecidedBy+" stood in for "+r.For+" as a deputy ("+d+") is the authority's word")
	}
	two := slices.Contains(r.Statement.Limits, "approvals=2")
	switch {
	case p.Answer != "approved" || !two && r.First == nil:
		return nil
	case !two || r.First == nil:
		return misfit("first approval", "the statement and the receipt differ in how many persons must allow it")
	case r.First.DecidedBy == r.DecidedBy:
		return misfit("first approval", "both persons are %.200q", r.DecidedBy)
	}
	f := *r.First
	if f.For != "" {
		p.Trusted = append(p.Trusted, "that "+f.DecidedBy+" stood in for "+f.For+" as a deputy ("+f.Deputy+") is the authority's word")
	}
	after := f.Record - 1
	page, err := c.Records(ctx, LogQuery{After: &after, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Records) != 1 || page.Records[0].Index != f.Record {
		return misfit("first approval", "the authority does not show record %d", f.Record)
	}
	var was decisionRecord
	if err := json.Unmarshal(page.Records[0].Body, &was); err != nil || page.Records[0].Type != "endorsement" {
		return misfit("first approval", "record %d is none", f.Record)
	}
	if was.Grant != r.GrantID || was.By != f.DecidedBy || was.Strength != f.Strength || was.Digest != r.Digest || !sameJSON(was.Evidence, f.Evidence) {
		return misfit("first approval", "record %d is of another grant, person, strength, statement or evidence", f.Record)
	}
	first := Proof{Receipt: api.Receipt{Statement: r.Statement, Digest: r.Digest, DecidedBy: f.DecidedBy, Strength: f.Strength, Evidence: f.Evidence}, Answer: "approved"}
	if err := c.verifyEvidence(ctx, &first); err != nil {
		return err
	}
	p.Verified = append(p.Verified, fmt.Sprintf("the first of two persons, %s, allowed the same statement in record %d:", f.DecidedBy, f.Record))
	p.Verified = append(p.Verified, first.Verified...)
	p.Trusted = append(p.Trusted, first.Trusted...)
	p.Trusted = append(p.Trusted, fmt.Sprintf("that record %d is in the log is the authority's word; vogt audit verify checks it", f.Record))
	return nil
}

// includedRecord fetches the record of the decision and verifies that the log
// of the receipt's checkpoint has it.
func (c *Client) includedRecord(ctx context.Context, p *Proof) (audit.Record, error) {
	r := p.Receipt
	head, err := audit.OpenCheckpoint(r.Checkpoint, c.login.LogKey)
	if err != nil {
		return audit.Record{}, misfit("checkpoint", "%v", err)
	}
	// The same key could have signed another history.
	if err := c.observe(ctx, r.Checkpoint); err != nil {
		return audit.Record{}, err
	}
	after := r.Record - 1
	page, err := c.Records(ctx, LogQuery{After: &after, Limit: 1})
	if err != nil {
		return audit.Record{}, err
	}
	if len(page.Records) != 1 || page.Records[0].Index != r.Record {
		return audit.Record{}, misfit("record", "the authority does not show record %d", r.Record)
	}
	shown := page.Records[0]
	salt, err := hex.DecodeString(shown.Salt)
	if err != nil || len(salt) != audit.SaltSize {
		return audit.Record{}, misfit("record", "record %d was erased, or has no salt", r.Record)
	}
	var inclusion audit.Inclusion
	if err := json.Unmarshal(r.Proof, &inclusion); err != nil {
		return audit.Record{}, misfit("inclusion", "the proof cannot be read: %v", err)
	}
	if inclusion.Index != r.Record {
		return audit.Record{}, misfit("inclusion", "the proof is for record %d, not %d", inclusion.Index, r.Record)
	}
	if err := inclusion.Verify(audit.LeafOf(shown.Type, shown.Time, salt, shown.Body), head); err != nil {
		return audit.Record{}, misfit("inclusion", "%v", err)
	}
	p.Verified = append(p.Verified,
		fmt.Sprintf("record %d is in the log of %d records that the pinned key has signed", r.Record, head.Size))
	return audit.Record{Index: shown.Index, Type: shown.Type, Time: shown.Time, Body: shown.Body}, nil
}

// recorded compares the receipt with the record of the decision.
func (p *Proof) recorded(rec audit.Record) error {
	r := p.Receipt
	var was decisionRecord
	if err := json.Unmarshal(rec.Body, &was); rec.Type != "decision" || err != nil {
		return misfit("record", "record %d is no decision but %.40q", rec.Index, rec.Type)
	}
	for _, part := range []struct {
		name string
		fits bool
	}{
		{"grant", was.Grant == r.GrantID},
		{"person", was.By == r.DecidedBy},
		{"strength", was.Strength == r.Strength},
		{"digest", was.Digest == r.Digest && was.Statement.Digest() == r.Digest},
		{"time", rec.Time/1000 == r.DecidedAt},
		{"evidence", sameJSON(was.Evidence, r.Evidence)},
	} {
		if !part.fits {
			return misfit("record", "record %d names another %s than the receipt", rec.Index, part.name)
		}
	}
	p.Answer = was.Answer
	p.Verified = append(p.Verified, "that record names this grant, person, time, strength, digest and evidence")
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var ca, cb bytes.Buffer
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Compact(&ca, a) == nil && json.Compact(&cb, b) == nil && bytes.Equal(ca.Bytes(), cb.Bytes())
}

// verifyEvidence verifies what the person gave for the decision.
func (c *Client) verifyEvidence(ctx context.Context, p *Proof) error {
	r := p.Receipt
	switch {
	case r.Standing != "":
		return c.verifyWritten(ctx, p, written{"standing grant", r.Standing, r.StandingRecord, api.TrustStandingAdd, "pattern"})
	case r.Policy != "":
		return c.verifyWritten(ctx, p, written{"policy", r.Policy, r.PolicyRecord, api.TrustPolicySet, "policy"})
	case p.Answer == "denied":
		p.Trusted = append(p.Trusted, "a no needs no proof: that "+r.DecidedBy+" said it is the authority's word")
		return nil
	case r.Strength == grant.Bearer:
		p.Trusted = append(p.Trusted, "a login alone decided; that it was "+r.DecidedBy+" is the authority's word")
		return nil
	case r.Strength == grant.Independent:
		return c.verifySSH(ctx, p)
	case r.Strength == grant.Passkey, r.Strength == grant.Click:
		h, err := c.Health(ctx)
		if err != nil {
			return err
		}
		if r.Strength == grant.Click {
			return p.verifyClick(h.Pages)
		}
		return p.verifyPasskey(h.Pages)
	}
	return misfit("evidence", "the strength %.40q is unknown", r.Strength)
}

// written is what a person has written beforehand and what decided.
type written struct {
	what      string // "standing grant" or "policy"
	id        string
	record    int64
	operation string // that signs one
	param     string // that holds it
}

// verifyWritten verifies that the person has signed what decided in its name: it
// stands in what was signed.
func (c *Client) verifyWritten(ctx context.Context, p *Proof, w written) error {
	r := p.Receipt
	after := w.record - 1
	page, err := c.Records(ctx, LogQuery{After: &after, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Records) != 1 || page.Records[0].Index != w.record {
		p.Trusted = append(p.Trusted, "that "+r.DecidedBy+" has signed the "+w.what+" "+w.id+" is the authority's word: it does not show record "+fmt.Sprint(w.record))
		return nil
	}
	var was struct {
		Operation string              `json:"operation"`
		By        string              `json:"by"`
		Params    map[string]string   `json:"params"`
		Strength  grant.Strength      `json:"strength"`
		Digest    statement.Digest    `json:"digest"`
		Evidence  json.RawMessage     `json:"evidence"`
		Statement statement.Statement `json:"statement"`
	}
	if err := json.Unmarshal(page.Records[0].Body, &was); err != nil || page.Records[0].Type != "trust" {
		return misfit(w.what, "record %d signs none", w.record)
	}
	s, signs := was.Statement, w.param
	switch was.Operation {
	case w.operation:
	case api.TrustAgentAdd, api.TrustSafeOn:
		signs = "safe" // the folders say the whole of it
	case "principal.create":
	default:
		return misfit(w.what, "record %d signs none", w.record)
	}
	if was.Operation != w.operation && w.operation != api.TrustStandingAdd || !slices.Contains(strings.Split(was.Params["id"], ","), w.id) {
		return misfit(w.what, "record %d is of another one", w.record)
	}
	if r.Strength == grant.Bearer && was.Operation == w.operation && was.By == r.DecidedBy {
		p.Trusted = append(p.Trusted, "that "+r.DecidedBy+" wanted the "+w.what+" "+w.id+" is the authority's word: a login alone asked for it, and nothing was signed")
		return nil
	}
	if r.Strength == grant.Bearer && signs == "safe" || was.Operation == "principal.create" {
		p.Trusted = append(p.Trusted, "the safe commands came with the agent, which "+was.By+" enrolled without a signature; that is the authority's word")
		return nil
	}
	switch {
	case was.By != r.DecidedBy || was.Strength != r.Strength:
		return misfit(w.what, "record %d names another person or strength", w.record)
	case s.Digest() != was.Digest || s.Purpose != statement.Trust || s.Issuer != c.wire.base:
		return misfit(w.what, "the digest in record %d is not that of its statement", w.record)
	case len(s.Argv) == 0 || s.Argv[0] != was.Operation || !slices.Contains(s.Argv, signs+"="+was.Params[signs]):
		return misfit(w.what, "what was signed in record %d has another one", w.record)
	}
	signed := Proof{Receipt: api.Receipt{Statement: s, Digest: was.Digest, DecidedBy: was.By, Strength: was.Strength, Evidence: was.Evidence}, Answer: "approved"}
	if err := c.verifyEvidence(ctx, &signed); err != nil {
		return err
	}
	p.Verified = append(p.Verified, "the "+w.what+" "+w.id+" has its signature in record "+fmt.Sprint(w.record)+":")
	p.Verified = append(p.Verified, signed.Verified...)
	p.Trusted = append(p.Trusted, signed.Trusted...)
	p.Trusted = append(p.Trusted, "that it covers this command, and that record "+fmt.Sprint(w.record)+" is in the log, is the authority's word; vogt audit verify checks the latter")
	return nil
}

// verifySSH verifies an SSHSIG signature, and that its key is one of the
// caller's own where the caller decided.
func (c *Client) verifySSH(ctx context.Context, p *Proof) error {
	r := p.Receipt
	var e struct {
		Kind      string `json:"kind"`
		PublicKey string `json:"public_key"`
		Signature string `json:"signature"`
	}
	if err := json.Unmarshal(r.Evidence, &e); err != nil || e.Kind != "sshsig" {
		return misfit("evidence", "it is no SSH signature")
	}
	key, err := sshkey.ParsePublic(e.PublicKey)
	if err != nil {
		return misfit("evidence", "%v", err)
	}
	if _, err := sshkey.Verify(e.Signature, sshkey.NamespaceDecision, []byte(r.Digest.String()), []sshkey.Public{key}); err != nil {
		return misfit("evidence", "%v", err)
	}
	p.Verified = append(p.Verified, "the SSH key "+key.Fingerprint()+" has signed the digest as a decision")
	if r.DecidedBy != c.login.Email {
		p.Trusted = append(p.Trusted, "that this key is one of "+r.DecidedBy+"'s is the authority's word")
		return nil
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(me.Keys, func(k api.Key) bool { return k.ID == string(key.ID()) }) {
		p.Trusted = append(p.Trusted, "that this key was yours then is the authority's word: it does not list it now")
		return nil
	}
	p.Verified = append(p.Verified, "that key is among those that the authority lists as yours")
	return nil
}

// verifyPasskey verifies the assertion of a passkey on the pages at origin.
func (p *Proof) verifyPasskey(origin string) error {
	var e assertion.Evidence
	if err := json.Unmarshal(p.Receipt.Evidence, &e); err != nil {
		return misfit("evidence", "it is no assertion of a passkey: %v", err)
	}
	u, err := url.Parse(origin)
	if err != nil {
		return misfit("evidence", "the pages have the address %.200q", origin)
	}
	if err := e.Verify(p.Receipt.Digest, u.Hostname(), []string{origin}); err != nil {
		return misfit("evidence", "%v", err)
	}
	p.Verified = append(p.Verified, "a passkey has signed the digest on "+origin+", with a person present and verified")
	p.Trusted = append(p.Trusted, "that this passkey is one of "+p.Receipt.DecidedBy+"'s is the authority's word, and so is what the page showed")
	return nil
}

// verifyClick verifies the signature that a signed-in page made over its call:
// five lines, "vogt-click-v1", origin, path, SHA-256 of the body in hex, and
// time, by ECDSA on P-256 with SHA-256 as 64 bytes r‖s.
func (p *Proof) verifyClick(origin string) error {
	r := p.Receipt
	var e struct {
		Kind      string `json:"kind"`
		Key       []byte `json:"key"` // SubjectPublicKeyInfo
		Signed    string `json:"signed"`
		Body      string `json:"body"`
		Signature []byte `json:"signature"`
	}
	if err := json.Unmarshal(r.Evidence, &e); err != nil || e.Kind != "click" {
		return misfit("evidence", "it is no click")
	}
	if err := verifyP256(e.Key, []byte(e.Signed), e.Signature); err != nil {
		return misfit("evidence", "%v", err)
	}
	lines := strings.Split(e.Signed, "\n")
	sum := sha256.Sum256([]byte(e.Body))
	var body struct {
		Digest statement.Digest `json:"digest"`
	}
	switch err := json.Unmarshal([]byte(e.Body), &body); {
	case len(lines) != 5 || lines[0] != "vogt-click-v1":
		return misfit("evidence", "what was signed is no click")
	case lines[1] != origin:
		return misfit("evidence", "the click was made on %.200q, not on %s", lines[1], origin)
	case !slices.Contains(strings.Split(lines[2], "/"), url.PathEscape(r.GrantID)):
		return misfit("evidence", "the click was about %.200q", lines[2])
	case lines[3] != hex.EncodeToString(sum[:]):
		return misfit("evidence", "another call was signed than the one that is kept")
	case err != nil || body.Digest != r.Digest:
		return misfit("evidence", "the click was about another digest")
	}
	p.Verified = append(p.Verified, "the key of a signed-in page on "+origin+" has signed a click that names the digest")
	p.Trusted = append(p.Trusted, "that "+r.DecidedBy+" was signed in there is the authority's word, and so is what the page showed")
	return nil
}

func verifyP256(spki, text, signature []byte) error {
	parsed, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return fmt.Errorf("the page's key cannot be read: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() || len(signature) != 64 {
		return errors.New("the page's key or signature is of another kind than ECDSA on P-256")
	}
	sum := sha256.Sum256(text)
	if !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return errors.New("the page's signature does not verify")
	}
	return nil
}
