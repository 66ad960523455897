package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"vogt/internal/execution/confine/plan"
)

// Request is a command to be run in a box.
type Request struct {
	Profile   *Profile
	Workspace string    // folder that the box is about
	Dir       string    // folder in which the command starts; empty is the workspace
	Home      string    // of the user
	Program   string    // absolute path of the program
	File      plan.File // what it has to be; the zero value is anything
	Argv      []string  // with the program's name
	Environ   []string
	Variables []string // name=value for the box, besides those of Environ that the profile lets through
	Terminal  bool     // standard input is a terminal of this session
	// Level is the least that must hold. Empty is Full, or Reduced where the
	// profile admits it and there can be no Full.
	Level plan.Level
	// State is a folder of the starter in which each workspace gets a cache of
	// its own, which its boxes see at ~/.cache. Empty is none.
	State string
	// Kept is a folder that stands in the place of the home and stays when the box
	// ends, as the state of an agent does. Empty is a home in memory.
	Kept string
	// Serve are the ports on 127.0.0.1 in the box with net = "proxy", and who serves
	// them. Each is called once, in a goroutine of its own, and must return when
	// its listener is closed.
	Serve map[int]func(net.Listener)
	// Started, when set, is called with the first process of the box, as the
	// starter sees it, before the command runs. If it fails, the box ends. It can be
	// called again, for another level in the place of a full box.
	Started func(pid int, level plan.Level) error
	// Addresses are those of ports that are served on another address of the box's
	// loopback than 127.0.0.1.
	Addresses map[int]netip.Addr
	// Direct is the way for programs that know of no proxy, with net = "proxy" on
	// Linux. Nil is none.
	Direct *Direct
	// Trust are authorities for TLS, in PEM, which the box finds at plan.TrustPath.
	// Variables say so to programs.
	Trust []byte
	// Secret are folders and files that no box may see, besides those that are always
	// hidden: where the starter keeps its own.
	Secret []string
	// Own are folders that the box may write as well, such as the state of an
	// agent.
	Own []string
}

// Direct is how hosts are reached by programs that know of no proxy: names become
// addresses of a network that is the box's own, and who connects to one of these at
// one of the ports is served.
type Direct struct {
	Network netip.Prefix // of IPv4
	Ports   []uint16     // those that Request.Serve has are left to it
	// Serve is called for the listener of each port, and Names once. Both must
	// return when what they serve is closed.
	Serve func(net.Listener)
	Names func(net.PacketConn)
}

// Resolve turns a request into a plan. Every path in it is free of links and
// exists, but for the protected names that are missing: Run makes something in
// their place.
func Resolve(r Request) (p *plan.Plan, missing []string, err error) {
	s := &resolver{request: r, profile: r.Profile}
	return s.resolve()
}

func (s *resolver) resolve() (p *plan.Plan, missing []string, err error) {
	p, err = s.plan()
	if err != nil {
		return nil, nil, err
	}
	more, err := s.more()
	if err != nil {
		return nil, nil, err
	}
	p.Hidden = append(p.Hidden, more...)
	slices.Sort(p.Hidden)
	p.Hidden = slices.Compact(p.Hidden)
	return p, s.missing, nil
}

// CheckWorkspace refuses a workspace about which there can be no box, as Resolve does:
// for those who ask a person before they run anything. Of the request it looks at
// Workspace, Home, State and Secret.
func CheckWorkspace(r Request) error {
	s := &resolver{request: r}
	return s.place()
}

// place finds the workspace, the homes and what is secret, and refuses a workspace
// that is too wide.
func (s *resolver) place() (err error) {
	r := s.request
	if s.workspace, err = canonicalDir(r.Workspace); err != nil {
		return fmt.Errorf("the workspace %s: %w", r.Workspace, err)
	}
	if s.home, err = canonicalDir(r.Home); err != nil {
		return fmt.Errorf("the home %s: %w", r.Home, err)
	}
	s.homes = homesOf(s.home)
	s.secrets = s.findSecrets()
	return s.tooWide()
}

