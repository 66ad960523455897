package confinetest

import "fmt"

// processCases reach other processes.
func processCases() []Case {
	const signals = "victim"
	return []Case{
		{Line: 30, Try: "ptrace-seize {victim}", Full: refused},
		{Line: 30, Try: "ptrace-attach {victim}", Full: refused},
		{Line: 31, Try: "ptrace-seize 1", Full: refused, Unless: theirs},
		{Line: 31, Try: "ptrace-traceme", Full: refused},
		{Line: 32, Try: "vm-read {victim} {address} {length}", Full: refused},
		{Line: 32, Try: "vm-write {victim} {address}", Full: refused, Seen: "victim"},
		{Line: 33, Try: "signal {victim}", Full: "ESRCH", Reduced: "EPERM"},
		{Line: 34, Try: "pidfd-getfd {victim} 3", Full: nobody + " EINVAL"},
		{Try: "mem-write {victim} {address}", Full: "ENOENT", Reduced: "EACCES EPERM", Seen: "victim"},
		{Try: "signal-thread {victim}", Full: "ESRCH", Reduced: "EPERM"},
		{Try: "signal-tkill {victim}", Full: "ESRCH", Reduced: "EPERM"},
		{Try: "signal-queue {victim}", Full: "ESRCH", Reduced: "EPERM"},
		{Try: "signal-thread-queue {victim}", Full: "ESRCH", Reduced: "EPERM"},
		{Try: "signal-group {victim}", Full: "ESRCH", Reduced: "EPERM"},
		// kill says yes to all, even where it was refused for each.
		{Try: "signal-all", Full: "ESRCH EPERM", Reduced: "free"},
		{Try: "signal-window {victim}", Full: "ESRCH", Reduced: "EPERM", Seen: signals},
		{Try: "signal-pidfd {victim}", Full: nobody + " EINVAL"},
		{Try: "signal-owner {victim}", Full: "ESRCH", Reduced: "free EPERM", Seen: signals},
		{Try: "pidfd-open {victim}", Full: "ESRCH EINVAL", Reduced: "open"},
		{Try: "pidfd-namespace {victim}", Full: nobody + " EINVAL", Unless: "ENOTTY: the kernel is older"},
		{Try: "kcmp {victim}", Full: refused},
		{Try: "process-madvise {victim} {address}", Full: refused + " ESRCH EINVAL", Unless: "EPERM: needs root"},
		{Try: "process-release {victim}", Full: refused + " ESRCH EINVAL"},
		{Try: "move-pages {victim}", Full: nobody, Reduced: nobody, Unless: "ENOSYS: the kernel moves no pages; ENODEV: one node"},
		{Try: "migrate-pages {victim}", Full: nobody, Unless: "ENOSYS: the kernel moves no pages; EPERM: needs root"},
		{Try: "perf-process {victim}", Full: refused, Unless: "EACCES: perf_event_paranoid; EPERM: perf_event_paranoid"},
		{Try: "robust-list {victim}", Full: nobody, Reduced: nobody},
		// Landlock has no rules about these, so that a reduced box does not hold them.
		{Try: "prlimit {victim}", Full: nobody, Reduced: "open", Seen: "victim's limits"},
		{Try: "priority {victim}", Full: nobody, Reduced: "open", Seen: "victim's limits"},
		{Try: "affinity {victim}", Full: nobody, Reduced: "open"},
		{Try: "sched-attr {victim}", Full: nobody, Reduced: "open"},
		{Try: "ioprio {victim}", Full: nobody, Reduced: "open", Seen: "victim's limits"},
	}
}

