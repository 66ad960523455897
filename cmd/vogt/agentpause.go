package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/execution/confine/running"
	"vogt/internal/osuser"
	"vogt/internal/terminal"
)

// stopTime is how long the processes of boxes may take to stop, go on or end.
const stopTime = 20 * time.Second

func newAgentPauseCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "pause NAME",
		Short: "Stop an agent until you resume it; the login suffices",
		Long: `Stop an agent until "vogt resume NAME": its requests are not taken, its permissions
do not count, and all that runs in its boxes on this machine stops at once and keeps
its state. Nothing of it is started meanwhile. Boxes that were started on other
machines stop as soon as they hear of it from the authority, in a few seconds.

What runs here is stopped also when the authority cannot be reached; the exit code
says that it was not told. Processes of an OS user of the agent are stopped by root: sudo
vogt agent pause NAME.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if a, there, err := osAgentOf(args[0]); err != nil || there {
				return errors.Join(err, e.pauseWithUser(cmd.Context(), args[0], a))
			}
			// The processes first: they are near, and the authority may be away.
			name := args[0]
			stopped, here := e.pauseHere(cmd.Context(), name)
			err := e.withAgent(cmd.Context(), name, func(c *client.Client, p api.Principal) error {
				if p.Name != name { // it was named by its address
					name = p.Name
					stopped, here = e.pauseHere(cmd.Context(), name)
				}
				if err := c.Pause(cmd.Context(), p.Email); err != nil {
					return err
				}
				p.Paused = true
				return e.print(p, func(w io.Writer) error {
					err := line(e.text(messages.AgentPaused, terminal.Visible(p.Email), terminal.Visible(p.Name)))(w)
					if err == nil && stopped > 0 {
						err = line(e.text(messages.BoxesStopped, e.count(int64(stopped), messages.OneBox, messages.ManyBoxes)))(w)
					}
					return err
				})
			})
			if err != nil && e.pausedHere(name) {
				e.say(messages.PausedHereOnly, name)
				if stopped > 0 {
					e.say(messages.BoxesStopped, e.count(int64(stopped), messages.OneBox, messages.ManyBoxes))
				}
			}
			return errors.Join(err, here)
		}),
	}
}

func newAgentKillCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "kill NAME",
		Short: "End all that runs in an agent's boxes on this machine",
		Long: `End all that runs in the boxes of an agent on this machine, also what is paused. It
takes nothing else from the agent: pause it first if it is not to begin again.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if _, there, err := osAgentOf(args[0]); err != nil || there {
				ctx, cancel := context.WithTimeout(cmd.Context(), stopTime)
				defer cancel()
				return errors.Join(err, osuser.Kill(ctx, osuser.Spec{Name: args[0]}))
			}
			name := args[0]
			if !e.isHere(name) {
				// It was never here, or is named by its address, or there is none.
				err := e.withAgent(cmd.Context(), name, func(_ *client.Client, p api.Principal) error {
					name = p.Name
					return nil
				})
				if err != nil {
					return err
				}
			}
			n, err := e.killHere(cmd.Context(), name)
			if err != nil {
				return withCode(exitCannotRun, err)
			}
			return e.print(map[string]int{"ended": n}, line(e.text(messages.BoxesEnded, e.count(int64(n), messages.OneBox, messages.ManyBoxes))))
		}),
	}
}

// pauseWithUser stops an agent with an OS user: its processes as root, and the agent
// as the person.
func (e *env) pauseWithUser(ctx context.Context, name string, a osAgent) error {
	limited, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	stopped := a.pause(limited, name, true)
	out, err := e.asPersonUID(ctx, a.Person, nil, "agent", "pause", name)
	if err == nil {
		_, err = e.stdout.Write(out)
	}
	return errors.Join(stopped, err)
}

// agentData is where this machine keeps what belongs to an agent, and with an empty
// name what belongs to all. Names are checked before.
func agentData(paths config.Paths, name string) string {
	return filepath.Join(paths.Data, "agents", name)
}

// keptFolder is the home that an agent's boxes see and that stays.
func keptFolder(paths config.Paths, name string) string {
	return filepath.Join(agentData(paths, name), "home")
}