// plan is all of the plan but for what more returns.
func (s *resolver) plan() (p *plan.Plan, err error) {
	r := s.request
	if os.Getuid() == 0 {
		// It takes longer than all the rest.
		s.roots = make(chan []string, 1)
		go func() { s.roots <- rootsOwn("/etc") }()
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	dir := s.workspace
	if r.Dir != "" {
		if dir, err = canonicalDir(r.Dir); err != nil {
			return nil, fmt.Errorf("the folder %s: %w", r.Dir, err)
		}
	}
	p = &plan.Plan{
		Version: plan.Version, Level: plan.Full, Root: r.Profile.Root, Home: s.home,
		Network: r.Profile.Network, Sockets: r.Profile.Sockets, Host: "box",
		Dir: dir, Program: r.Program, File: r.File, Argv: r.Argv, Terminal: r.Terminal,
		Trust:   r.Trust,
		Environ: append(without(environ(r.Environ, r.Profile.Environ, s.home), r.Variables), r.Variables...),
		Limits: plan.Limits{
			Memory: int64(r.Profile.Limits.Memory), Processes: r.Profile.Limits.Processes, Files: r.Profile.Limits.Files,
			FileSize: int64(r.Profile.Limits.FileSize), CPU: r.Profile.Limits.CPU, Temporary: int64(r.Profile.Limits.Temporary),
		},
	}
	p.Environ = append(p.Environ, Variable+"="+r.Profile.Name)
	if os.Getuid() == 0 {
		// There is one user in the box, and tar would give files to others.
		p.Environ = append(p.Environ, "TAR_OPTIONS=--no-same-owner")
	}
	if p.Network == plan.Proxied {
		if r.Serve[ProxyPort] == nil {
			return nil, fmt.Errorf("net = %q needs somebody who serves the proxy, and there is nobody here", p.Network)
		}
		p.Ports = slices.Sorted(maps.Keys(r.Serve))
		port := ProxyPort
		if s.port != 0 {
			port, p.Ports = s.port, []int{s.port}
		} else if r.Direct != nil {
			p.Direct = &plan.Direct{Network: r.Direct.Network.String()}
			for _, n := range r.Direct.Ports {
				if !slices.Contains(p.Ports, int(n)) {
					p.Direct.Ports = append(p.Direct.Ports, int(n))
				}
			}
		}
		var own []string
		for n, a := range r.Addresses {
			if r.Serve[n] != nil && s.port == 0 {
				if p.Addresses == nil {
					p.Addresses = map[int]string{}
				}
				p.Addresses[n] = a.String()
				own = append(own, a.String())
			}
		}
		slices.Sort(own)
		p.Environ = append(p.Environ, proxyVariables(port, slices.Compact(own)...)...)
	}
	if r.Kept != "" {
		if p.Root != plan.Listed {
			return nil, fmt.Errorf("root = %q shows the home as it is, so that no other can stand in its place", p.Root)
		}
		if p.Kept, err = canonicalDir(r.Kept); err != nil {
			return nil, fmt.Errorf("the folder %s: %w", r.Kept, err)
		}
	}
	if s.own, err = s.ownFolder(); err != nil {
		return nil, err
	}
	if p.Cache, err = s.cache(); err != nil {
		return nil, err
	}
	if p.Write, err = s.existing(r.Profile.Write, r.Own); err != nil {
		return nil, err
	}
	if common := s.commonDir(); common != "" && covered(s.workspace, p.Write) {
		p.Write = append(p.Write, common)
	}
	if p.Root == plan.Listed {
		if p.Read, err = s.existing(r.Profile.Read, nil); err != nil {
			return nil, err
		}
		p.Read = outermost(p.Read)
		p.Links = s.links
		if !covered(p.Dir, p.Read, p.Write) {
			return nil, fmt.Errorf("the folder %s is not in the box: start it in the workspace %s", p.Dir, s.workspace)
		}
	}
	p.Write = outermost(p.Write)
	if p.Hidden, err = s.hidden(); err != nil {
		return nil, err
	}
	if err := s.guard(p); err != nil {
		return nil, err
	}
	return p, nil
}

// more is what is hidden besides: what only root can read, if that is who asks.
func (s *resolver) more() ([]string, error) {
	if s.roots == nil {
		return nil, nil
	}
	return s.hideAll(<-s.roots)
}

// ProxyPort is where programs in a box with net = "proxy" find the proxy.
const ProxyPort = 3128

// proxyVariables tell programs of the proxy. Most read one of the spellings; node
// needs to be told to look.
func proxyVariables(port int, own ...string) []string {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	var out []string
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		out = append(out, name+"=http://"+address)
	}
	for _, name := range []string{"all_proxy", "ALL_PROXY"} {
		out = append(out, name+"=socks5h://"+address)
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		out = append(out, name+"="+strings.Join(append([]string{"localhost", "127.0.0.1", "::1"}, own...), ","))
	}
	return append(out, "NODE_USE_ENV_PROXY=1")
}

