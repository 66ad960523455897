package osuser

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// scheduler is a service that runs a user's commands later, with the files that
// say who may use it.
type scheduler struct {
	name        string
	allow, deny string
}

// schedulers are cron and at. Where the allow file exists, only who stands in
// it is served; else, where the deny file exists, everybody who does not stand
// in it. Where neither does, at serves root alone, and a deny file would open it
// to everybody; cron serves root alone too (cronie), except on Debian.
var schedulers = []scheduler{
	{"cron", "/etc/cron.allow", "/etc/cron.deny"},
	{"at", "/etc/at.allow", "/etc/at.deny"},
}

// denied reports whether the user is refused by a scheduler, and if not, the
// step that would change that, or what a person must do.
func (m *host) denied(s scheduler) (yes bool, change *step, remedy string, err error) {
	allow, closed, err := m.read(s.allow)
	if err != nil {
		return false, nil, "", err
	}
	if closed {
		if hasLine(allow, m.spec.User) {
			return false, nil, fmt.Sprintf("take the line %s out of %s", m.spec.User, s.allow), nil
		}
		return true, nil, "", nil
	}
	deny, open, err := m.read(s.deny)
	if err != nil {
		return false, nil, "", err
	}
	if open && hasLine(deny, m.spec.User) {
		return true, nil, "", nil
	}
	if !open {
		_, debian, err := m.lstat("/etc/debian_version")
		if err != nil {
			return false, nil, "", err
		}
		if s.name != "cron" || !debian {
			return true, nil, "", nil
		}
	}
	unended := len(deny) > 0 && deny[len(deny)-1] != '\n'
	return false, &step{Kind: kindLine, Path: s.deny, Text: m.spec.User, Fresh: !open, Open: unended}, "put the line " + m.spec.User + " into " + s.deny, nil
}

// leftovers are files by which a service would act for a user of this name.
func (m *host) leftovers() []string {
	return []string{
		"/var/spool/cron/crontabs/" + m.spec.User, // Debian
		"/var/spool/cron/" + m.spec.User,          // cronie
		"/etc/crontabs/" + m.spec.User,            // busybox
		"/var/lib/systemd/linger/" + m.spec.User,
	}
}

const header = "# Made by `vogt agent user add`; `vogt agent user remove` takes it away unless it was changed.\n"

// The folders of services that are told about the user, if they exist.
const (
	sshdConfig   = "/etc/ssh/sshd_config"
	sshdFolder   = "/etc/ssh/sshd_config.d"
	polkitFolder = "/etc/polkit-1/rules.d"
	unitFolder   = "/etc/systemd/system"
)

func (m *host) sshdFile() step {
	return step{Kind: kindFile, Path: sshdFolder + "/10-vogt-agent-" + m.spec.Name + ".conf",
		Text: header + "DenyUsers " + m.spec.User + "\n"}
}

// polkitFile denies every action that polkit guards. Among them is the one by
// which any user may let own services linger after the last session, and start
// at boot (org.freedesktop.login1.set-self-linger).
func (m *host) polkitFile() step {
	return step{Kind: kindFile, Path: polkitFolder + "/00-vogt-agent-" + m.spec.Name + ".rules",
		Text: strings.Replace(header, "#", "//", 1) +
			"polkit.addRule(function(action, subject) {\n" +
			"    if (subject.user == \"" + m.spec.User + "\") return polkit.Result.NO;\n" +
			"});\n"}
}

func (m *host) sliceFile() step {
	memory, tasks := "75%", "2048"
	if m.spec.MemoryBytes > 0 {
		memory = strconv.FormatInt(m.spec.MemoryBytes, 10)
	}
	if m.spec.Tasks > 0 {
		tasks = strconv.Itoa(m.spec.Tasks)
	}
	var quota string
	if m.spec.CPUPercent > 0 {
		quota = fmt.Sprintf("CPUQuota=%d%%\n", m.spec.CPUPercent)
	}
	return step{Kind: kindFile, Path: unitFolder + "/" + m.spec.slice(),
		Text: header + "[Unit]\nDescription=Vogt agent " + m.spec.Name + "\n\n" +
			"[Slice]\nMemoryMax=" + memory + "\nTasksMax=" + tasks + "\nCPUWeight=50\n" + quota}
}

// unitFile is a template that root starts. It cannot be enabled, so that
// nothing of the agent's starts by itself.
func (m *host) unitFile() step {
	var words []string
	for _, arg := range m.spec.Start {
		if arg != "%i" {
			arg = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(arg)
		}
		words = append(words, `"`+arg+`"`)
	}
	return step{Kind: kindFile, Path: unitFolder + "/" + m.spec.unit(),
		Text: header + "[Unit]\nDescription=Vogt agent " + m.spec.Name + " (%i)\n\n" +
			"[Service]\nUser=" + m.spec.User + "\nGroup=" + m.spec.User + "\nSlice=" + m.spec.slice() + "\n" +
			"WorkingDirectory=" + m.spec.home() + "\nUMask=0077\nNoNewPrivileges=yes\n" +
			"ExecStart=" + strings.Join(words, " ") + "\n"}
}

