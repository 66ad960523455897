package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"vogt/internal/terminal"
)

// dialogue is the set-up on the controlling terminal. The link is written to
// the terminal and nowhere else: a program that only captures what `vogt up`
// prints does not learn it.
type dialogue struct {
	control *Control
	tty     Terminal
}

// Terminal is where the person sits. Prompt returns io.EOF when the person
// ends the input.
type Terminal interface {
	io.Writer
	Prompt(ctx context.Context, question string) (string, error)
	Close() error
}

// OpenTerminal opens the controlling terminal, whatever standard input is.
func OpenTerminal() (Terminal, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, err
	}
	return tty, nil
}

// run makes a link, waits for the page, takes the digits and waits for the
// passkey. It returns the owner's address.
func (d dialogue) run(ctx context.Context) (string, error) {
	link, err := d.control.NewLink(ctx)
	if err != nil {
		return "", exitf(CodeConfig, "cannot begin the set-up: %w", err)
	}
	d.say("\nOpen this page in your browser on this machine. It works once, until %s:\n\n  %s\n\n", time.Unix(link.ExpiresAt, 0).Format("15:04"), link.URL)
	said := "" // the state that was acted on last
	for {
		s, err := d.next(ctx, said)
		if ctx.Err() != nil {
			return "", exitf(CodeNotYet, "the set-up is not finished. %s", again)
		}
		if err != nil {
			return "", exitf(CodeUnavailable, "the set-up broke off: %w. `vogt up` begins it again", err)
		}
		if time.Now().Unix() >= link.ExpiresAt && s.State != "done" {
			s.State = "expired" // also where the authority was restarted and has forgotten the link
		}
		if s.State == said {
			continue
		}
		said = s.State
		switch s.State {
		case "opened":
			if err := d.askDigits(ctx); err != nil {
				return "", err
			}
			said = "" // a wrong answer leaves the state as it was
		case "confirmed":
			d.say("Confirmed. Go on in the browser: your name, your address, your passkey.\n")
		case "done":
			d.say("Your passkey is registered. You are %s.\n", s.Email)
			return s.Email, nil
		case "expired":
			return "", exitf(CodeNotYet, "the link has run out before the set-up was finished. %s", again)
		}
	}
}

// again is what to do when the set-up ended early.
const again = "The authority runs; `vogt up` makes a new link"

// next returns the state of the set-up as soon as it differs from last, or
// after a while. The call that waits waits for a change from now on, so the
// present state is asked for first; a change between the two calls is seen
// when the wait is over.
func (d dialogue) next(ctx context.Context, last string) (SetupState, error) {
	s, err := d.control.Setup(ctx, 0)
	if err != nil || s.State != last {
		return s, err
	}
	return d.control.Setup(ctx, 3*time.Second)
}

// askDigits asks once for the digits that the page shows. A wrong answer is
// told; the state of the set-up decides whether to ask again.
func (d dialogue) askDigits(ctx context.Context) error {
	text, err := d.tty.Prompt(ctx, "The page shows four digits. Type them here, then press Enter: ")
	switch {
	case ctx.Err() != nil:
		return exitf(CodeNotYet, "the set-up is not finished. %s", again)
	case errors.Is(err, io.EOF):
		return exitf(CodeNotYet, "the input ended before the digits were typed. %s", again)
	case err != nil:
		return exitf(CodeNotYet, "the digits cannot be asked for: %w. %s", err, again)
	}
	text = strings.TrimSpace(text)
	if len(text) != 4 || strings.Trim(text, "0123456789") != "" {
		d.say("That is not four digits.\n")
		return nil
	}
	_, err = d.control.Digits(ctx, text)
	var no *refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &no) && no.Status == http.StatusForbidden:
		d.say("%s.\n", no.Error())
		return nil
	case errors.As(err, &no) && no.Status == http.StatusGone:
		return exitf(CodeNotYet, "three wrong tries have voided the link. %s", again)
	}
	return exitf(CodeNotYet, "the digits were not accepted: %w. %s", err, again)
}

func (d dialogue) say(format string, args ...any) {
	fmt.Fprintf(d.tty, format, args...) // a terminal that is gone shows in the next prompt
}
