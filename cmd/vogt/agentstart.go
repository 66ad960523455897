package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/running"
)

func newAgentStartCommand(e *env) *cobra.Command {
	var profile, workspace string
	var allow []string
	var ask bool
	cmd := &cobra.Command{
		Use:   "start NAME [flags] -- COMMAND [ARGUMENT…]",
		Short: "Start an agent in a box around all that it does",
		Long: `Start an agent's program in a box: the workspace can be written, and a home of the
agent's own, which stays between starts. Your home, your keys and other agents' are
not there. It reaches the hosts that --allow names, by a proxy, and the authority, so
that "vogt run" asks as this agent from within. What it starts ends with it. A connection
to another host is held while you are asked; you permit it once, for this task (until
the box ends) or until a time, and no longer than the box lasts.

The agent must be enrolled here (vogt agent add NAME). Its key is in the box. As root,
an agent with an OS user is started as that user, in a box as well, in the folder work
of its home if no workspace is named.`,
		Example: `  vogt agent start coder --allow api.example.com -- claude
  vogt agent start coder -- bash`,
		Args: cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash == 0:
				return &usageError{text: e.text(messages.NoAgentToStart)}
			case len(args) < 2:
				return &usageError{text: e.text(messages.NoCommandToStart, args[0])}
			}
			if a, there, err := osAgentOf(args[0]); err != nil {
				return withCode(exitCannotRun, err)
			} else if there {
				return e.startOSUser(cmd.Context(), args[0], a, profile, workspace, allow, ask, args[1:])
			}
			e.asks = ask
			return e.startAgent(cmd.Context(), args[0], profile, workspace, allow, args[1:])
		}),
	}
	cmd.Flags().SetInterspersed(true)
	cmd.Flags().StringVar(&profile, "profile", "agent", "the `NAME` of a profile")
	cmd.Flags().StringVar(&workspace, "workspace", "", "the `FOLDER` that the box is about (default: this one)")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "a `HOST` that the agent may reach: name, *.name or name:port")
	cmd.Flags().BoolVar(&ask, "ask", true, "ask you about hosts that no rule covers, and hold the connection meanwhile")
	return cmd
}

// startAgent runs a command in a box around an agent, which can be paused and ended
// from outside of it.
func (e *env) startAgent(ctx context.Context, name, profile, workspace string, allow, argv []string) error {
	box, err := e.agentBox(name, profile, workspace, allow)
	if err != nil {
		return err
	}
	agent, err := e.agentState(name)
	if err != nil {
		return err
	}
	if err := e.mayStart(ctx, agent, name); err != nil {
		return err
	}
	leave := func() bool { return false }
	begun := box.Started
	box.Started = func(pid int, level plan.Level) (err error) {
		leave()
		if begun != nil {
			if err := begun(pid, level); err != nil {
				return err
			}
		}
		if leave, err = agent.Enter(ctx, pid, level); err != nil {
			leave = func() bool { return false }
		}
		if errors.Is(err, running.ErrPaused) {
			err = errors.New(e.text(messages.AgentIsPaused, name))
		}
		return err
	}
	defer func() {
		if leave() {
			e.say(messages.BoxKilled, name)
		}
	}()
	follow, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { e.followPause(follow, agent, name) })
	defer following.Wait()
	defer stop()
	return e.runIn(ctx, box, argv, workspace)
}

