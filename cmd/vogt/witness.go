package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"vogt/cmd/vogt/messages"
	"vogt/internal/audit"
	"vogt/internal/audit/witness"
)

// witnessOptions are the flags of audit witness.
type witnessOptions struct {
	listen, key, name, state string
	logs                     []string
}

// witness serves until ctx ends.
func (e *env) witness(ctx context.Context, o witnessOptions) error {
	name := o.name
	if name == "" {
		name = o.listen
	}
	key, err := witnessKey(o.key, name, rand.Reader)
	if err != nil {
		return withCode(exitConfig, err)
	}
	store, err := witness.OpenFiles(o.state)
	if err != nil {
		return withCode(exitConfig, err)
	}
	config := witness.Config{Key: key, Store: store, Now: e.now, Log: slog.New(slog.NewTextHandler(e.stderr, nil))}
	for _, k := range o.logs {
		v, err := audit.NewVerifier(k)
		if err != nil {
			return withCode(exitConfig, err)
		}
		config.Logs = append(config.Logs, witness.Log{Origin: v.Name(), Keys: []string{k}})
	}
	handler, err := witness.New(config)
	if err != nil {
		return withCode(exitConfig, err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return withCode(exitUnavailable, err)
	}
	answer := map[string]string{"listen": listener.Addr().String(), "verifier_key": key.VerifierKey()}
	err = e.print(answer, line(e.text(messages.WitnessServes, listener.Addr(), key.VerifierKey())))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve(ctx, listener, handler)
}

// serve serves HTTP on listener until ctx ends, and lets what it has begun
// come to its end.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(limited)
	<-ended
	return err
}

// witnessKey reads a witness's key file, or makes it: the name and the base64
// of the seed, a line each.
func witnessKey(path, name string, random io.Reader) (witness.Key, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed := make([]byte, 32)
		if _, err := io.ReadFull(random, seed); err != nil {
			return witness.Key{}, err
		}
		key, err := witness.NewKey(name, seed)
		if err != nil {
			return key, err
		}
		text := name + "\n" + base64.StdEncoding.EncodeToString(seed) + "\n"
		return key, exportTo(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	if err != nil {
		return witness.Key{}, err
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) == 2 {
		if seed, err := base64.StdEncoding.DecodeString(lines[1]); err == nil {
			return witness.NewKey(lines[0], seed)
		}
	}
	return witness.Key{}, fmt.Errorf("%s is not the key file of a witness: the name and the base64 of 32 bytes, a line each", path)
}
