package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
)

// instance is a running authority with an owner and one agent.
type instance struct {
	home, issuer string
	worker       int // pid
	cmd          *exec.Cmd
	http         *http.Client
	owner        *sshkey.Private
	ownerToken   string
	agentToken   string
	agentEmail   string
	agentKey     *sshkey.Private
}

const ownerEmail = "owner@example.com"

// start runs vogtd on a free port with an owner that has an SSH key, and with
// limits that do not stop a load test.
func (b *bench) start(home string) (*instance, error) {
	in := &instance{home: home, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute}}
	if err := os.MkdirAll(filepath.Join(home, "config"), 0o700); err != nil {
		return nil, err
	}
	limits := "[limits]\npending_per_agent = 10000\nstored_per_agent = 1073741824\ncreations_per_second = 10000\nwaits_per_agent = 1000\nowner_factor = 1000\n"
	if err := os.WriteFile(filepath.Join(home, "config", "vogtd.toml"), []byte(limits), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	in.cmd = exec.Command(filepath.Join(b.bin, "vogtd"), "--listen", "127.0.0.1:0", "--bearer-decisions", "high")
	in.cmd.Env = append(os.Environ(), "VOGT_HOME="+home)
	in.cmd.Stdout, in.cmd.Stderr = log, log
	if err := in.cmd.Start(); err != nil {
		return nil, err
	}
	if err := in.await(b); err != nil {
		in.stop()
		return nil, err
	}
	return in, nil
}

func (in *instance) await(b *bench) error {
	control := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(in.home, "data", "control.sock"))
		},
	}}
	deadline := time.Now().Add(20 * time.Second)
	for {
		resp, err := control.Get("http://vogtd/status")
		if err == nil {
			var status struct {
				PID    int
				Issuer string
			}
			err = json.NewDecoder(resp.Body).Decode(&status)
			resp.Body.Close()
			in.worker, in.issuer = status.PID, status.Issuer
		}
		if err == nil {
			break
		}
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			return fmt.Errorf("vogtd did not start: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var err error
	var public sshkey.Public
	if in.owner, public, err = b.key("owner"); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"email": ownerEmail, "name": "Owner", "public_key": public.String()})
	if err != nil {
		return err
	}
	resp, err := control.Post("http://vogtd/owner", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if in.ownerToken, err = in.login(ownerEmail, in.owner); err != nil {
		return err
	}
	return in.enrol(b)
}

func (b *bench) key(name string) (*sshkey.Private, sshkey.Public, error) {
	path := filepath.Join(b.dir, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		pem, public, err := sshkey.Generate(rand.Reader, name)
		if err != nil {
			return nil, public, err
		}
		if err := sshkey.WriteNew(path, pem, public); err != nil {
			return nil, public, err
		}
	}
	private, err := sshkey.LoadPrivate(path, nil)
	if err != nil {
		return nil, sshkey.Public{}, err
	}
	return private, private.Public(), nil
}

func (in *instance) login(email string, key *sshkey.Private) (string, error) {
	var c api.Challenge
	if err := in.call("POST", api.PathChallenge, "", api.ChallengeRequest{ID: email}, &c); err != nil {
		return "", err
	}
	signature, err := sshkey.SignLogin(key, c.Challenge)
	if err != nil {
		return "", err
	}
	var l api.Login
	err = in.call("POST", api.PathAuthenticate, "", api.Authenticate{ID: email, Challenge: c.Challenge, Signature: signature}, &l)
	return l.Token, err
}

func (in *instance) enrol(b *bench) error {
	var public sshkey.Public
	var err error
	if in.agentKey, public, err = b.key("agent"); err != nil {
		return err
	}
	var e api.Enrolled
	if err := in.call("POST", api.PathEnroll, in.ownerToken, api.Enroll{Name: "bench", PublicKey: public.String()}, &e); err != nil {
		return err
	}
	in.agentEmail = e.Email
	in.agentToken, err = in.login(e.Email, in.agentKey)
	return err
}

// call makes one JSON call and reads the answer into out, if it is not nil.
func (in *instance) call(method, path, token string, body, out any) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, in.issuer+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := in.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, resp.StatusCode, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// request is a command that no earlier one equals.
func request(kind grant.Type) (grant.Request, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return grant.Request{}, err
	}
	return grant.Request{Host: "bench", Audience: "shapes", Type: kind, Command: []string{"/bin/true", hex.EncodeToString(b[:])}, Reason: "bench"}, nil
}

func (in *instance) stop() {
	_ = in.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	_ = in.cmd.Wait()
}