// rightCases gain rights for the process itself.
func rightCases() []Case {
	return []Case{
		{Line: 43, Try: "setuid-exec {gifts}/setuid", Full: "held " + away, Who: users},
		{Line: 43, Try: "filecap-exec {gifts}/filecap", Full: "held " + away, Who: users},
		{Line: 54, Try: "memfd-exec read {outside}/secret", Full: "held", Host: "open", Unless: "EACCES: memfd_noexec"},
		{Line: 54, Try: "memfd-exec userfaultfd", Full: "held", Who: root},
		{Line: 54, Try: "memfd-exec signal {victim}", Full: "held"},
		{Try: "ids", Full: "free", Who: root},
		{Try: "caps", Full: "held", Who: root},
		{Try: "capset", Full: refused, Who: root},
		{Try: "ambient", Full: refused, Who: root},
		{Try: "secure-bits", Full: refused, Who: root},
		{Try: "setuid 12345", Full: refused + " EINVAL", Who: root},
		{Try: "setgroups", Full: refused, Who: root},
		{Try: "nice", Full: refused, Who: root},
		{Try: "rlimit", Full: refused, Who: root, Unless: "EPERM: even root may not"},
		{Try: "scheduler", Full: refused, Who: root},
		{Try: "memory-lock 268435456", Full: "free", Who: root, Unless: "EAGAIN: the limit holds for root"},
		{Try: "set-ptracer", Full: refused + " EINVAL", Unless: "EINVAL: there is no Yama"},
		{Try: "personality", Full: refused},
		{Try: "pr-set-mm", Full: refused, Who: root, Unless: "EPERM: even root may not"},
		{Try: "seccomp-listener", Full: refused},
		{Try: "seal-memory", Full: "free", Unless: old},
		{Try: "memfd-secret", Full: "free", Unless: old},
		{Try: "futex-wait", Full: "free", Unless: old},
		{Try: "futex-waitv", Full: "free", Unless: old},
		{Try: "shadow-stack", Full: "free", Unless: old + "; ENOTSUP: the processor has none; ENOSYS: the processor has none"},
	}
}

// callCases ask the kernel for what no command needs.
func callCases() []Case {
	return []Case{
		{Line: 35, Try: "iouring-setup", Full: refused, Unless: "ENOSYS: no io_uring; EPERM: io_uring_disabled"},
		{Line: 35, Try: "iouring-enter", Full: refused, Unless: "ENOSYS: no io_uring"},
		{Line: 35, Try: "iouring-register", Full: refused, Unless: "ENOSYS: no io_uring"},
		{Line: 36, Try: "bpf", Full: refused, Unless: "ENOSYS: no BPF; EPERM: unprivileged_bpf_disabled"},
		{Line: 36, Try: "bpf-map", Full: refused, Unless: "ENOSYS: no BPF; EPERM: unprivileged_bpf_disabled"},
		{Line: 36, Try: "perf", Full: refused, Unless: "EACCES: perf_event_paranoid; ENOSYS: no perf"},
		{Line: 36, Try: "userfaultfd", Full: refused, Unless: "ENOSYS: no userfaultfd; EPERM: unprivileged_userfaultfd"},
		{Line: 37, Try: "keyctl", Full: refused, Unless: "ENOSYS: no keys"},
		{Line: 37, Try: "add-key", Full: refused, Unless: "ENOSYS: no keys"},
		{Line: 37, Try: "request-key", Full: refused, Unless: "ENOSYS: no keys"},
		{Line: 37, Try: "key-read {key}", Full: refused, Unless: "ENOSYS: no keys"},
		{Line: 42, Try: "i386-socket", Full: "held", Unless: "held: no IA32 emulation"},
		{Line: 42, Try: "i386-ptrace", Full: "held", Unless: "held: no IA32 emulation"},
		{Line: 53, Try: "x32-socket", Full: "ENOSYS", Unless: "ENOSYS: the kernel has no x32 calls"},
		{Try: "modify-ldt", Full: refused, Unless: "ENOSYS: the kernel has none"},
		{Try: "remap-pages", Full: refused},
		{Try: "fanotify", Full: refused, Who: root},
		{Try: "fanotify-fid", Full: refused, Unless: "ENOSYS: no fanotify; EPERM: the kernel is older"},
		{Try: "listns", Full: refused, Unless: old},
		{Try: "listmount", Full: refused, Unless: old},
		{Try: "statmount", Full: refused, Unless: old},
		{Try: "lsm-set", Full: refused, Unless: old},
		{Try: "lsm-list", Full: "free", Unless: old},
	}
}

