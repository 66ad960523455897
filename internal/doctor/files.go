package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"vogt/internal/quickstart"
)

// most bounds how many files a folder of settings may have for this check.
const most = 10_000

// files looks at owners and modes of everything of this user's Vogt.
func (x *exam) files(context.Context) Check {
	const name = "files"
	var wrong, paths []string
	seen := 0
	for _, root := range []string{x.Paths.Config, x.Paths.Data, x.Paths.State} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if seen++; seen > most {
				return fmt.Errorf("%s has more than %d files", root, most)
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it went away while we looked
			}
			if err != nil {
				return err
			}
			if problem := misplaced(path, info, root == x.Paths.Data); problem != "" {
				wrong, paths = append(wrong, path+" "+problem), append(paths, path)
			} else if d.IsDir() && x.keptHome(path) {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return finding(name, Failed, "look into that folder", "%v", err)
		}
	}
	if len(wrong) > 0 {
		text := wrong[0]
		if len(wrong) > 1 {
			text += fmt.Sprintf(", and %d more", len(wrong)-1)
		}
		return finding(name, Failed, fixModes(paths), "%s", text)
	}
	return inForce(name, "settings, keys, tokens and data belong to this user and are closed to others")
}

// keptHome reports whether a folder is the home that is kept for an agent. What the
// agent makes in it has the modes that the agent likes, in any number of files; that
// the folder itself is closed to others protects all of it.
func (x *exam) keptHome(path string) bool {
	agent, name := filepath.Split(path)
	return name == "home" && filepath.Dir(filepath.Clean(agent)) == filepath.Join(x.Paths.Data, "agents")
}

// fixModes is the command for up to three files.
func fixModes(paths []string) string {
	quoted := make([]string, 0, 3)
	for _, p := range paths[:min(3, len(paths))] {
		quoted = append(quoted, quote(p))
	}
	return fmt.Sprintf("chmod go-rwx %s (and where the owner is wrong: sudo chown %d)", strings.Join(quoted, " "), os.Getuid())
}

func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// misplaced says what is wrong with one file, or nothing.
func misplaced(path string, info fs.FileInfo, secret bool) string {
	if info.Mode().Type() == fs.ModeSymlink {
		return ""
	}
	uid, known := ownerOf(info)
	if !known {
		return ""
	}
	perm := info.Mode().Perm()
	if filepath.Base(path) == "auth.json" || info.Mode().IsRegular() && privateKey(path) {
		secret = true
	}
	switch {
	case uid != os.Geteuid() && uid != 0:
		return fmt.Sprintf("belongs to uid %d", uid)
	case secret && perm&0o077 != 0:
		return fmt.Sprintf("is open to others (mode %04o)", perm)
	case perm&0o022 != 0:
		return fmt.Sprintf("can be changed by others (mode %04o)", perm)
	}
	return ""
}

// privateKey reports whether a file begins as a private key does.
func privateKey(path string) bool {
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 64))
	return bytes.HasPrefix(head, []byte("-----BEGIN ")) && bytes.Contains(head, []byte("PRIVATE KEY-----"))
}

// tokens looks for a token on disk that could decide.
func (x *exam) tokens(context.Context) Check {
	const name = "tokens"
	if x.Getenv("VOGT_MANAGEMENT_TOKEN") != "" {
		return finding(name, NotInForce, "unset VOGT_MANAGEMENT_TOKEN (and give vogtd --management-token-file instead)",
			"VOGT_MANAGEMENT_TOKEN is in this environment: every program started here may add keys to accounts with it")
	}
	var people, all int
	who := ""
	for _, l := range x.logins {
		if l.Token == "" || time.Unix(l.Expires, 0).Before(x.Now()) {
			continue
		}
		all++
		if l.Act == "human" {
			people++
			who = l.Email
		}
	}
	if people == 0 {
		return inForce(name, "%s on disk, none of them a person's", count(all, "valid token"))
	}
	if x.healthErr != nil {
		return finding(name, InPart, "vogt up", "a token of %s is on disk; whether the authority lets it decide cannot be told now", who)
	}
	if b := x.health.Bearer; b != "none" && b != "" {
		return finding(name, NotInForce, "vogt logout, or vogt down && vogt up --bearer-decisions none",
			"a token of %s is on disk, and bearer_decisions = %q lets every program of this user approve with it", who, b)
	}
	return inForce(name, "%s on disk, one of %s; it reads, denies and revokes, and permits nothing", count(all, "valid token"), who)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sshKey looks for private keys with which a program of this user could sign
// a decision.
func (x *exam) sshKey(context.Context) Check {
	const name = "ssh-key"
	paths, _ := filepath.Glob(filepath.Join(x.Home, ".ssh", "id_*")) // the pattern is well formed
	for _, l := range x.logins {
		if l.KeyPath != "" && l.Act == "human" && !slices.Contains(paths, l.KeyPath) {
			paths = append(paths, l.KeyPath)
		}
	}
	var bare, locked []string
	for _, path := range paths {
		if strings.HasSuffix(path, ".pub") || !privateKey(path) {
			continue
		}
		text, err := readSome(path)
		if err != nil {
			continue
		}
		key, err := ssh.ParseRawPrivateKey(text)
		var missing *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &missing):
			locked = append(locked, path)
		case err == nil && isEd25519(key):
			bare = append(bare, path)
		}
	}
	switch {
	case len(bare) > 0:
		return finding(name, NotInForce, "ssh-keygen -p -f "+quote(bare[0]),
			"%s can be read here and has no passphrase: if it is an owner's key, every program of this user can approve with it", strings.Join(bare, " and "))
	case len(locked) > 0:
		return inForce(name, "%s needs a passphrase", strings.Join(locked, " and "))
	}
	return inForce(name, "no private key that could sign a decision lies open here")
}

