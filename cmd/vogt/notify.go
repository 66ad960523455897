package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
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
and say how it went.`,
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
			if err != nil {
				return withCode(exitConfig, err)
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
			result, err := n.Test(cmd.Context(), notify.Card{
				GrantID: "00000000-0000-4000-8000-000000000000", ApproveURL: "http://vogt.localhost:8648/",
				Agent: "test@example.com", Owner: "you", Risk: "low", Summary: e.text(messages.NotifySummary), Command: "echo test",
			})
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
			if !result.OK() {
				return withCode(exitCannotRun, errors.New(e.text(messages.NotifyFailed)))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&test, "test", false, "run it now")
	return cmd
}