// machineCases change the machine.
func machineCases() []Case {
	return []Case{
		{Try: "reboot", Full: refused, Who: root},
		{Try: "kexec-load", Full: refused, Who: root, Unless: "ENOSYS: no kexec; EPERM: kexec is locked"},
		{Try: "kexec-file", Full: refused, Who: root, Unless: "ENOSYS: no kexec; EPERM: kexec is locked"},
		{Try: "init-module", Full: refused, Who: root, Unless: "ENOSYS: no modules; EPERM: modules are locked"},
		{Try: "finit-module", Full: refused, Who: root, Unless: "ENOSYS: no modules; EPERM: modules are locked"},
		{Try: "delete-module", Full: refused, Who: root, Unless: "ENOSYS: no modules; EPERM: modules are locked"},
		{Try: "swapon", Full: refused, Who: root, Unless: "ENOSYS: no swap"},
		{Try: "swapoff", Full: refused, Who: root, Unless: "ENOSYS: no swap"},
		{Try: "acct", Full: refused, Who: root, Unless: "ENOSYS: no accounting"},
		{Try: "quotactl {outside}", Full: refused + " ENOENT", Who: root, Unless: "ENOSYS: no quotas"},
		{Try: "sethostname", Full: refused, Who: root},
		{Try: "setdomainname", Full: refused, Who: root},
		{Try: "settimeofday", Full: refused, Who: root},
		{Try: "clock-settime", Full: refused, Who: root},
		{Try: "adjtimex", Full: refused, Who: root},
		{Try: "clock-adjtime", Full: refused, Who: root},
		{Try: "iopl", Full: refused, Who: root, Unless: "ENOSYS: no ports; EPERM: locked"},
		{Try: "ioperm", Full: refused, Who: root, Unless: "ENOSYS: no ports; EPERM: locked"},
		{Try: "syslog", Full: refused, Who: root},
		{Try: "vhangup", Full: refused, Who: root},
	}
}

// theirs excuses what is done to the first process, which is that of root.
const theirs = "EPERM: the first process is of root; EACCES: the first process is of root"

// namespaceCases make namespaces and enter those that are there.
func namespaceCases() []Case {
	out := []Case{
		{Line: 38, Try: "clone-vfork user", Full: refused, Unless: noUserNamespaces},
		{Line: 38, Try: "clone-high user", Full: refused, Unless: noUserNamespaces},
		{Line: 38, Try: "unshare time", Full: refused, Who: root, Unless: "EINVAL: no such namespaces"},
		{Line: 39, Try: "userns-mount {outside}", Full: refused, Unless: noUserNamespaces},
		{Try: "setns-pidfd {victim}", Full: nobody + " EINVAL", Who: root},
		{Try: "ns-parent", Full: "free", Who: root},
	}
	for _, call := range []string{"unshare", "clone", "clone3"} {
		for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
			c := Case{Line: 38, Try: call + " " + kind, Full: refused, Who: root}
			if kind == "user" {
				c.Who, c.Unless = anybody, noUserNamespaces
			}
			out = append(out, c)
		}
	}
	for _, kind := range []string{"mnt", "net", "ipc", "uts", "cgroup", "pid"} {
		out = append(out,
			Case{Try: "setns /proc/1/ns/" + kind, Full: away, Unless: theirs},
			Case{Try: "setns /proc/{victim}/ns/" + kind, Full: away, Who: root},
			Case{Try: "setns /proc/self/ns/" + kind, Full: refused, Who: root})
	}
	return out
}