// agentState is what this machine knows of the boxes of an agent.
func (e *env) agentState(name string) (running.Agent, error) {
	if err := client.CheckAgentName(name); err != nil {
		return running.Agent{}, err
	}
	paths, err := e.paths()
	if err != nil {
		return running.Agent{}, err
	}
	return running.Agent{Folder: agentData(paths, name)}, nil
}

// pausedHere reports whether an agent is paused on this machine, which it can be
// without the authority having been told.
func (e *env) pausedHere(name string) bool {
	agent, err := e.agentState(name)
	if err != nil {
		return false
	}
	paused, err := agent.Paused()
	return err == nil && paused
}

// isHere reports whether an agent is enrolled on this machine or was ever started on
// it. A name is checked before it becomes a path.
func (e *env) isHere(name string) bool {
	agent, err := e.agentState(name)
	if err != nil {
		return false
	}
	paths, err := e.paths()
	if err != nil {
		return false
	}
	for _, folder := range []string{agent.Folder, home(paths).AgentFolder(name)} {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// here does something with the boxes of an agent that is known on this machine.
func (e *env) here(ctx context.Context, name string, do func(running.Agent, context.Context) (int, error)) (int, error) {
	if !e.isHere(name) {
		return 0, nil
	}
	agent, err := e.agentState(name)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return do(agent, ctx)
}

func (e *env) pauseHere(ctx context.Context, name string) (int, error) {
	return e.here(ctx, name, running.Agent.Pause)
}

func (e *env) killHere(ctx context.Context, name string) (int, error) {
	return e.here(ctx, name, running.Agent.Kill)
}

func (e *env) resumeHere(ctx context.Context, name string) error {
	_, err := e.here(ctx, name, running.Agent.Resume)
	return err
}

// pauseAllHere stops the boxes of every agent on this machine.
func (e *env) pauseAllHere(ctx context.Context) error {
	paths, err := e.paths()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(agentData(paths, ""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		_, failed := e.pauseHere(ctx, entry.Name())
		err = errors.Join(err, failed)
	}
	return err
}

// mayStart refuses an agent that is paused, on this machine or at the authority. An
// authority that cannot be asked is asked again while the box runs.
func (e *env) mayStart(ctx context.Context, agent running.Agent, name string) error {
	paused, err := agent.Paused()
	if err != nil {
		return withCode(exitCannotRun, err)
	}
	if !paused {
		paused, _ = e.pausedThere(ctx, name)
	}
	if paused {
		return withCode(exitRefused, errors.New(e.text(messages.AgentIsPaused, name)))
	}
	return nil
}

// pausedThere asks the authority whether an agent is paused; known is false if it
// does not answer.
func (e *env) pausedThere(ctx context.Context, name string) (paused, known bool) {
	paths, err := e.paths()
	if err != nil {
		return false, false
	}
	file, err := home(paths).Agent(name)
	if err != nil {
		return false, false
	}
	c, err := client.Open(file, e.options(ctx, paths))
	if err != nil {
		return false, false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	p, err := c.Me(ctx)
	return p.Paused, err == nil
}

const (
	askTime    = 5 * time.Second
	followTime = 2 * time.Second // between two looks at the authority
)

// followPause stops the boxes of an agent on this machine when its owner pauses it
// somewhere else, such as on a page, and lets them go on again.
func (e *env) followPause(ctx context.Context, agent running.Agent, name string) {
	was := false
	look := time.NewTicker(followTime)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		paused, known := e.pausedThere(ctx, name)
		if !known || paused == was {
			continue
		}
		do, said := agent.Pause, messages.PausedElsewhere
		if !paused {
			do, said = agent.Resume, messages.ResumedElsewhere
		}
		// It may be so already, by a command on this machine.
		if here, err := agent.Paused(); err == nil && here == paused {
			was = paused
			continue
		}
		within, cancel := context.WithTimeout(ctx, stopTime)
		_, err := do(within)
		cancel()
		if err != nil {
			e.say(messages.CannotPauseHere, name, err)
			continue // it is tried again
		}
		was = paused
		e.say(said, name)
	}
}
