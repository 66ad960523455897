package confinetest

import "slices"

// Answers that many cases have in common.
const (
	away    = "ENOENT EACCES EROFS EPERM EXDEV" // a path that is not shown, or not to be written
	fixed   = "EROFS EACCES EPERM EBUSY EXDEV"  // a guarded path of the workspace
	refused = "EPERM ENOSYS EACCES"             // a call that nobody in a box needs
	nobody  = "ESRCH EPERM ENOENT EACCES"       // a process that is not there
	nosock  = "EPERM EACCES EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT ENOENT"
	nonet   = nosock + " ECONNREFUSED ENETUNREACH EADDRNOTAVAIL ETIMEDOUT"
	old     = "ENOSYS: the kernel is older"
)

// Cases are all attempts.
func Cases() []Case {
	return slices.Concat(secretCases(), outsideCases(), guardedCases(), nameCases(), repositoryCases(), procCases(), deviceCases(),
		processCases(), rightCases(), callCases(), machineCases(), namespaceCases(), mountCases(), terminalCases(),
		shareCases(), unixCases(), networkCases(), socketCases())
}

// secretCases read what is not to be read.
func secretCases() []Case {
	return []Case{
		{Line: 1, Try: "read {home}/.ssh/id", Full: away},
		{Line: 2, Try: "read {home}/.netrc", Full: away + " held"},
		{Line: 7, Try: "read {ws}/ssh/id", Full: away},
		{Try: "read {outside}/secret", Full: away, Host: "open"},
		{Try: "read {ws}/out/secret", Full: away, Host: "open"},
		{Try: "read {ws}/.env", Full: "held EACCES", Reduced: "open"},
		{Try: "read {ws}/../.ssh/id", Full: away},
		{Try: "read /proc/self/root{home}/.ssh/id", Full: away},
		{Try: "read /proc/thread-self/root{outside}/secret", Full: away, Host: "open"},
		{Try: "read /proc/self/cwd/../.ssh/id", Full: away},
		{Line: 10, Try: "read /proc/{victim}/root{home}/.ssh/id", Full: "ENOENT", Reduced: "EACCES ENOENT EPERM"},
		{Line: 12, Try: "read /proc/{victim}/environ", Full: "ENOENT", Reduced: "EACCES EPERM held"},
		{Try: "read /proc/{victim}/cwd/secret", Full: "ENOENT", Reduced: "EACCES EPERM ENOENT"},
		{Try: "read /proc/{victim}/fd/3", Full: "ENOENT", Reduced: "EACCES EPERM ENOENT"},
		{Try: "read /proc/{victim}/task/{victim}/root{outside}/secret", Full: "ENOENT", Reduced: "EACCES EPERM ENOENT"},
		{Line: 44, Try: "descriptor-read {secretfd}", Full: "EBADF"},
		{Line: 44, Try: "read /proc/self/fd/{secretfd}", Full: "ENOENT"},
		{Line: 44, Try: "read /dev/fd/{secretfd}", Full: "ENOENT"},
		{Line: 44, Try: "descriptor-openat {folderfd} secret", Full: "EBADF"},
		{Line: 40, Try: "handle-read {ws} {outside}/secret", Full: away, Who: root},
		{Line: 40, Try: "handle-name {ws}/main.go", Full: refused, Unless: "ENOTSUP: the filesystem has no handles"},
		{Try: "hardlink-read {outside}/secret {ws}/linked", Full: away, Seen: "{outside}/secret"},
		{Try: "hardlink-read {home}/.ssh/id {ws}/folder/linked", Full: away, Seen: "{home}/.ssh/id"},
		{Try: "landlocked-read {outside}/secret", Full: away, Host: "open", Unless: old + "; ENOTSUP: Landlock is off"},
		{Try: "watch {outside}", Full: away, Reduced: "open", Host: "open"},
		{Try: "watch {home}/.ssh", Full: away, Reduced: "open"},
		{Try: "watch-all {outside}", Full: refused, Who: root},
		{Try: "cache-state {outside}/secret", Full: away, Host: "open", Unless: old},
		{Try: "fibmap {outside}/secret", Full: away, Who: root},
		{Try: "fibmap {ws}/main.go", Full: "EPERM ENOTTY EACCES", Who: root},
	}
}