// ownFiles are the files that this machine needs, by its services.
func (m *host) ownFiles() ([]step, error) {
	candidates := []struct {
		where string
		file  step
		when  bool
	}{
		{sshdConfig, m.sshdFile(), true},
		{polkitFolder, m.polkitFile(), true},
		{unitFolder, m.sliceFile(), true},
		{unitFolder, m.unitFile(), len(m.spec.Start) > 0},
	}
	var files []step
	for _, c := range candidates {
		_, there, err := m.lstat(c.where)
		if err != nil {
			return nil, err
		}
		if there && c.when {
			files = append(files, c.file)
		}
	}
	return files, nil
}

// protections are the steps that are still missing of what denies the user
// other ways to run something.
func (m *host) protections() ([]step, error) {
	var steps []step
	for _, s := range schedulers {
		yes, change, remedy, err := m.denied(s)
		if err != nil {
			return nil, err
		}
		if !yes && change == nil {
			return nil, fmt.Errorf("osuser: %s serves the user %s: %s", s.name, m.spec.User, remedy)
		}
		if change != nil {
			steps = append(steps, *change)
		}
	}
	files, err := m.ownFiles()
	if err != nil {
		return nil, err
	}
	var reload bool
	for _, f := range files {
		data, there, err := m.read(f.Path)
		if err != nil {
			return nil, err
		}
		if there && string(data) == f.Text {
			continue
		}
		if there {
			return nil, fmt.Errorf("osuser: %s exists with another content (was it changed, or made with other settings?); look at it and move it away", f.Path)
		}
		if path.Dir(f.Path) == sshdFolder {
			if err := m.sshdReads(f); err != nil {
				return nil, err
			}
			if _, there, err := m.lstat(sshdFolder); err != nil {
				return nil, err
			} else if !there {
				steps = append(steps, step{Kind: kindFolder, Path: sshdFolder})
			}
		}
		steps = append(steps, f)
		reload = true
	}
	if reload {
		steps = append(steps, step{Kind: kindReload})
	}
	return steps, nil
}

// sshdReads says how to make sshd read the file that denies the user, if it
// would not.
func (m *host) sshdReads(f step) error {
	text, _, err := m.read(sshdConfig)
	if err != nil {
		return err
	}
	includes, denies := sshdGlobal(string(text))
	if slices.Contains(denies, m.spec.User) || slices.ContainsFunc(includes, func(pattern string) bool {
		matches, err := path.Match(pattern, f.Path)
		return err == nil && matches
	}) {
		return nil
	}
	return fmt.Errorf("osuser: %s would not read %s; put this line at its top: Include %s/*.conf (or, for an sshd before 8.2, put there: DenyUsers %s)", sshdConfig, f.Path, sshdFolder, m.spec.User)
}

// sshdGlobal returns the patterns of Include and DenyUsers that hold for every
// connection: those before the first Match (sshd_config(5)).
func sshdGlobal(text string) (includes, denies []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var list *[]string
		switch strings.ToLower(words[0]) {
		case "match":
			return includes, denies
		case "include":
			list = &includes
		case "denyusers":
			list = &denies
		default:
			continue
		}
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "#") {
				break
			}
			word = strings.Trim(word, `"`)
			if list == &includes && !path.IsAbs(word) {
				word = "/etc/ssh/" + word
			}
			*list = append(*list, word)
		}
	}
	return includes, denies
}

// live reports whether systemd runs this machine, or the one under the root.
func (m *host) live() bool {
	_, there, err := m.lstat("/run/systemd/system")
	return err == nil && there && m.spec.Machine.Tools.Systemctl != ""
}

// reload makes systemd and sshd read their files again.
func (m *host) reload(ctx context.Context) error {
	systemctl := m.spec.Machine.Tools.Systemctl
	if !m.live() {
		return nil
	}
	if err := m.run(ctx, systemctl, "daemon-reload"); err != nil {
		return err
	}
	for _, unit := range []string{"ssh.service", "sshd.service"} {
		if m.run(ctx, systemctl, "is-active", "--quiet", unit) != nil {
			continue
		}
		// A configuration that sshd refuses would end it at the reload.
		if sshd := m.spec.Machine.Tools.Sshd; sshd != "" {
			if err := m.run(ctx, sshd, "-t"); err != nil {
				return err
			}
		}
		if err := m.run(ctx, systemctl, "reload", unit); err != nil {
			return err
		}
		break // the other name means the same service
	}
	return nil
}