const noUserNamespaces = "EPERM: no user namespaces; ENOSPC: no user namespaces; EACCES: no user namespaces; EUSERS: no user namespaces"

// mountCases change mounts. Outside of a box the folders are no mounts, which is
// found after the right to ask.
func mountCases() []Case {
	return []Case{
		{Line: 39, Try: "mount-tmpfs {ws}/folder", Full: refused, Who: root},
		{Line: 39, Try: "mount-bind {ws}/planted {ws}/.git", Full: refused, Who: root},
		{Line: 39, Try: "mount-bind {outside} {ws}/folder", Full: refused + " ENOENT", Who: root},
		{Line: 39, Try: "umount {ws}/.git/hooks", Full: refused, Who: root},
		{Line: 39, Try: "umount {home}/.ssh", Full: refused + " ENOENT", Who: root},
		{Line: 39, Try: "mount-remount {ws}/.git/hooks", Full: refused, Who: root},
		{Line: 39, Try: "mount-setattr {ws}/.git/hooks", Full: refused, Who: root},
		{Line: 40, Try: "chroot {ws}", Full: refused, Who: root},
		{Try: "mount-proc {ws}/folder", Full: refused, Who: root},
		{Try: "mount-sysfs {ws}/folder", Full: refused, Who: root},
		{Try: "mount-fuse {ws}/folder", Full: refused + " ENOENT", Who: root, Unless: "ENOENT: no FUSE; ENODEV: no FUSE"},
		{Try: "mount-overlay {ws}/planted {ws}/folder", Full: refused, Who: root, Unless: "ENODEV: no overlays; EINVAL: no overlays here"},
		{Try: "mount-propagation {ws}", Full: refused, Who: root},
		{Try: "mount-move {outside} {ws}/folder", Full: refused + " ENOENT", Who: root},
		{Try: "fsopen", Full: refused, Who: root},
		{Try: "fsconfig", Full: refused},
		{Try: "fsmount", Full: refused, Who: root},
		{Try: "fspick /", Full: refused, Who: root},
		{Try: "open-tree /", Full: refused, Who: root},
		{Try: "open-tree-plain {ws}", Full: refused},
		{Try: "open-tree-attr /", Full: refused, Who: root, Unless: old},
		{Try: "move-mount {ws}/folder", Full: refused, Who: root},
		{Try: "pivot-root {ws}", Full: refused, Who: root},
	}
}

// terminalCases type into a terminal that others read from.
func terminalCases() []Case {
	const typed = "terminal"
	const legacy = "EIO: legacy_tiocsti is off"
	return []Case{
		{Line: 41, Try: "tiocsti", Full: refused, Terminal: true, Seen: typed, Unless: legacy},
		{Line: 41, Try: "tiocsti-high", Full: refused, Terminal: true, Seen: typed, Unless: legacy},
		{Line: 41, Try: "tiocsti-odd", Full: refused, Terminal: true, Seen: typed, Unless: legacy},
		{Line: 41, Try: "tiocsti-device", Full: refused + " ENXIO ENOENT", Terminal: true, Seen: typed, Unless: legacy},
		{Try: "tioclinux", Full: refused, Terminal: true},
		{Try: "tioclinux-high", Full: refused, Terminal: true},
		{Try: "tiocsetd", Full: refused, Terminal: true},
		{Try: "tiocsctty", Full: refused, Terminal: true, Who: root},
		{Try: "tty-open", Full: "free", Terminal: true},
		// The starter is in the same process group.
		{Try: "priority-group", Full: refused, Terminal: true},
		{Try: "ioprio-group", Full: refused, Terminal: true},
	}
}

