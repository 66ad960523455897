package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"vogt/internal/doctor"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/trial"
	"vogt/internal/terminal"
	"vogt/internal/version"
)

func newDoctorCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what of the protection is in force here, by trying",
		Long: `Doctor tries, as the user who runs it, what an agent under that user could do:
open the authority's database, use its control socket, read its memory, find
keys and tokens. Each check is in force, in part, not in force or failed, with
the command that mends it. It works while the authority is down and changes no
setting. Run it as the agent's user to see the agent's view.

What each check proves: docs/threat-model.md. It exits with 1 when something has
failed; a protection that is not in force is not a failure.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			paths, err := e.paths()
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			helper, err := helperPath()
			if err != nil {
				return err
			}
			home := e.getenv("HOME")
			if home == "" {
				home = e.getenv("USERPROFILE")
			}
			e.actingAgent()
			around := ""
			if profile, in := confine.Around(e.getenv); in {
				around = profile
			}
			report := doctor.Examine(cmd.Context(), doctor.Subject{
				Paths: paths, Vogt: self, Version: version.String(), Getenv: e.getenv, Home: home, Now: e.now,
				Memory: paths.State, Proc: "/proc", Places: doctor.DefaultPlaces(),
				Box: around, Agent: e.agent,
				Try: func(ctx context.Context) (trial.Verdict, error) { return trial.Run(ctx, helper) },
			})
			if err := e.print(report, func(w io.Writer) error { return report.Write(w, width(e.stdout)) }); err != nil {
				return err
			}
			if !report.OK {
				return withCode(1, nil)
			}
			return nil
		}),
	}
}

// width is that of the terminal, within what can be read well.
func width(f *os.File) int {
	columns := terminal.Width(f)
	if columns == 0 {
		return 80
	}
	return max(40, min(columns, 100))
}
