package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/egress"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
	"vogt/internal/inet"
	"vogt/internal/terminal"
)

func newProxyCommand(e *env) *cobra.Command {
	var profile string
	var allow []string
	cmd := &cobra.Command{
		Use:   "proxy [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command that finds a proxy to named hosts only",
		Long: `Run a command with variables (HTTP_PROXY and its like) that send it to a proxy of its
own, which reaches the hosts that --allow names and no other, and records each
connection. The proxy listens on a loopback port, wants a credential that only the
command and what it starts know, and ends with the command.

This holds nobody. The command has the machine's network beside the proxy, and a
program that ignores the variables goes around it. It shows what a program reaches
and stops mistakes; "vogt confine --allow HOST" is for a program that may mean harm.`,
		Example: `  vogt proxy --allow registry.npmjs.org -- npm ci
  vogt proxy --allow '*.example.com' --allow git.example.com:22 -- make
  ssh -o ProxyCommand='vogt proxy connect %h %p' git.example.com`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{text: e.text(messages.NoCommandToProxy)}
			}
			return e.proxied(cmd.Context(), args, profile, allow)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&profile, "profile", "", "the `NAME` of a profile whose hosts may be reached, too")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "a `HOST` that may be reached: name, *.name or name:port")
	cmd.AddCommand(newProxyConnectCommand(e))
	return cmd
}

// proxied runs a command with a proxy of its own.
func (e *env) proxied(ctx context.Context, args []string, name string, allow []string) error {
	if err := e.checkAllowed(allow); err != nil {
		return err
	}
	p := &confine.Profile{Name: "proxy"}
	if name != "" {
		var err error
		if p, err = e.profile(name); err != nil {
			return withCode(exitConfig, err)
		}
	}
	p.Hosts = append(slices.Clip(p.Hosts), allow...)
	paths, err := e.paths()
	if err != nil {
		return err
	}
	password := rand.Text()
	w, err := e.newWay(p, wayOptions{
		record: filepath.Join(paths.Data, "egress.jsonl"), command: "proxy " + p.Name, password: password, refused: messages.ProxyRefused,
	})
	if err != nil {
		return withCode(exitConfig, err)
	}
	defer w.close()
	x := execution.Executor{Environ: e.environ, Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr}
	bound, err := x.Bind(args, "")
	if err != nil {
		return err
	}
	defer bound.Close()
	var trust []string
	if session := w.proxy.Authority(); session != nil {
		file, err := e.trustFile(session)
		if err != nil {
			return err
		}
		defer os.Remove(file)
		trust = egress.TrustVariables(file)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.proxy.Serve(serving, l) }()
	x.Environ = append(slices.Clip(e.environ), egress.Variables(l.Addr().String(), password)...)
	x.Environ = slices.DeleteFunc(x.Environ, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(w.hosts.variables, name)
	})
	x.Environ = append(x.Environ, trust...)
	out, err := x.Run(ctx, bound)
	stop()
	if failed := <-ended; err == nil && out.Code == 0 {
		err = failed
	}
	if err == nil && out.Code != 0 {
		err = withCode(out.Code, nil)
	}
	return err
}

// trustFile puts the authorities that the command is to trust into a file. There is
// no secret in it.
func (e *env) trustFile(session []byte) (string, error) {
	data, err := e.trusted(session)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "vogt-authorities-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func newProxyConnectCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "connect HOST PORT",
		Short: "Connect standard input and output to a host, by the proxy",
		Long: `Connect standard input and output to a host and port, by the proxy that the variables
name (https_proxy or all_proxy, with CONNECT or SOCKS5): the one of the box, or of
"vogt proxy". It is made for ssh:

  ssh -o ProxyCommand='vogt proxy connect %h %p' git.example.com

The exit code is 0 when the connection has ended, 77 when the proxy refuses it, and
69 when the proxy cannot be reached.`,
		Example: `  ssh -o ProxyCommand='vogt proxy connect %h %p' git.example.com
  GIT_SSH_COMMAND="ssh -o ProxyCommand='vogt proxy connect %h %p'" git fetch`,
		Args: cobra.ExactArgs(2),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			host, err := inet.ParseHost(strings.TrimSuffix(strings.TrimPrefix(args[0], "["), "]"))
			if err != nil {
				return &usageError{text: err.Error()}
			}
			port, err := strconv.ParseUint(args[1], 10, 16)
			if err != nil || port == 0 {
				return &usageError{text: e.text(messages.NoPort, args[1])}
			}
			return e.connect(cmd.Context(), host, uint16(port))
		}),
	}
}

// connect passes bytes between the standard streams and a host.
func (e *env) connect(ctx context.Context, host inet.Host, port uint16) error {
	proxy, err := egress.ProxyOf(e.getenv)
	if egress.IsNoProxy(err) {
		return withCode(exitUnavailable, errors.New(e.text(messages.NoProxyNamed)))
	}
	if err != nil {
		return withCode(exitConfig, err)
	}
	conn, err := egress.DialThrough(ctx, proxy, host, port)
	if refused, ok := errors.AsType[*egress.RefusedError](err); ok {
		e.say(messages.ConnectRefused, net.JoinHostPort(host.String(), strconv.Itoa(int(port))), terminal.Visible(refused.Error()))
		if refused.Remedy != "" {
			fmt.Fprintln(e.stderr, "vogt: "+terminal.Visible(refused.Remedy))
		}
		return withCode(exitRefused, nil)
	}
	if err != nil {
		return withCode(exitUnavailable, errors.New(e.text(messages.NoConnection, proxy.Host, terminal.Visible(err.Error()))))
	}
	return relayStreams(conn, e.stdin, e.stdout)
}

// relayStreams passes on what is read until the host ends. The end of standard
// input ends what is sent and no more; the end of what the host sends ends standard
// output, so that a client who waits for it sees it, and then everything: what is
// still typed has nobody to read it.
func relayStreams(conn *egress.Through, in, out *os.File) error {
	defer conn.Close()
	go func() {
		// Lives as long as standard input does, which is at most as long as the process.
		if _, err := io.Copy(conn, in); err == nil {
			_ = conn.CloseWrite() // the host sees it, or has gone
		}
	}()
	_, err := io.Copy(out, conn)
	return err
}