type resolver struct {
	request   Request
	profile   *Profile
	workspace string
	home      string
	homes     []string // that one, and the one of the user's account
	secrets   []string // places that no box may see, by whatever profile, as far as they are there
	own       string   // folder for what is kept for the workspace, or empty
	links     []plan.Link
	roots     chan []string // gives what only root may read
	missing   []string
	gits      map[string]bool // those that git reads in a repository
	watched   []string        // protected names on which nothing can be mounted, or that have others
	port      int             // of the proxy, where the box has no network of its own
}

// ownFolder is a folder for what is kept between the boxes of one workspace, or
// empty.
func (s *resolver) ownFolder() (string, error) {
	if s.request.State == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(s.workspace))
	dir := filepath.Join(s.request.State, "boxes", hex.EncodeToString(sum[:16]))
	return dir, os.MkdirAll(dir, 0o700)
}

// cache is the folder that keeps what tools keep between the boxes of one
// workspace. The user's own caches are never writable: what is put there would
// be built into programs outside.
func (s *resolver) cache() (string, error) {
	if s.own == "" || s.request.Kept != "" || s.profile.Root != plan.Listed {
		return "", nil
	}
	dir := filepath.Join(s.own, "cache")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return canonicalDir(dir)
}

// tooWide refuses a workspace that holds the home or the system: what is
// writable in it would be everything that the box is to keep.
func (s *resolver) tooWide() error {
	for _, home := range s.homes {
		if s.workspace == home || within(home, s.workspace) {
			return &WideError{HoldsHome, s.workspace, home}
		}
	}
	for _, home := range s.homes {
		for _, name := range []string{".config", ".local", ".local/share", ".cache"} {
			if s.workspace == path.Join(home, name) {
				return &WideError{IsSettings, s.workspace, s.workspace}
			}
		}
		for _, name := range []string{"bin", ".local/bin", ".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/applications", ".config/fish", ".ssh", ".gnupg"} {
			if covered(s.workspace, []string{path.Join(home, name)}) {
				return &WideError{StartsPrograms, s.workspace, s.workspace}
			}
		}
	}
	for _, name := range s.secrets {
		real, err := filepath.EvalSymlinks(name)
		switch {
		case err != nil: // nothing is there
		case s.workspace == real:
			return &WideError{IsSecret, s.workspace, name}
		case covered(s.workspace, []string{real}):
			return &WideError{InSecret, s.workspace, name}
		case covered(real, []string{s.workspace}):
			return &WideError{HoldsSecret, s.workspace, name}
		}
	}
	for _, name := range []string{"/", "/usr", "/etc", "/var", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/proc", "/sys", "/run", "/root", "/home", "/opt", "/tmp",
		"/System", "/Library", "/Applications", "/Users", "/Volumes", "/private", "/private/etc", "/private/tmp", "/private/var"} {
		if s.workspace == name {
			return &WideError{IsSystem, s.workspace, name}
		}
	}
	return nil
}

// full is a path of the profile as an absolute one.
func (s *resolver) full(name string) string {
	switch {
	case name == ".":
		return s.workspace
	case strings.HasPrefix(name, "./"):
		return path.Join(s.workspace, name)
	case strings.HasPrefix(name, "~/"):
		return path.Join(s.home, name[2:])
	}
	return path.Clean(name)
}