func isEd25519(key any) bool {
	signer, err := ssh.NewSignerFromKey(key)
	return err == nil && signer.PublicKey().Type() == ssh.KeyAlgoED25519
}

// sshAgent asks a running ssh-agent what it would sign with.
func (x *exam) sshAgent(ctx context.Context) Check {
	const name = "ssh-agent"
	socket := x.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return inForce(name, "no ssh-agent is offered in this environment")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return inForce(name, "the ssh-agent of SSH_AUTH_SOCK does not answer")
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end) // without one the read below ends with the agent's answer
	}
	keys, err := agent.NewClient(conn).List()
	if err != nil {
		return finding(name, InPart, "", "the ssh-agent does not say which keys it has: %v", err)
	}
	var names []string
	for _, k := range keys {
		if k.Type() == ssh.KeyAlgoED25519 {
			names = append(names, strings.TrimSpace(k.Comment+" "+ssh.FingerprintSHA256(k)))
		}
	}
	if len(names) == 0 {
		return inForce(name, "the ssh-agent holds no key that could sign a decision unseen")
	}
	return finding(name, InPart, "ssh-add -D, then ssh-add -c FILE for each key",
		"the ssh-agent signs with %s for every program of this user, unless the key was added with ssh-add -c", strings.Join(names, ", "))
}

// readSome reads a regular file of at most 64 KiB.
func readSome(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// path looks which vogt a program finds.
func (x *exam) path(context.Context) Check {
	const name = "path"
	self, err := os.Stat(x.Vogt)
	if err != nil {
		return finding(name, Failed, "install vogt anew", "the running binary is gone: %v", err)
	}
	for _, dir := range filepath.SplitList(x.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			return finding(name, Failed, "take it out of PATH", "PATH has the relative entry %q before vogt: any folder that an agent works in can bring its own vogt", dir)
		}
		candidate := filepath.Join(dir, filepath.Base(x.Vogt))
		info, err := os.Stat(candidate)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 && hasModes {
			continue
		}
		if !os.SameFile(self, info) {
			return finding(name, Failed, "remove one of them, or put "+filepath.Dir(x.Vogt)+" first in PATH", "the first vogt on the PATH is %s, not %s that runs now", candidate, x.Vogt)
		}
		return inForce(name, "vogt on the PATH is %s", candidate)
	}
	return finding(name, InPart, "put "+filepath.Dir(x.Vogt)+" into PATH", "vogt is not on the PATH; programs reach it by %s only", x.Vogt)
}

// binary looks who could replace vogt and vogtd.
func (x *exam) binary(context.Context) Check {
	const name = "binary"
	const fix = "sudo install -o root -g root -m 0755 %s /usr/local/bin/"
	binaries := []string{x.Vogt}
	if daemon, err := quickstart.FindDaemon(x.Vogt); err == nil {
		binaries = append(binaries, daemon)
	}
	install := fmt.Sprintf(fix, strings.Join(binaries, " "))
	own := ""
	for _, binary := range binaries {
		real, err := filepath.EvalSymlinks(binary)
		if err != nil {
			return finding(name, Failed, "install vogt anew", "%v", err)
		}
		for path := real; ; path = filepath.Dir(path) {
			info, err := os.Lstat(path)
			if err != nil {
				return finding(name, Failed, "install vogt anew", "%v", err)
			}
			others, self := whoReplaces(path, info)
			if others != "" {
				return finding(name, Failed, install, "%s: %s, so others can replace %s", path, others, binary)
			}
			if self && own == "" {
				own = path
			}
			if filepath.Dir(path) == path {
				break
			}
		}
	}
	if own != "" {
		return finding(name, NotInForce, install, "%s can change %s, and so replace what it is asked by: an agent under the same user can too", whoami(), own)
	}
	return inForce(name, "only root can replace %s", strings.Join(binaries, " and "))
}

// whoReplaces says whether users other than root and this one can change the
// file or folder, and whether this one can.
func whoReplaces(path string, info fs.FileInfo) (others string, self bool) {
	uid, known := ownerOf(info)
	if !known {
		return "", writable(path)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 // others may add there, not replace
	switch perm := info.Mode().Perm(); {
	case uid != 0 && uid != os.Geteuid():
		others = fmt.Sprintf("it belongs to uid %d", uid)
	case perm&0o002 != 0 && !sticky, perm&0o020 != 0 && !sticky && !privateGroup(info):
		others = fmt.Sprintf("its mode is %04o", perm)
	}
	return others, writable(path) && !(sticky && uid != os.Geteuid())
}
