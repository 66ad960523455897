package main

import (
	"log/slog"
	"os"

	"vogt/internal/authority"
	"vogt/internal/config"
	"vogt/internal/notify"
	"vogt/internal/pages"
)

// mailer sends letters by the configured command.
type mailer struct {
	*notify.Notifier
	configured bool
	words      pages.Outside
}

func newMailer(cfg config.Daemon, log *slog.Logger) (*mailer, error) {
	self, err := notify.Self()
	if err != nil {
		return nil, err
	}
	n, err := notify.New(notify.Config{Command: cfg.Mail.Command, Limit: cfg.Mail.Limit, Supervisor: self, Getenv: os.Getenv, Log: log})
	if err != nil {
		return nil, err
	}
	words, err := pages.NewOutside()
	return &mailer{n, len(cfg.Mail.Command) > 0, words}, err
}

// send is how the authority has a letter sent; nil where there is no command.
func (m *mailer) send(log *slog.Logger) func(authority.Letter) {
	if !m.configured {
		return nil
	}
	return func(l authority.Letter) {
		text, err := m.words.Letter(string(l.Kind), l.Ends)
		if err != nil {
			log.Error("a letter has no words", "kind", l.Kind, "err", err)
			return
		}
		m.Send(notify.Card{Owner: l.To, Summary: text, ApproveURL: l.Link})
	}
}