// agentBox is the box around an agent.
func (e *env) agentBox(name, profile, workspace string, allow []string) (*execution.Box, error) {
	if profile, in := confine.Around(e.getenv); in {
		return nil, withCode(exitCannotRun, errors.New(e.text(messages.AgentInBox, profile, name)))
	}
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	file, err := home(paths).Agent(name)
	if err != nil {
		return nil, err
	}
	login, err := file.Load()
	if err != nil {
		if _, missing := os.Stat(home(paths).AgentFolder(name)); errors.Is(missing, fs.ErrNotExist) {
			return nil, withCode(exitConfig, errors.New(e.text(messages.NoAgentHere, name)))
		}
		return nil, err
	}
	e.agent, e.reports = name, true
	to, err := toAuthority(login.Authority)
	if err != nil {
		return nil, withCode(exitConfig, errors.New(e.text(messages.BadAuthority, login.Authority, name)))
	}
	if to.host != "" {
		if e.neverReached(to.host) != "" {
			return nil, withCode(exitConfig, errors.New(e.text(messages.PrivateAuthority, login.Authority)))
		}
		allow = append(allow, to.host)
	}
	box, err := e.newBox(profile, workspace, allow...)
	if err != nil {
		return nil, err
	}
	if box.Serve == nil {
		return nil, withCode(exitConfig, errors.New(e.text(messages.NoWayToAuthority, profile)))
	}
	if to.host == "" {
		n, err := strconv.Atoi(to.port)
		if err != nil {
			return nil, withCode(exitConfig, errors.New(e.text(messages.BadAuthority, login.Authority, name)))
		}
		if box.Serve[n] != nil {
			return nil, withCode(exitConfig, errors.New(e.text(messages.PortOfProxy, n)))
		}
		box.Serve[n] = func(l net.Listener) { relayTo(l, to.targets) }
		if to.address != "127.0.0.1" {
			box.Addresses = map[int]netip.Addr{n: netip.MustParseAddr(to.address)}
		}
	}
	if box.Kept, err = keptHome(paths, name, box.Home, login); err != nil {
		kept := keptFolder(paths, name)
		return nil, withCode(exitCannotRun, fmt.Errorf("%w\n%s", err, e.text(messages.KeptBroken, kept, name)))
	}
	box.Variables = append(box.Variables, "VOGT_AGENT="+name)
	return box, nil
}

// keptHome is the folder that stands in the place of the home for an agent, with
// the agent's own identity in it.
func keptHome(paths config.Paths, name, userHome string, login client.Login) (string, error) {
	kept := keptFolder(paths, name)
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return "", err
	}
	// The agent writes in it: what it has made of a path is followed within it only.
	root, err := os.OpenRoot(kept)
	if err != nil {
		return "", err
	}
	defer root.Close()
	folder := filepath.Join(".config", "vogt", "agents", name)
	if err := root.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("the home %s of the agent: %w", kept, err)
	}
	key, err := os.ReadFile(login.KeyPath)
	if err != nil {
		return "", fmt.Errorf("the key of the agent %s: %w", name, err)
	}
	if holds(root, filepath.Join(folder, "key"), key) && holds(root, filepath.Join(folder, "authority"), []byte(login.Authority)) {
		return kept, nil // the agent has been here, and keeps its own login
	}
	data, err := os.ReadFile(filepath.Join(home(paths).AgentFolder(name), "auth.json"))
	if err != nil {
		return "", err
	}
	var auth map[string]json.RawMessage
	if err := json.Unmarshal(data, &auth); err != nil {
		return "", err
	}
	// The path of the key as the agent will see it.
	if auth["key_path"], err = json.Marshal(filepath.Join(userHome, folder, "key")); err != nil {
		return "", err
	}
	if data, err = json.Marshal(auth); err != nil {
		return "", err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{
		{filepath.Join(folder, "auth.json"), data},
		{filepath.Join(folder, "authority"), []byte(login.Authority)},
		{filepath.Join(folder, "key"), key}, // last: it says that the rest is there
	} {
		if err := putAnew(root, f.name, f.data); err != nil {
			return "", fmt.Errorf("the home %s of the agent: %w", kept, err)
		}
	}
	return kept, nil
}

// forgetKept deletes the identity in the home that was kept for an agent. The rest
// of that home stays, and is returned if there is one.
func forgetKept(paths config.Paths, name string) (kept string, err error) {
	kept = keptFolder(paths, name)
	root, err := os.OpenRoot(kept)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer root.Close()
	return kept, root.RemoveAll(filepath.Join(".config", "vogt"))
}

// holds reports whether a file has these bytes. It waits for no pipe.
func holds(root *os.Root, name string, want []byte) bool {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	have, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return err == nil && bytes.Equal(have, want)
}

// putAnew puts a file in the place of whatever has its name.
func putAnew(root *os.Root, name string, data []byte) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