// outsideCases write what is not in the workspace.
func outsideCases() []Case {
	return []Case{
		{Line: 3, Try: "append {home}/.bashrc", Full: away, Seen: "{home}/.bashrc"},
		{Line: 4, Try: "create {outside}/new", Full: away, Seen: "{outside}/new"},
		{Line: 5, Try: "open-write /etc/passwd", Full: away, Who: root},
		{Line: 6, Try: "append {ws}/out/file", Full: away, Seen: "{outside}/file"},
		{Line: 6, Try: "create {ws}/out/new", Full: away, Seen: "{outside}/new"},
		{Line: 8, Try: "hardlink-write {outside}/file {ws}/linked", Full: away, Seen: "{outside}/file"},
		{Line: 9, Try: "rename {ws}/main.go {outside}/main.go", Full: away, Seen: "{outside}/main.go"},
		{Line: 10, Try: "append /proc/{victim}/root{outside}/file", Full: "ENOENT", Reduced: "EACCES EPERM ENOENT", Seen: "{outside}/file"},
		{Line: 11, Try: "append /proc/1/root{outside}/file", Full: away, Seen: "{outside}/file", Unless: theirs},
		{Try: "append /proc/self/root{outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "create {home}/new", Full: "free " + away, Reduced: away, Seen: "{home}/new"},
		{Try: "create-deep {home}/.config/autostart/x.desktop", Full: "free " + away, Reduced: away, Seen: "{home}/.config"},
		{Try: "create {home}/.cache/x", Full: "free " + away, Reduced: away, Seen: "{home}/.cache/x"},
		{Try: "opath-truncate {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "truncate {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "fallocate {outside}/file", Full: away, Seen: "{outside}/file", Unless: "ENOTSUP: the filesystem cannot"},
		{Try: "mmap-write {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "copy-range {ws}/main.go {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "sendfile {ws}/main.go {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "openat2-write {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "opath-reopen {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "opath-chmod {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file"},
		{Try: "directory-append {outside}/folder file", Full: away, Seen: "{outside}/file"},
		{Try: "chmod {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file"},
		{Try: "fchmodat2 {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file", Unless: old},
		{Try: "chmod-setuid {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file"},
		{Try: "chown {outside}/file 12345", Full: away, Seen: "{outside}/file", Who: root},
		{Try: "utimes {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file"},
		{Try: "setxattr {outside}/file", Full: away, Reduced: "open", Seen: "{outside}/file", Unless: "ENOTSUP: the filesystem has no user attributes"},
		{Try: "setxattrat {outside}/file", Full: away + " ENOSYS", Reduced: "open", Seen: "{outside}/file", Unless: old + "; ENOTSUP: the filesystem has no user attributes"},
		{Try: "set-capability {outside}/file", Full: away, Seen: "{outside}/file", Who: root},
		{Try: "chattr {outside}/file", Full: away, Seen: "{outside}/file", Unless: "ENOTTY: the filesystem has no file attributes"},
		{Try: "file-setattr {outside}/file", Full: away + " ENOSYS", Reduced: "open", Seen: "{outside}/file", Unless: old + "; ENOTSUP: the filesystem has no file attributes"},
		{Try: "immutable {outside}/file", Full: away, Who: root, Unless: "ENOTTY: the filesystem has no file attributes"},
		{Try: "clone-file {ws}/main.go {outside}/file", Full: away, Seen: "{outside}/file",
			Unless: "ENOTSUP: the filesystem shares no extents; ENOTTY: the filesystem shares no extents; EINVAL: the filesystem shares no extents"},
		{Try: "lock {outside}/file", Full: away, Host: "open"},
		{Try: "lock-range {outside}/file", Full: away},
		{Try: "lease {outside}/file", Full: away, Host: "open"},
		{Try: "mkfifo {outside}/pipe", Full: away, Seen: "{outside}/pipe"},
		{Try: "mkdir {outside}/new", Full: away, Seen: "{outside}/new"},
		{Try: "rmdir {outside}/folder", Full: away, Seen: "{outside}/folder"},
		{Try: "unlink {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "rename-exchange {ws}/main.go {outside}/file", Full: away, Seen: "{outside}/file"},
		{Try: "rename {outside}/file {ws}/file", Full: away, Seen: "{outside}/file"},
		{Try: "link-opath {outside}/file {ws}/linked", Full: away, Seen: "{outside}/file"},
		{Try: "tmpfile-link {outside} {outside}/new", Full: away, Seen: "{outside}/new", Unless: "ENOTSUP: the filesystem has no files without names"},
		{Try: "tmpfile-link {ws} {outside}/new", Full: away, Seen: "{outside}/new", Unless: "ENOTSUP: the filesystem has no files without names"},
		{Try: "symlink {ws} {outside}/link", Full: away, Seen: "{outside}/link"},
		{Try: "swap-symlink {outside}/file {ws}/main.go", Full: away, Seen: "{outside}/file"},
		{Try: "mksocket {outside}/socket", Full: away, Seen: "{outside}/socket"},
		{Try: "unix-bind {outside}/bound", Full: nosock + " EROFS", Seen: "{outside}/bound"},
		{Try: "splice-cache {outside}/file", Full: away + " held", Seen: "{outside}/file", Unless: "held: the kernel is newer than CVE-2022-0847"},
		{Try: "core-dump {outside}", Full: away + " held", Seen: "{outside}/core", Unless: "held: core_pattern leads elsewhere"},
	}
}

// guardedCases change what a workspace's programs obey.
func guardedCases() []Case {
	const hooks, config, tasks = "{ws}/.git/hooks", "{ws}/.git/config", "{ws}/.vscode/tasks.json"
	return []Case{
		{Line: 18, Try: "create {ws}/.git/hooks/pre-commit", Full: fixed, Reduced: "reported", Seen: hooks + "/pre-commit"},
		{Line: 19, Try: "append {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Line: 20, Try: "rename {ws}/main.go {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Line: 21, Try: "rename {ws}/.git {ws}/moved", Full: fixed, Reduced: "reported", Seen: config},
		{Line: 22, Try: "rename {ws}/.git/hooks {ws}/moved", Full: fixed, Reduced: "reported", Seen: hooks},
		{Line: 23, Try: "append {ws}/.vscode/tasks.json", Full: fixed, Reduced: "reported", Seen: tasks},
		{Line: 23, Try: "create {ws}/.vscode/settings.json", Full: fixed, Reduced: "reported", Seen: "{ws}/.vscode/settings.json"},
		{Line: 24, Try: "create {ws}/.mcp.json", Full: fixed + " EISDIR EEXIST", Reduced: "reported EISDIR EEXIST", Seen: "{ws}/.mcp.json"},
		{Line: 25, Try: "mkdir {ws}/.idea", Full: fixed + " EEXIST", Reduced: "EEXIST reported", Seen: "{ws}/.idea"},
		{Line: 25, Try: "create-deep {ws}/.idea/workspace.xml", Full: fixed + " ENOTDIR", Reduced: "reported", Seen: "{ws}/.idea/workspace.xml"},
		{Line: 26, Try: "create {ws}/a/b/.git/hooks/pre-commit", Full: fixed, Reduced: "reported", Seen: "{ws}/a/b/.git/hooks/pre-commit"},
		{Try: "append {ws}/a/b/.git/config", Full: fixed, Reduced: "reported", Seen: "{ws}/a/b/.git/config"},
		{Try: "rename {ws}/a {ws}/c", Full: fixed, Reduced: "reported", Seen: "{ws}/a/b/.git/config"},
		{Try: "rename {ws}/a/b {ws}/c", Full: fixed, Reduced: "reported", Seen: "{ws}/a/b/.git/config"},
		{Try: "append {ws}/.envrc", Full: fixed, Reduced: "reported", Seen: "{ws}/.envrc"},
		{Try: "append {link}/.git/config", Full: away, Reduced: "reported", Seen: config},
		{Try: "append /proc/self/root{ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "append /proc/self/cwd/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "opath-truncate {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "truncate {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "fallocate {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config, Unless: "ENOTSUP: the filesystem cannot"},
		{Try: "mmap-write {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "copy-range {ws}/main.go {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "sendfile {ws}/main.go {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "openat2-write {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "opath-reopen {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "opath-chmod {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "directory-append {ws}/.git/hooks config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "splice-cache {ws}/.git/config", Full: fixed + " held", Seen: config, Unless: "held: the kernel is newer than CVE-2022-0847"},
		{Try: "chmod {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "chmod {ws}/.git/hooks", Full: fixed, Reduced: "open", Seen: hooks},
		{Try: "fchmodat2 {ws}/.git/hooks/post-checkout.sample", Full: fixed, Reduced: "reported", Seen: hooks + "/post-checkout.sample", Unless: old},
		{Try: "chown {ws}/.git/config 12345", Full: fixed, Seen: config, Who: root},
		{Try: "utimes {ws}/.git/config", Full: fixed, Reduced: "open", Seen: config},
		{Try: "setxattr {ws}/.git/config", Full: fixed, Reduced: "open", Seen: config, Unless: "ENOTSUP: the filesystem has no user attributes"},
		{Try: "setxattrat {ws}/.git/config", Full: fixed + " ENOSYS", Reduced: "open", Seen: config, Unless: old + "; ENOTSUP: the filesystem has no user attributes"},
		{Try: "chattr {ws}/.git/config", Full: fixed, Reduced: "open", Seen: config, Unless: "ENOTTY: the filesystem has no file attributes"},
		{Try: "file-setattr {ws}/.git/config", Full: fixed + " ENOSYS", Reduced: "open", Seen: config, Unless: old + "; ENOTSUP: the filesystem has no file attributes"},
		{Try: "lock {ws}/.git/config", Full: "free"},
		{Try: "lock-range {ws}/.git/config", Full: fixed, Reduced: "open"},
		{Try: "fibmap {ws}/.git/config", Full: "EPERM ENOTTY EACCES", Who: root},
		{Try: "mkfifo {ws}/.git/hooks/pre-push", Full: fixed, Reduced: "reported", Seen: hooks + "/pre-push"},
		{Try: "mksocket {ws}/.git/hooks/socket", Full: fixed, Reduced: "reported EACCES", Seen: hooks + "/socket"},
		{Try: "symlink {ws}/planted {ws}/.git/hooks/pre-commit", Full: fixed, Reduced: "reported", Seen: hooks + "/pre-commit"},
	}
}

// nameCases put other names in the place of guarded ones.
func nameCases() []Case {
	const hooks, config = "{ws}/.git/hooks", "{ws}/.git/config"
	return []Case{
		{Try: "unlink {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "rmdir {ws}/.githooks", Full: fixed, Reduced: "reported", Seen: "{ws}/.githooks"},
		{Try: "rename {ws}/.git/config {ws}/moved", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "rename {ws}/planted {ws}/.githooks", Full: fixed, Reduced: "reported", Seen: "{ws}/.githooks/config"},
		{Try: "rename-exchange {ws}/planted {ws}/.git/hooks", Full: fixed, Reduced: "reported", Seen: hooks + "/config"},
		{Try: "rename-exchange {ws}/main.go {ws}/.git/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "rename-exchange {ws}/planted {ws}/.git", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "rename-exchange {ws} {outside}", Full: away + " EBUSY", Seen: "{outside}/file"},
		{Try: "rename-whiteout {ws}/.git/config {ws}/moved", Full: fixed, Reduced: "reported EPERM", Seen: config, Who: root,
			Unless: "EINVAL: the filesystem has no whiteouts"},
		{Try: "rename-whiteout {ws}/main.go {ws}/.git/hooks/pre-commit", Full: fixed, Reduced: "reported EPERM", Seen: hooks + "/pre-commit", Who: root,
			Unless: "EINVAL: the filesystem has no whiteouts"},
		{Try: "rename {ws}/.vscode {ws}/moved", Full: fixed, Reduced: "reported", Seen: "{ws}/.vscode"},
		{Try: "rename {ws}/planted {ws}/.idea", Full: fixed + " ENOTDIR", Reduced: "reported ENOTDIR", Seen: "{ws}/.idea"},
		{Try: "rename {ws}/main.go {ws}/.idea", Full: fixed, Reduced: "reported", Seen: "{ws}/.idea"},
		{Try: "rename {ws}/main.go {ws}/.mcp.json", Full: fixed + " EISDIR", Reduced: "reported EISDIR", Seen: "{ws}/.mcp.json"},
		{Try: "hardlink-write {ws}/.git/config {ws}/linked", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "link-opath {ws}/.git/config {ws}/linked", Full: fixed + " ENOENT", Reduced: "reported", Seen: config},
		{Try: "hardlink-read {ws}/.env {ws}/linked", Full: fixed + " held", Reduced: "open", Seen: "{ws}/.env"},
		{Try: "tmpfile-link {ws} {ws}/.git/hooks/pre-commit", Full: fixed, Reduced: "reported", Seen: hooks + "/pre-commit",
			Unless: "ENOTSUP: the filesystem has no files without names"},
		{Try: "swap-symlink {ws}/.git {ws}/planted", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "swap-symlink {ws}/.git/hooks {ws}/planted", Full: fixed, Reduced: "reported", Seen: hooks},
		{Try: "swap-symlink {ws}/.git/config {ws}/planted/config", Full: fixed, Reduced: "reported", Seen: config},
		{Try: "swap-symlink {ws}/.vscode {ws}/planted", Full: fixed, Reduced: "reported", Seen: "{ws}/.vscode"},
		{Try: "swap-symlink {ws}/wt/.git {ws}/planted", Full: fixed + " reported", Seen: "{ws}/wt/.git"},
		{Try: "append {ws}/wt/.git", Full: fixed + " reported", Seen: "{ws}/wt/.git"},
		{Line: 40, Try: "mknod-char {ws}/null 1 3", Full: refused, Who: root},
		{Line: 40, Try: "mknod-block {ws}/disk 254 0", Full: refused, Who: root},
		// Names that differ in case are others, where the filesystem says so.
		{Try: "create-deep {ws}/.GIT/hooks/pre-commit", Full: "free"},
		{Try: "create-deep {ws}/.git/HOOKS/pre-commit", Full: "free"},
		{Try: "chmod-setuid {ws}/main.go", Full: "free"},
		{Try: "set-capability {ws}/main.go", Full: refused, Who: root},
		{Try: "immutable {ws}/main.go", Full: refused, Who: root, Unless: "ENOTTY: the filesystem has no file attributes"},
		{Try: "create {ws}/.git/new", Full: "free"},
		{Try: "create {ws}/new", Full: "free"},
	}
}

// repositoryCases make git run what the box wrote.
func repositoryCases() []Case {
	return []Case{
		{Try: "git-config {ws}/.git", Full: fixed, Reduced: "reported", Seen: "{ws}/.git/config"},
		{Try: "git-config {ws}/a/b/.git", Full: fixed, Reduced: "reported", Seen: "{ws}/a/b/.git/config"},
		{Try: "create {ws}/.git/config.worktree", Full: fixed + " EEXIST", Reduced: "reported EEXIST", Seen: "{ws}/.git/config.worktree"},
		{Try: "append {ws}/.git/info/attributes", Full: fixed, Reduced: "reported", Seen: "{ws}/.git/info/attributes"},
		{Try: "git-common {ws}/.git", Full: fixed + " EEXIST reported", Seen: "{ws}/.git/commondir"},
		{Try: "git-bare {ws}/bare", Full: fixed + " reported"},
		{Line: 27, Try: "create-deep {ws}/new/.git/hooks/pre-commit", Full: fixed + " reported"},
	}
}

// procCases look for processes, and through them.
func procCases() []Case {
	return []Case{
		{Line: 13, Try: "open-both /proc/{victim}/mem", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Line: 13, Try: "open-read /proc/{victim}/mem", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Line: 13, Try: "open-both /proc/1/mem", Full: "EACCES EPERM ENOENT", Unless: theirs},
		{Line: 14, Try: "pid-listed {victim}", Full: "held", Reduced: "open"},
		{Line: 14, Try: "proc-comm victim", Full: "held", Reduced: "open"},
		{Line: 15, Try: "open-write /proc/sys/kernel/core_pattern", Full: away, Who: root},
		{Line: 16, Try: "open-write /proc/sysrq-trigger", Full: away, Who: root, Unless: "ENOENT: the kernel has no SysRq"},
		{Line: 17, Try: "cgroup-mkdir {cgroup}", Full: away, Who: root, Unless: "ENOENT: no cgroup filesystem is mounted"},
		{Line: 17, Try: "open-write {cgroup}/cgroup.procs", Full: away, Who: root, Unless: "ENOENT: no cgroup filesystem is mounted"},
		{Try: "open-write /sys/fs/cgroup/pids/release_agent", Full: away, Who: root, Unless: "ENOENT: there are no cgroups of version 1"},
		{Try: "open-write /proc/sys/kernel/modprobe", Full: away, Who: root, Unless: "ENOENT: the kernel has no modules"},
		{Try: "open-write /proc/sys/kernel/hostname", Full: away, Who: root},
		{Try: "open-write /proc/sys/kernel/randomize_va_space", Full: away, Who: root},
		{Try: "open-write /proc/sys/vm/overcommit_memory", Full: away, Who: root},
		{Try: "open-write /proc/sys/vm/drop_caches", Full: away, Who: root},
		{Try: "open-write /proc/sys/user/max_user_namespaces", Full: away, Who: root, Unless: "EACCES: even root may not"},
		{Try: "open-write /proc/sys/net/ipv4/ip_forward", Full: away, Who: root},
		{Try: "open-write /proc/sys/fs/protected_symlinks", Full: away, Who: root},
		{Try: "open-write /proc/sys/fs/binfmt_misc/register", Full: away, Who: root, Unless: "ENOENT: binfmt_misc is not mounted"},
		{Try: "open-write /sys/kernel/uevent_helper", Full: away, Who: root, Unless: "ENOENT: the kernel has no uevent helper"},
		{Try: "open-write /sys/power/state", Full: away, Who: root, Unless: "ENOENT: the machine does not sleep"},
		{Try: "open-write /sys/kernel/mm/transparent_hugepage/enabled", Full: away, Who: root, Unless: "ENOENT: the kernel has no huge pages"},
		{Try: "open-write /proc/irq/default_smp_affinity", Full: away, Who: root, Unless: "ENOENT: one processor"},
		{Try: "open-read /proc/kmsg", Full: away + " held", Who: root},
		{Try: "open-read /proc/kcore", Full: away + " held", Who: root, Unless: "ENOENT: the kernel has none"},
		{Try: "open-read /proc/kpagecount", Full: away + " held", Reduced: "open", Who: root, Unless: "ENOENT: the kernel has none"},
		{Try: "open-read /proc/vmallocinfo", Full: away + " held", Reduced: "open", Who: root, Unless: "ENOENT: the kernel has none"},
		{Try: "open-read /proc/{victim}/stack", Full: away, Reduced: "open", Who: root, Unless: "ENOENT: the kernel has none"},
		{Try: "open-read /proc/{victim}/maps", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Try: "open-write /proc/{victim}/oom_score_adj", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Try: "open-write /proc/{victim}/coredump_filter", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Try: "open-write /proc/{victim}/clear_refs", Full: "ENOENT", Reduced: "EACCES EPERM", Unless: "ENOENT: the kernel has none"},
		{Try: "open-write /proc/{victim}/comm", Full: "ENOENT", Reduced: "EACCES EPERM"},
		{Try: "map-files {victim}", Full: "ENOENT", Reduced: "EACCES EPERM held", Who: root},
		{Try: "oom-score -500", Full: "EACCES EPERM EROFS", Who: root, Unless: "EACCES: even root may not"},
		// One's own process.
		{Try: "open-both /proc/self/mem", Full: "free EACCES"},
		{Try: "open-write /proc/self/coredump_filter", Full: "free", Unless: "ENOENT: the kernel writes no dumps"},
		{Try: "open-write /proc/self/attr/current", Full: "free", Unless: "ENOENT: there is no security module"},
		{Try: "open-write /proc/self/uid_map", Full: "free"},
		{Try: "open-write /proc/self/timens_offsets", Full: "free", Unless: "ENOENT: the kernel has no time namespaces"},
	}
}

// deviceCases open devices of the machine.
func deviceCases() []Case {
	return []Case{
		{Try: "open-both /dev/fuse", Full: away, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/kvm", Full: away, Who: root, Unless: "ENOENT: this machine has none; EINVAL: this machine has none"},
		{Try: "open-both /dev/mem", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-write /dev/kmsg", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/net/tun", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/userfaultfd", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/loop-control", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/vsock", Full: away, Who: root, Unless: "ENOENT: this machine has none; ENODEV: this machine has none"},
		{Try: "open-read /dev/cpu/0/msr", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-read /dev/hwrng", Full: away, Who: root, Unless: "ENOENT: this machine has none; ENODEV: this machine has none"},
		{Try: "open-read /dev/input/event0", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-both /dev/uinput", Full: away, Who: root, Unless: "ENOENT: this machine has none"},
		{Try: "open-read {disk}", Full: away, Who: root, Unless: "EPERM: a cgroup refuses devices"},
		{Try: "open-both {tty}", Full: away},
	}
}
