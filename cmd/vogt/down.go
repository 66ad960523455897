package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"vogt/internal/quickstart"
)

func newDownCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the authority that `vogt up` started",
		Long: `Down stops the authority of this user on this machine, by its control socket,
and returns when its port is free. Requests that wait stay where they are and go
on after the next "vogt up".`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			paths, err := e.paths()
			if err != nil {
				return err
			}
			ran, err := quickstart.Down(cmd.Context(), paths.Data)
			if err != nil {
				return err
			}
			switch {
			case e.json:
				return e.print(map[string]bool{"stopped": ran}, nil)
			case ran:
				fmt.Fprintln(e.stderr, "The authority is stopped.")
			default:
				fmt.Fprintf(e.stderr, "No authority runs on %s.\n", paths.Data)
			}
			return nil
		}),
	}
}
