package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"vogt/internal/config"
)

// Home is the folder where the identities of one OS user lie: auth.json is the
// default identity, agents/NAME/ holds key, key.pub and auth.json of an agent
// that was made here.
type Home struct {
	Folder string // absolute; made with mode 0700 when something is written
}

// Default is the default identity.
func (h Home) Default() File { return File{path: filepath.Join(h.Folder, "auth.json")} }

// Agent is the identity of the agent NAME of this home.
func (h Home) Agent(name string) (File, error) {
	if err := CheckAgentName(name); err != nil {
		return File{}, err
	}
	return File{path: filepath.Join(h.AgentFolder(name), "auth.json")}, nil
}

// AgentFolder is where an agent's files lie. The name must have been checked.
func (h Home) AgentFolder(name string) string { return filepath.Join(h.Folder, "agents", name) }

// CheckAgentName refuses what cannot name an agent: names are one lower-case
// letter and up to 23 lower-case letters, digits or hyphens.
func CheckAgentName(name string) error {
	ok := len(name) > 0 && len(name) <= 24 && name[0] >= 'a' && name[0] <= 'z'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if !ok {
		return &Error{Kind: Invalid, Detail: fmt.Sprintf("%.60q cannot name an agent", name),
			Hint: "use a lower-case letter, then up to 23 lower-case letters, digits or hyphens"}
	}
	return nil
}

// Login is the content of an auth.json. Keys of the file that are not listed
// here are kept when it is written.
type Login struct {
	Authority string `json:"idp"`
	Token     string `json:"access_token,omitempty"`
	Email     string `json:"email"`
	Expires   int64  `json:"expires_at,omitempty"`    // unix seconds
	KeyPath   string `json:"key_path,omitempty"`      // absolute
	Refresh   string `json:"refresh_token,omitempty"` // of a login by browser
	Owner     string `json:"owner_email,omitempty"`
	Name      string `json:"name,omitempty"`
	Act       string `json:"act,omitempty"` // "human" or "agent"
	// LogKey is the pinned verifier key of the audit log, Keys are the pinned
	// keys of the authority's tokens, as a JSON Web Key Set.
	LogKey string          `json:"log_key,omitempty"`
	Keys   json.RawMessage `json:"jwks,omitempty"`

	unknown map[string]json.RawMessage
}

// loginKeys are the keys of Login's fields.
var loginKeys = [...]string{
	"idp", "access_token", "email", "expires_at", "key_path", "refresh_token", "owner_email", "name", "act", "log_key", "jwks",
}

// Renews reports whether the login renews itself.
func (l Login) Renews() bool { return l.KeyPath != "" || l.Refresh != "" }

// Agent reports whether the identity is that of an agent.
func (l Login) Agent() bool { return l.Act == "agent" }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Login) UnmarshalJSON(data []byte) error {
	type fields Login
	if err := json.Unmarshal(data, (*fields)(l)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &l.unknown); err != nil {
		return err
	}
	for _, key := range loginKeys {
		delete(l.unknown, key)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (l Login) MarshalJSON() ([]byte, error) {
	type fields Login
	known, err := json.Marshal(fields(l))
	if err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(l.unknown)+len(loginKeys))
	for key, value := range l.unknown {
		all[key] = value
	}
	if err := json.Unmarshal(known, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// File is one auth.json. The zero value is no file.
type File struct{ path string }

// Path is where the file lies.
func (f File) Path() string { return f.path }

// maxLogin bounds an auth.json.
const maxLogin = 1 << 20

// Load reads the file. An identity that was never made here is an *Error of
// kind NotLoggedIn, a file that cannot be used one of kind BadFile.
func (f File) Load() (Login, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Login{}, &Error{Kind: NotLoggedIn, Where: f.path, Detail: "there is no such file"}
	}
	if err != nil {
		return Login{}, f.bad("", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Login{}, f.bad("", err)
	}
	if whose := foreign(info); whose != "" {
		return Login{}, f.bad(whose, nil)
	}
	// A token that others can read is theirs as well.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return Login{}, f.bad(fmt.Sprintf("others can read it (mode %04o); run: chmod 600 %s", info.Mode().Perm(), f.path), nil)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxLogin+1))
	if err != nil {
		return Login{}, f.bad("", err)
	}
	var l Login
	switch {
	case len(data) > maxLogin:
		return Login{}, f.bad(fmt.Sprintf("it is larger than %d bytes", maxLogin), nil)
	case len(data) == 0:
		return Login{}, f.bad("it is empty", nil)
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return Login{}, f.bad("", err)
	}
	if l.Email == "" || l.Authority == "" {
		return Login{}, f.bad("it names no identity or no authority", nil)
	}
	return l, nil
}

func (f File) bad(detail string, err error) error {
	return &Error{Kind: BadFile, Where: f.path, Detail: detail, Err: err, Hint: "log in again, which writes it anew: vogt login"}
}

// Save writes the file for its owner only, and the folder if it is missing.
func (f File) Save(l Login) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("login of %s: %w", l.Email, err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("folder of the login: %w", err)
	}
	return config.WriteFile(f.path, append(data, '\n'), 0o600)
}

// Remove deletes the file; one that is missing is no error.
func (f File) Remove() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// CheckKeyFile refuses a private key's file that belongs to a user other than
// root and the one that runs this. A file that is not there is no error here.
func CheckKeyFile(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{Kind: KeyLocked, Where: path, Err: err}
	}
	if whose := foreign(info); whose != "" {
		return &Error{Kind: KeyLocked, Where: path, Detail: whose, Hint: "use a key of your own"}
	}
	return nil
}

// lockLimit bounds the wait for another process that renews the same login.
const lockLimit = 20 * time.Second

// Locked calls change with the file's present content while no other process
// writes it, and saves what change returns. An error of change saves nothing.
func (f File) Locked(ctx context.Context, change func(Login) (Login, error)) (Login, error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return Login{}, fmt.Errorf("folder of the login: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	lock, err := config.AcquireLock(ctx, f.path+".lock")
	if err != nil {
		return Login{}, err
	}
	defer lock.Unlock()
	l, err := f.Load()
	if err != nil {
		return Login{}, err
	}
	next, err := change(l)
	if err != nil {
		return Login{}, err
	}
	return next, f.Save(next)
}