// existing returns the paths of a list that exist, without links. A link at the
// top of the tree, as /bin to usr/bin, is noted to be repeated.
func (s *resolver) existing(list, own []string) ([]string, error) {
	var out []string
	for _, name := range list {
		full := s.full(name)
		st, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			return nil, err
		case st.Mode()&fs.ModeSymlink != 0 && path.Dir(full) == "/":
			target, err := os.Readlink(full)
			if err != nil {
				return nil, err
			}
			s.links = append(s.links, plan.Link{Path: full, Target: target})
			continue
		}
		real, err := filepath.EvalSymlinks(full)
		if err != nil {
			return nil, err
		}
		out = append(out, real)
	}
	for _, name := range own {
		real, err := canonicalDir(name)
		if err != nil {
			return nil, fmt.Errorf("the folder %s: %w", name, err)
		}
		out = append(out, real)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// always are the places of credentials, of histories and of what speaks for the
// user. They are hidden whatever a profile says.
var always = [...]string{
	"~/.ssh", "~/.gnupg", "~/.aws", "~/.azure", "~/.kube", "~/.docker", "~/.config/gcloud", "~/.config/gh", "~/.config/op", "~/.config/hub",
	"~/.config/glab-cli", "~/.config/doctl", "~/.config/hcloud", "~/.config/rclone", "~/.config/sops", "~/.config/age", "~/.config/vogt", "~/.local/share/vogt",
	"~/.netrc", "~/.git-credentials", "~/.npmrc", "~/.yarnrc", "~/.yarnrc.yml", "~/.pypirc", "~/.pgpass", "~/.my.cnf", "~/.mylogin.cnf", "~/.s3cfg", "~/.boto", "~/.fly",
	"~/.cargo/credentials", "~/.cargo/credentials.toml", "~/.gem/credentials", "~/.pub-cache/credentials.json", "~/.dotnet/corefx", "~/.m2/settings.xml", "~/.gradle/gradle.properties", "~/.terraform.d", "~/.terraformrc",
	"~/.vault-token", "~/.password-store", "~/.1password", "~/.local/share/keyrings", "~/.local/share/uv/credentials", "~/.pki", "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium",
	"~/.config/BraveSoftware", "~/.config/microsoft-edge", "~/.config/vivaldi", "~/.thunderbird", "~/.local/share/evolution", "~/.config/evolution", "~/Mail", "~/.mail",
	"~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.sqlite_history", "~/.lesshst", "~/.viminfo",
	"~/.claude/.credentials.json", "~/.claude.json", "~/.codex/auth.json", "~/.gemini", "~/.config/containers/auth.json", "~/.config/pip", "~/.pip", "~/.cache/huggingface",
	"~/.huggingface", "~/.config/github-copilot", "~/.copilot", "~/.kaggle", "~/.oci", "~/.config/Code", "~/.config/Cursor", "~/.vscode-server/data", "~/.config/JetBrains", "~/.local/share/fish/fish_history",
	"~/.config/nuget", "~/.nuget/NuGet", "~/.config/stripe", "~/.config/heroku", "~/.config/netlify", "~/.config/configstore", "~/.wrangler", "~/.config/.wrangler", "~/.vercel", "~/.local/share/com.vercel.cli",
	"~/.config/ngrok", "~/.config/linode-cli", "~/.config/flyctl", "~/.config/railway", "~/.railway", "~/.supabase", "~/.config/supabase", "~/.snowflake", "~/.databrickscfg", "~/.config/atuin", "~/.local/share/atuin",
	"~/.config/opencode/auth.json", "~/.local/share/opencode/auth.json", "~/.aider.conf.yml", "~/.config/llm", "~/.config/anthropic", "~/.config/openai",
	// Of macOS.
	"~/Library/Keychains", "~/Library/Cookies", "~/Library/Safari", "~/Library/Mail", "~/Library/Messages", "~/Library/Calendars", "~/Library/Containers",
	"~/Library/Group Containers", "~/Library/Mobile Documents", "~/Library/CloudStorage", "~/Library/Application Support/AddressBook",
	"~/Library/Application Support/Google/Chrome", "~/Library/Application Support/Chromium", "~/Library/Application Support/Firefox",
	"~/Library/Application Support/BraveSoftware", "~/Library/Application Support/Microsoft Edge", "~/Library/Application Support/Vivaldi",
	"~/Library/Application Support/Arc", "~/Library/Application Support/Signal", "~/Library/Application Support/discord",
	"~/Library/Application Support/Slack", "~/Library/Thunderbird", "~/.zsh_sessions", "~/.bash_sessions",
	"~/Dropbox", "~/Nextcloud", "~/OneDrive", "~/.config/Signal", "~/.config/discord", "~/.config/Slack",
}

// hidden returns what a box hides and that exists: each name and, if it is a
// link, what it leads to.
func (s *resolver) hidden() ([]string, error) {
	var names []string
	for _, name := range s.secrets {
		// With a home of its own, what is in it is the agent's.
		if s.request.Kept == "" || !within(name, s.home) {
			names = append(names, name)
		}
	}
	for _, name := range s.profile.Hidden {
		if !strings.HasPrefix(name, anywhere) {
			names = append(names, s.full(name))
		}
	}
	return s.hideAll(names)
}

// hideAll returns what is there of a list of names and patterns.
func (s *resolver) hideAll(names []string) ([]string, error) {
	var out []string
	lists := map[string][]string{}
	for _, full := range names {
		found := []string{full}
		if strings.Contains(full, "*") {
			var err error
			if found, err = glob(full, lists); err != nil {
				return nil, err
			}
		}
		for _, name := range found {
			real, err := s.hide(name)
			if err != nil {
				return nil, err
			}
			if real != "" {
				out = append(out, real)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// findSecrets are the secrets of a resolver.
func (s *resolver) findSecrets() []string {
	names := slices.Clone(s.request.Secret)
	if s.request.State != "" {
		names = append(names, s.request.State)
	}
	for _, home := range s.homes {
		names = append(names, present(home, always[:])...)
	}
	return names
}

// present are the names of a list, each "~/" and a path in a home, that are there
// or of which that cannot be told. Most are missing, and many lie in folders that
// are: each folder is asked for once.
func present(home string, list []string) []string {
	missing := map[string]bool{}
	gone := func(name string) bool {
		_, err := os.Lstat(home + "/" + name)
		return errors.Is(err, fs.ErrNotExist)
	}
	var out []string
list:
	for _, name := range list {
		name = name[2:]
		for i := range len(name) {
			if name[i] != '/' {
				continue
			}
			dir := name[:i]
			if _, known := missing[dir]; !known {
				missing[dir] = gone(dir)
			}
			if missing[dir] {
				continue list
			}
		}
		if !gone(name) {
			out = append(out, path.Join(home, name))
		}
	}
	return out
}

// hide is what a name to be hidden leads to, or empty if that is nothing. Whoever
// works in the workspace may have made the name there: then it hides what lies in
// the workspace or in a home, and nothing that the box needs.
func (s *resolver) hide(name string) (string, error) {
	// Many are missing, and one look tells: this is done before each command.
	_, err := os.Lstat(name)
	real := name
	if err == nil {
		real, err = filepath.EvalSymlinks(name)
	}
	theirs := within(name, s.workspace)
	holds := real == s.workspace || within(s.workspace, real)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), err != nil && theirs:
		return "", nil
	case err != nil:
		return "", err
	case theirs && (holds || !covered(real, []string{s.workspace}, s.homes)):
		return "", nil
	case holds:
		return "", fmt.Errorf("%s would hide the workspace %s", name, s.workspace)
	}
	return real, nil
}

// homesOf are the homes whose credentials are hidden: what HOME says, and what
// the account says, since HOME may be anything.
func homesOf(home string) []string {
	homes := []string{home}
	if account, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		if real, err := canonicalDir(account.HomeDir); err == nil && real != home && real != "/" {
			homes = append(homes, real)
		}
	}
	return homes
}

// glob is filepath.Glob with a star as the only pattern. Most have one in the last
// part alone, and many of those are of one folder, which is listed once: lists holds
// what was listed.
func glob(full string, lists map[string][]string) ([]string, error) {
	full = escapeGlob(full)
	dir, last := path.Split(full)
	if strings.ContainsAny(dir, `*\\`) || dir == "/" {
		return filepath.Glob(full)
	}
	if _, known := lists[dir]; !known {
		f, err := os.Open(dir)
		if err != nil {
			return nil, nil // as filepath.Glob does
		}
		defer f.Close()
		lists[dir], _ = f.Readdirnames(-1) // as far as it can be
	}
	var out []string
	for _, name := range lists[dir] {
		match, err := path.Match(last, name)
		if err != nil {
			return nil, err
		}
		if match {
			out = append(out, dir+name)
		}
	}
	return out, nil
}

// escapeGlob keeps a path from being a pattern but for its stars.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// guard plans what cannot be written in what can be: what the profile says, and
// the hooks and settings of every repository in the workspace.
func (s *resolver) guard(p *plan.Plan) error {
	var names []string
	for _, name := range s.profile.Protected {
		existing, only := strings.CutSuffix(name, "?")
		existing, bare := strings.CutSuffix(existing, "!")
		full := s.full(existing)
		_, err := os.Lstat(full)
		switch {
		case err == nil || !only && !bare:
			names = append(names, full)
		case bare && errors.Is(err, fs.ErrNotExist) && covered(full, p.Write):
			s.watched = append(s.watched, full) // programs take a folder of this name for an error
		}
	}
	// What is hidden in every folder is hidden where nothing can be written, too.
	seen, err := s.search(outermost(append(slices.Clone(p.Write), s.workspace)), false)
	if err != nil {
		return err
	}
	for _, name := range seen.hidden {
		real, err := s.hide(name)
		if err != nil {
			return err
		}
		if real != "" {
			p.Hidden = append(p.Hidden, real)
		}
	}
	names = append(names, seen.links...)
	s.gits = map[string]bool{}
	gits := map[string]bool{}
	for _, dir := range seen.dirs {
		for _, name := range gitFiles(dir) {
			gits[name] = true
			names = append(names, name)
		}
	}
	names = append(names, s.namedFiles(seen.dirs)...)
	slices.Sort(names)
	pins := map[string]bool{}
	for _, name := range slices.Compact(names) {
		if !covered(name, p.Write) {
			continue // it cannot be written anyway
		}
		st, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Base(name) == "commondir":
			s.watched = append(s.watched, name) // git takes a folder of this name for an error
			continue
		case errors.Is(err, fs.ErrNotExist):
			git := gits[name]
			if name = s.firstMissing(name); name == "" {
				continue
			}
			s.missing = append(s.missing, name)
			s.gits[name] = s.gits[name] || git
		case errors.Is(err, syscall.ENOTDIR):
			// Something else stands in the place of a folder: it is kept there. Where
			// that is a .git, what it leads to is guarded.
			if name = noFolder(name); name == "" || path.Base(name) == ".git" {
				continue
			}
		case err != nil:
			return err
		case st.Mode()&fs.ModeSymlink != 0:
			// What it leads to is guarded, and the link is compared afterwards:
			// nothing can be mounted on a link.
			s.watched = append(s.watched, name)
			if path.Base(name) == ".git" {
				continue // the repository that it leads to is written like any other
			}
			real, err := filepath.EvalSymlinks(name)
			if errors.Is(err, fs.ErrNotExist) {
				if real = s.dangling(name); real != "" && covered(real, p.Write) {
					s.missing = append(s.missing, real)
					err = nil
				}
			}
			if err != nil || !covered(real, p.Write) {
				continue
			}
			name = real
		}
		p.Guarded = append(p.Guarded, name)
		for dir := path.Dir(name); !slices.Contains(p.Write, dir) && len(dir) > 1; dir = path.Dir(dir) {
			pins[dir] = true
		}
	}
	slices.Sort(s.missing)
	s.missing = slices.Compact(s.missing)
	p.Guarded = outermost(p.Guarded)
	for _, name := range seen.sockets {
		// What is guarded is covered, as the places of missing names are that
		// other boxes keep.
		if !slices.Contains(p.Guarded, name) {
			p.Hidden = append(p.Hidden, name)
		}
	}
	slices.Sort(p.Hidden)
	p.Hidden = slices.Compact(p.Hidden)
	for dir := range pins {
		if !covered(dir, p.Guarded) {
			p.Pinned = append(p.Pinned, dir)
		}
	}
	slices.SortFunc(p.Pinned, func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return nil
}

// noFolder is the part of a path that is neither a folder nor a link, or empty.
func noFolder(name string) string {
	for len(name) > 1 {
		name = path.Dir(name)
		switch st, err := os.Lstat(name); {
		case err == nil && (st.IsDir() || st.Mode()&fs.ModeSymlink != 0):
			return ""
		case err == nil:
			return name
		}
	}
	return ""
}

// dangling is what a link leads to that leads to nothing yet, as far as something
// may stand there.
func (s *resolver) dangling(link string) string {
	target, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(target) {
		target = path.Dir(link) + "/" + target
	}
	parent, err := filepath.EvalSymlinks(path.Dir(path.Clean(target)))
	if err != nil {
		return ""
	}
	return s.firstMissing(path.Join(parent, path.Base(target)))
}

// firstMissing is the outermost part of a missing name in whose place something
// else may stand, or the empty string where it would be in the way: git makes
// .git itself, and warns of a .gitmodules that it cannot read.
func (s *resolver) firstMissing(name string) string {
	for {
		dir := path.Dir(name)
		st, err := os.Lstat(dir)
		if err == nil && !st.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if err == nil {
			break
		}
		name = dir
	}
	switch path.Base(name) {
	case ".git", ".gitmodules":
		return ""
	}
	return name
}

// commonDir is the repository that the workspace is a worktree of, or empty.
// The workspace alone does not decide it, since whoever works in it can write
// its .git: the repository must name the workspace as its worktree
// (gitrepository-layout(5)).
func (s *resolver) commonDir() string {
	link := filepath.Join(s.workspace, ".git")
	data, err := readSmall(link)
	if err != nil {
		return ""
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = s.workspace + "/" + dir // the kernel resolves .. after links
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil || filepath.Base(filepath.Dir(dir)) != "worktrees" {
		return ""
	}
	back, err := readSmall(filepath.Join(dir, "gitdir"))
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(strings.TrimRight(string(back), "\r\n"))
	if err != nil || real != link {
		return ""
	}
	common := filepath.Dir(filepath.Dir(dir))
	if _, err := os.Lstat(filepath.Join(common, "HEAD")); err != nil || s.home == common || within(s.home, common) {
		return ""
	}
	return common
}

// maxSmall bounds what is read of a file that names a folder, or of settings.
const maxSmall = 1 << 20

// readSmall reads a file that whoever works in the workspace may have put there:
// a pipe is not waited for, and a file without end or of any size not read.
func readSmall(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch st, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular() || st.Size() > maxSmall:
		return nil, fmt.Errorf("%s is no file of a few lines", name)
	}
	return io.ReadAll(io.LimitReader(f, maxSmall))
}

// without leaves out the variables that others have: programs take the first one.
func without(environ, others []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
}

// environ keeps the variables that a list names.
func environ(environ, list []string, home string) []string {
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if slices.ContainsFunc(list, func(l string) bool {
			prefix, star := strings.CutSuffix(l, "*")
			return name == l || star && strings.HasPrefix(name, prefix)
		}) && name != "HOME" && !strings.HasSuffix(strings.ToLower(name), "_proxy") && !strings.HasPrefix(name, "LD_") && !strings.HasPrefix(name, "DYLD_") && !strings.HasPrefix(name, "VOGT_") {
			out = append(out, e)
		}
	}
	return append(out, "HOME="+home)
}

func canonicalDir(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	if !st.IsDir() {
		return "", errors.New("it is no folder")
	}
	return real, nil
}

// within reports whether a path lies in a folder and is not the folder.
func within(name, folder string) bool {
	return name != folder && (folder == "/" || strings.HasPrefix(name, folder+"/"))
}

// covered reports whether a path is one of the folders, or lies in one.
func covered(name string, lists ...[]string) bool {
	for _, list := range lists {
		for _, folder := range list {
			if name == folder || within(name, folder) {
				return true
			}
		}
	}
	return false
}

// outermost drops paths that lie in others of the list.
func outermost(list []string) []string {
	slices.Sort(list)
	var out []string
	for _, name := range list {
		if !covered(name, out) {
			out = append(out, name)
		}
	}
	return out
}
