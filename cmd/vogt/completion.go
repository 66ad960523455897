package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"vogt/internal/grant"
)

// completeFlags tells shells the values of flags that have a known few.
func (e *env) completeFlags(root *cobra.Command) {
	kinds := []string{string(grant.Once), string(grant.Timed), string(grant.Always)}
	states := []string{
		string(grant.Pending), string(grant.Approved), string(grant.Denied),
		string(grant.Revoked), string(grant.Expired), string(grant.Used),
	}
	offer := func(cmd *cobra.Command, flag string, values func() []string) {
		if cmd.LocalNonPersistentFlags().Lookup(flag) == nil && cmd.PersistentFlags().Lookup(flag) == nil {
			return
		}
		// It fails only for a flag that is not there, or has one already.
		_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		offer(cmd, "agent", e.agentsHere)
		offer(cmd, "approval", func() []string { return kinds })
		offer(cmd, "status", func() []string { return states })
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}

// agentsHere are the names of the agents that were made on this machine.
func (e *env) agentsHere() []string {
	paths, err := e.paths()
	if err != nil {
		return nil
	}
	folder := home(paths).Folder
	entries, err := os.ReadDir(filepath.Join(folder, "agents"))
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if _, err := home(paths).Agent(entry.Name()); err == nil && entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names
}
