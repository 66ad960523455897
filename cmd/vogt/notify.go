package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/notify"
	"vogt/internal/terminal"
)

func newNotifyCommand(e *env) *cobra.Command {
	var test bool
	cmd := &cobra.Command{
		Use:   "notify --test",
		Short: "Try the command that announces waiting requests",
		Long: `Run the command under notify.command in vogtd.toml as for a request that waits,
and say how it went. A command that exits with another code than 0 makes vogt
exit with 1, one that cannot be started or does not end with 126.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if !test {
				return &usageError{text: e.text(messages.NotifyNeedsTest)}
			}
			paths, err := e.paths()
			if err != nil {
				return err
			}
			layers, err := config.LoadLayers(config.DefaultDaemon(), paths, "vogtd", nil)
			if err == nil {
				err = layers.Value.Validate()
			}
			if err != nil {
				return withCode(exitConfig, err)
			}
			file := filepath.Join(paths.Config, "vogtd.toml")
			if len(layers.Value.Notify.Command) == 0 {
				return withCode(exitConfig, errors.New(e.text(messages.NotifyNone, terminal.Visible(file))))
			}
			card, err := e.testCard(cmd.Context(), paths, layers.Value)
			if err != nil {
				return err
			}
			self, err := notify.Self()
			if err != nil {
				return err
			}
			settings := layers.Value.Notify
			n, err := notify.New(notify.Config{
				Command: settings.Command, ShowCommand: settings.ShowCommand, Limit: settings.Limit,
				Supervisor: self, Getenv: e.getenv, Log: slog.New(slog.NewTextHandler(e.stderr, nil)),
			})
			if err != nil {
				return withCode(exitConfig, err)
			}
			result, err := n.Test(cmd.Context(), card)
			if err != nil {
				return withCode(exitConfig, err)
			}
			if err := e.print(result, func(w io.Writer) error {
				fmt.Fprintln(w, terminal.Visible(result.String()))
				for _, text := range visibleLines(result.Stderr) {
					if text != "" {
						fmt.Fprintln(w, "  "+text)
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if len(layers.Files) > 0 {
				file = layers.Files[len(layers.Files)-1]
			}
			e.say(messages.NotifyRestart, terminal.Visible(file))
			switch {
			case result.OK():
				return nil
			case result.Problem == "" && !result.TimedOut:
				return withCode(exitMismatch, errors.New(e.text(messages.NotifyExited, result.Exit)))
			}
			return withCode(exitCannotRun, errors.New(e.text(messages.NotifyFailed, result.String())))
		}),
	}
	cmd.Flags().BoolVar(&test, "test", false, "run it now")
	return cmd
}

// testCard is a card as the configured authority would send it: with the
// address of its pages and its owner, as far as these are known here.
func (e *env) testCard(ctx context.Context, paths config.Paths, daemon config.Daemon) (notify.Card, error) {
	const id = "00000000-0000-4000-8000-000000000000"
	card := notify.Card{GrantID: id, Agent: "test", Owner: "you", Risk: "low", Summary: e.text(messages.NotifySummary), Command: "echo test"}
	settings, err := e.settings(paths)
	if err != nil {
		return card, err
	}
	file := home(paths).Default()
	if l, err := file.Load(); err == nil && !l.Agent() {
		card.Owner = l.Email
		settings.Authority = l.Authority
	}
	pages := pagesOrigin(settings.Authority, daemon.PagesHost)
	// The one that runs knows best where its pages are; none need run.
	if c, err := client.Contact(settings.Authority, file, e.options(ctx, paths)); err == nil {
		defer c.Close()
		if h, err := c.Health(ctx); err == nil && h.Pages != "" {
			pages = h.Pages
		}
	}
	card.ApproveURL = strings.TrimSuffix(pages, "/") + "/grants/" + id
	return card, nil
}

// pagesOrigin is where an authority has its pages when nothing else is known:
// at the pages' host, with the port of its address.
func pagesOrigin(authority, host string) string {
	u, err := url.Parse(authority)
	if err != nil {
		return authority
	}
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	}
	return u.Scheme + "://" + host
}