// shareCases reach memory and queues by numbers and names.
func shareCases() []Case {
	const ipc = "ENOENT EPERM EACCES ENOSYS EINVAL"
	return []Case{
		{Try: "sysv-memory {ipc}", Full: ipc},
		{Try: "sysv-queue {ipc}", Full: ipc, Seen: "message queue"},
		{Try: "sysv-semaphore {ipc}", Full: ipc},
		{Try: "posix-queue {queue}", Full: ipc, Seen: "posix queue"},
		{Try: "read {shm}", Full: "ENOENT", Reduced: "open"},
		{Try: "append {shm}", Full: "ENOENT", Reduced: "open", Seen: "shared memory"},
	}
}

// unixCases reach sockets by names.
func unixCases() []Case {
	return []Case{
		{Line: 47, Try: "unix-stream {stream}", Full: nosock, Seen: "stream"},
		{Line: 47, Try: "unix-stream {home-stream}", Full: nosock, Seen: "home-stream"},
		{Line: 47, Try: "unix-stream {ws-stream}", Full: nosock, Own: "open", Seen: "ws-stream"},
		{Line: 47, Try: "unix-packet {packet}", Full: nosock, Seen: "packet"},
		{Line: 47, Try: "unix-opath {stream}", Full: nosock, Seen: "stream"},
		{Line: 47, Try: "unix-opath {ws-stream}", Full: nosock, Own: "open", Seen: "ws-stream"},
		{Line: 47, Try: "unix-receive {giver}", Full: nosock, Seen: "giver"},
		{Line: 48, Try: "unix-datagram {datagram}", Full: nosock, Seen: "datagram"},
		{Line: 48, Try: "unix-datagram {home-datagram}", Full: nosock, Seen: "home-datagram"},
		{Line: 48, Try: "unix-datagram {ws-datagram}", Full: nosock, Own: "open", Seen: "ws-datagram"},
		{Line: 48, Try: "unix-pair {datagram}", Full: nosock, Seen: "datagram"},
		{Line: 48, Try: "unix-pair {ws-datagram}", Full: nosock, Own: "open", Seen: "ws-datagram"},
		{Line: 48, Try: "unix-pair-raw {ws-datagram}", Full: nosock, Own: "open", Seen: "ws-datagram"},
		{Line: 48, Try: "unix-pair-connect {ws-datagram}", Full: nosock + " EISCONN", Own: "open", Seen: "ws-datagram"},
		{Line: 49, Try: "unix-stream {abstract}", Full: nosock + " ECONNREFUSED", Seen: "abstract"},
		{Line: 49, Try: "unix-datagram {abstract-datagram}", Full: nosock + " ECONNREFUSED", Seen: "abstract-datagram"},
		{Line: 49, Try: "unix-pair {abstract-datagram}", Full: nosock + " ECONNREFUSED", Seen: "abstract-datagram"},
		{Line: 49, Try: "unix-pair-connect {abstract-datagram}", Full: nosock + " ECONNREFUSED", Seen: "abstract-datagram"},
	}
}

// networkCases reach ports by every form of their address.
func networkCases() []Case {
	out := []Case{
		{Line: 45, Try: "mptcp {mptcp}", Full: nonet, Seen: "mptcp"},
		{Line: 45, Try: "mptcp {tcp}", Full: nonet, Seen: "tcp", Unless: "EPROTONOSUPPORT: no MPTCP; ENOPROTOOPT: no MPTCP"},
		{Line: 45, Try: "sctp {sctp}", Full: nonet, Seen: "sctp"},
		{Line: 45, Try: "tcp-fast {tcp}", Full: nonet, Seen: "tcp", Unless: "ENOTSUP: no fast open"},
		{Line: 45, Try: "udp-message {udp}", Full: "free", Reduced: nonet, Seen: "udp"},
		{Line: 45, Try: "udp-lite {udp-lite}", Full: nonet, Seen: "udp-lite"},
		{Line: 45, Try: "tcp {tcp-six}", Full: nonet, Seen: "tcp-six"},
		{Line: 45, Try: "udp {udp-six}", Full: "free", Reduced: nonet, Seen: "udp-six"},
		{Line: 45, Try: "tcp-fast {tcp-six}", Full: nonet, Seen: "tcp-six", Unless: "ENOTSUP: no fast open"},
		{Try: "bind-port 127.0.0.1:99", Full: refused, Who: root},
	}
	for _, address := range []string{"127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		out = append(out,
			Case{Line: 45, Try: "tcp " + address + ":{tcp-port}", Full: nonet, Seen: "tcp"},
			// In the network of the box nobody listens, and UDP is sent all the same.
			Case{Line: 45, Try: "udp " + address + ":{udp-port}", Full: "free", Reduced: nonet, Seen: "udp"})
	}
	return out
}

