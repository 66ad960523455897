// Package control serves the authority's control socket: a Unix socket in the
// data directory through which the OS user that owns the data starts the first
// set-up, makes the first owner and stops the daemon.
//
// It owns the socket and its few calls. It never makes a decision about a
// grant: whoever can open the socket can read the database anyway, so it gives
// nothing that the data directory does not.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/peer"
)

// SocketName is the socket's name in the data directory.
const SocketName = "control.sock"

// Info is what the daemon knows about itself.
type Info struct {
	Listen  string
	Version string
	// Stop ends the daemon; it must return at once.
	Stop func()
}

// Listen makes the socket, which only this user can open. A socket that was
// left behind by a killed daemon is replaced: the data directory's lock has
// made sure that no other daemon is alive.
func Listen(dataDir string) (net.Listener, error) {
	path := filepath.Join(dataDir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w (a socket's path may have about 100 characters: set VOGT_HOME to a shorter one)", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return checked{l}, nil
}

// checked drops connections of other users.
type checked struct{ net.Listener }

func (c checked) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peer.Check(conn.(*net.UnixConn)) == nil {
			return conn, nil
		}
		conn.Close()
	}
}

type server struct {
	a    *authority.Authority
	info Info
}

// New returns the socket's handler.
func New(a *authority.Authority, info Info) http.Handler {
	s := &server{a: a, info: info}
	mux := http.NewServeMux()
	for pattern, fn := range map[string]func(*http.Request) (int, any, error){
		"GET /status":        s.status,
		"POST /owner":        s.owner,
		"POST /setup":        s.startSetup,
		"GET /setup":         s.setup,
		"POST /setup/digits": s.digits,
		"POST /rotate-keys":  s.rotate,
		"POST /shutdown":     s.shutdown,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			status, v, err := fn(r)
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				p := api.Problem{Type: "about:blank", Title: "The authority failed", Status: 500, Detail: err.Error()}
				var e *authority.Error
				if errors.As(err, &e) {
					p = api.Problem{Type: "about:blank", Title: e.Title, Status: e.Status, Detail: e.Error(), Hint: e.Hint}
				}
				w.Header().Set("Content-Type", "application/problem+json")
				status, v = p.Status, p
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v) // the caller may be gone
		})
	}
	return mux
}

func (s *server) status(r *http.Request) (int, any, error) {
	has, err := s.a.HasOwner(r.Context())
	cfg := s.a.Config()
	return http.StatusOK, map[string]any{
		"pid": os.Getpid(), "issuer": cfg.Issuer, "pages": cfg.PagesOrigin, "version": s.info.Version,
		"set_up": has, "listen": s.info.Listen, "epoch": s.a.Epoch(), "log_key": s.a.LogKey(),
	}, err
}

func read(r *http.Request, v any) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return &authority.Error{Status: 400, Title: "The body is not the JSON that is expected here", Detail: err.Error()}
	}
	return nil
}

func (s *server) owner(r *http.Request) (int, any, error) {
	var in struct {
		Email     string `json:"email"`
		Name      string `json:"name"`
		PublicKey string `json:"public_key"`
	}
	if err := read(r, &in); err != nil {
		return 0, nil, err
	}
	err := s.a.CreateOwner(r.Context(), in.Email, in.Name, in.PublicKey)
	return http.StatusCreated, map[string]string{"email": in.Email}, err
}

func (s *server) startSetup(r *http.Request) (int, any, error) {
	token, ends, err := s.a.StartSetup(r.Context())
	return http.StatusCreated, map[string]any{
		"url": s.a.Config().PagesOrigin + "/setup?token=" + token, "expires_at": ends.Unix(),
	}, err
}

// setup answers at once, or with ?wait=SECONDS at the next change.
func (s *server) setup(r *http.Request) (int, any, error) {
	wait, _ := strconv.Atoi(r.URL.Query().Get("wait"))
	changed := s.a.SetupChanged()
	state, email := s.a.Setup()
	if wait > 0 && state != authority.SetupDone && state != authority.SetupExpired {
		ctx, cancel := context.WithTimeout(r.Context(), min(time.Duration(wait)*time.Second, 55*time.Second))
		defer cancel()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		state, email = s.a.Setup()
	}
	return http.StatusOK, map[string]any{"state": state, "email": email}, nil
}

func (s *server) digits(r *http.Request) (int, any, error) {
	var in struct {
		Digits string `json:"digits"`
	}
	if err := read(r, &in); err != nil {
		return 0, nil, err
	}
	state, err := s.a.ConfirmSetup(in.Digits)
	return http.StatusOK, map[string]any{"state": state}, err
}

func (s *server) rotate(r *http.Request) (int, any, error) {
	return http.StatusOK, map[string]bool{"ok": true}, s.a.RotateKeys(r.Context())
}

func (s *server) shutdown(*http.Request) (int, any, error) {
	s.info.Stop()
	return http.StatusAccepted, map[string]bool{"ok": true}, nil
}
