package trial

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/attempt"
	"vogt/internal/execution/confine/plan"
)

// variable is in the environment of the trial, and must not be in the box.
const variable = "VOGT_TRIAL"

// Run tries the box that helper makes with the default profile, as the user of
// this process.
func Run(ctx context.Context, helper string) (v Verdict, err error) {
	dir, err := os.MkdirTemp("", "vogt-trial-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return v, err
	}
	s, end, err := scene(ctx, dir)
	defer end()
	if err != nil {
		return v, err
	}
	argv := []string{"vogt-confine", attempt.Argument}
	text, err := json.Marshal(s)
	if err != nil {
		return v, err
	}
	argv = append(argv, string(text))
	environ := append(os.Environ(), variable+"="+s.Secret)
	outside, err := without(ctx, helper, argv, environ, s)
	if err != nil {
		return v, err
	}
	inside, err := within(helper, argv, environ, s, plan.Full, &v)
	if err != nil {
		return v, err
	}
	if v.Refused != "" {
		// Not what it holds, but whether there can be one.
		var reduced Verdict
		_, err := within(helper, argv, environ, s, plan.Reduced, &reduced)
		v.Reduced, v.Group = err == nil && reduced.Refused == "", reduced.Group
		return v, nil
	}
	for i, r := range inside {
		switch {
		case i >= len(outside) || outside[i].Name != r.Name:
			return v, fmt.Errorf("the attempts without a box are others than those in it")
		case r.Open:
			v.Open = append(v.Open, r.Name)
		case outside[i].Open:
			v.Held = append(v.Held, r.Name)
		default:
			v.Unshown = append(v.Unshown, r.Name+" ("+outside[i].Detail+")")
		}
	}
	return v, nil
}

// scene makes what the attempts aim at. end takes it away.
func scene(ctx context.Context, dir string) (s attempt.Scene, end func(), err error) {
	var ends []func()
	end = func() {
		for _, e := range ends {
			e()
		}
	}
	secret := rand.Text()
	s = attempt.Scene{
		Home: filepath.Join(dir, "home"), Workspace: filepath.Join(dir, "home", "project"), Outside: filepath.Join(dir, "outside"),
		Socket: filepath.Join(dir, "home", "s"), Abstract: "vogt-trial-" + secret, Variable: variable, Secret: secret,
	}
	for name, text := range map[string]string{
		"home/.ssh/id": secret, "outside/file": secret,
		"home/project/.git/HEAD": "ref: refs/heads/main\n", "home/project/.git/config": "[core]\n", "home/project/.git/hooks/none": "",
	} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			return s, end, err
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			return s, end, err
		}
	}
	var config net.ListenConfig
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", s.Socket}, {"unix", "@" + s.Abstract}} {
		listener, err := config.Listen(ctx, l.network, l.address)
		if err != nil {
			return s, end, err
		}
		ends = append(ends, func() { listener.Close() })
		if a, ok := listener.Addr().(*net.TCPAddr); ok {
			s.Port = a.Port
		}
	}
	other := exec.CommandContext(ctx, "/bin/sh", "-c", "read x")
	other.Env = []string{variable + "=" + secret}
	hold, err := other.StdinPipe()
	if err != nil {
		return s, end, err
	}
	if err := other.Start(); err != nil {
		return s, end, err
	}
	ends = append(ends, func() { hold.Close(); _ = other.Wait() })
	s.PID = other.Process.Pid
	return s, end, nil
}

// without makes the attempts without a box.
func without(ctx context.Context, helper string, argv, environ []string, s attempt.Scene) ([]attempt.Result, error) {
	cmd := exec.CommandContext(ctx, helper)
	cmd.Args, cmd.Env, cmd.Dir = argv, environ, s.Workspace
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("make the attempts without a box: %w", err)
	}
	return decode(out)
}

// within makes them in a box.
func within(helper string, argv, environ []string, s attempt.Scene, level plan.Level, v *Verdict) ([]attempt.Result, error) {
	parse, _ := confine.Builtin("default")
	p, err := parse()
	if err != nil {
		return nil, err
	}
	p.Read = append(p.Read, helper)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, err
	}
	defer null.Close()
	printed := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(r) // what is missing is missed by decode
		printed <- data
	}()
	out, err := confine.Run(helper, confine.Request{
		Profile: p, Workspace: s.Workspace, Home: s.Home, Program: helper, Argv: argv, Environ: environ, Level: level,
	}, confine.Streams{In: null, Out: w, Err: null})
	w.Close()
	data := <-printed
	v.Report, v.Group = out.Report, out.Group
	if refused, ok := errors.AsType[*confine.RefusedError](err); ok {
		v.Refused, v.Remedy = refused.Reason, remedy("/proc/sys", refused.Remedy)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(data)
}

func decode(data []byte) (results []attempt.Result, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&results); err != nil || len(results) == 0 {
		return nil, fmt.Errorf("the attempts left no answer: %w", errors.Join(err, syscall.ENODATA))
	}
	return results, nil
}

// remedy is what helps where ordinary users may not make namespaces, as far as
// the kernel's switches say (sysctl(8)); else it is what the refusal says.
func remedy(sys, otherwise string) string {
	is := func(name, value string) bool {
		data, err := os.ReadFile(filepath.Join(sys, name))
		return err == nil && strings.TrimSpace(string(data)) == value
	}
	switch {
	case is("kernel/unprivileged_userns_clone", "0"):
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case is("user/max_user_namespaces", "0"):
		return "sudo sysctl -w user.max_user_namespaces=15000"
	case is("kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "sudo apt install bubblewrap and its profile (the package apparmor-profiles), or an AppArmor profile for vogt-confine: docs/confinement.md, section \"Where there can be no box\""
	}
	return otherwise
}