// socketCases make sockets of every kind, and change the network.
func socketCases() []Case {
	const other = "EAFNOSUPPORT EPERM EACCES EPROTONOSUPPORT ESOCKTNOSUPPORT EINVAL"
	const none = "EAFNOSUPPORT: the kernel has none; EPROTONOSUPPORT: the kernel has none; ESOCKTNOSUPPORT: the kernel has none; " +
		"ENODEV: the machine has none; EACCES: ping_group_range"
	out := []Case{
		{Line: 46, Try: "packet-listen", Full: other, Who: root},
		{Try: "uevent-listen", Full: other},
		{Try: "link-set", Full: "EPERM EACCES", Who: root},
		{Try: "link-flags", Full: "EPERM EACCES", Who: root},
		{Try: "tunnel", Full: away, Who: root, Unless: "ENOENT: this machine has none; ENODEV: this machine has none"},
		{Try: "socket-mark", Full: "EPERM EACCES", Who: root},
		{Try: "socket-force", Full: "EPERM EACCES", Who: root},
		{Try: "socket-transparent", Full: "EPERM EACCES", Who: root},
		{Try: "socket-repair", Full: "EPERM EACCES", Who: root},
	}
	for _, k := range []struct {
		family, kind, protocol int
		who                    who
	}{
		{2, 3, 255, root}, {2, 3, 1, root}, {10, 3, 58, root}, {2, 10, 0x300, root}, // raw, and SOCK_PACKET
		{17, 3, 0, root}, {17, 2, 0, root}, // packet
		{40, 1, 0, anybody}, {40, 2, 0, anybody}, // vsock
		{38, 5, 0, anybody},                                           // alg
		{16, 3, 9, anybody}, {16, 3, 4, anybody}, {16, 3, 6, anybody}, // netlink: audit, diagnosis, transforms
		{16, 3, 12, anybody}, {16, 3, 16, anybody}, {16, 3, 11, anybody}, // netfilter, generic, connector
		{16, 2, 15, anybody}, {16, 3, 7, anybody}, {16, 3, 10, anybody}, {16, 3, 21, anybody}, // uevents, SELinux, routes, crypto
		{2, 2, 1, anybody},                                                                    // ping
		{2, 1, 262, anybody}, {2, 1, 33, anybody}, {2, 1, 132, anybody}, {2, 2, 136, anybody}, // MPTCP, DCCP, SCTP, UDP-Lite
		{2, 1, 256, anybody}, {43, 1, 0, anybody}, // SMC
		{15, 3, 2, root}, {21, 5, 0, anybody}, {29, 3, 1, anybody}, {30, 1, 0, anybody}, {31, 3, 1, anybody}, // key, RDS, CAN, TIPC, Bluetooth
		{41, 5, 0, anybody}, {42, 2, 0, anybody}, {44, 3, 0, root}, {45, 2, 0, anybody}, {36, 2, 0, anybody}, // KCM, QIPCRTR, XDP, MCTP, IEEE 802.15.4
	} {
		c := Case{Line: 46, Try: fmt.Sprintf("socket %d %d %d", k.family, k.kind, k.protocol), Full: other, Who: k.who, Unless: none}
		out = append(out, c)
	}
	return out
}
