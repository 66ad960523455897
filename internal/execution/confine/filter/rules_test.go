package filter

import (
	"fmt"
	"testing"
)

// asked is a call with arguments that decide, and the verdict over it.
type asked struct {
	call string
	args []uint64
	want string
}

// compare checks verdicts, and that the upper halves of the arguments change
// none: the kernel does not look there.
func compare(t *testing.T, o Options, cases func(header) []asked) {
	t.Helper()
	for _, a := range architectures() {
		h := headerOf(t, a)
		numbers, code := h.calls(), built(t, a, o)
		for _, c := range cases(h) {
			number, exists := numbers[c.call]
			if !exists && a == ARM64 && c.call == "mknod" {
				continue
			}
			if !exists {
				t.Fatalf("%v has no call %s", a, c.call)
			}
			for _, upper := range []uint64{0, 1, 0x80000000, 0xdeadbeef, 0xffffffff} {
				e := event{number: number, arch: audited(h, a)}
				for i := range e.args {
					e.args[i] = upper << 32
				}
				for i, n := range c.args {
					e.args[i] |= n & 0xffffffff
				}
				want := c.want
				if c.call == "unshare" && upper != 0 {
					want = "EPERM" // here it does look
				}
				if got := verdictOf(t, code, e); got != want {
					t.Errorf("%v %+v: %s(%#x) with %#x above: %s, want %s", a, o, c.call, c.args, upper, got, want)
				}
			}
		}
	}
}

// eachOption checks verdicts under all options.
func eachOption(t *testing.T, cases func(header) []asked) {
	t.Helper()
	for _, o := range allOptions() {
		compare(t, o, cases)
	}
}

// either is allow for what an option permits.
func either(permitted bool, otherwise string) string {
	if permitted {
		return "allow"
	}
	return otherwise
}

func TestNamespaces(t *testing.T) {
	eachOption(t, func(h header) []asked {
		const signal = 17 // SIGCHLD, in the low bits of clone's flags
		threads := []string{"CLONE_VM", "CLONE_FS", "CLONE_FILES", "CLONE_SIGHAND", "CLONE_THREAD", "CLONE_SYSVSEM"}
		namespaces := []string{"CLONE_NEWUSER", "CLONE_NEWNS", "CLONE_NEWPID", "CLONE_NEWNET", "CLONE_NEWIPC", "CLONE_NEWUTS", "CLONE_NEWCGROUP"}
		cases := []asked{
			{"clone", []uint64{signal}, "allow"},
			{"clone", []uint64{0x3d0f00}, "allow"},                         // threads of the C library
			{"clone", []uint64{0x50f00}, "allow"},                          // threads of Go
			{"clone", []uint64{0x4000 | 0x100 | 0x1000 | signal}, "allow"}, // Go's fork: VFORK, VM, PIDFD
			{"clone", []uint64{h.number("CLONE_NEWTIME")}, "allow"},        // here it is part of a signal's number
			{"unshare", []uint64{0}, "allow"},
			{"unshare", []uint64{h.number("CLONE_NEWTIME")}, "EPERM"},
			{"unshare", []uint64{0x00100000}, "EPERM"}, // UNSHARE_EMPTY_MNTNS
		}
		known := uint64(0)
		for _, name := range threads {
			known |= h.number(name)
			cases = append(cases, asked{"clone", []uint64{h.number(name) | signal}, "allow"}, asked{"unshare", []uint64{h.number(name)}, "allow"})
		}
		for _, name := range namespaces {
			cases = append(cases,
				asked{"clone", []uint64{h.number(name)}, "EPERM"},
				asked{"clone", []uint64{h.number(name) | 0x3d0f00 | signal}, "EPERM"},
				asked{"unshare", []uint64{h.number(name)}, "EPERM"},
				asked{"unshare", []uint64{h.number(name) | known}, "EPERM"})
		}
		for bit := range 32 {
			flag := uint64(1) << bit
			if flag&known == 0 {
				cases = append(cases, asked{"unshare", []uint64{flag}, "EPERM"})
			}
		}
		return cases
	})
}

func TestNodes(t *testing.T) {
	eachOption(t, func(h header) []asked {
		var cases []asked
		for kind := range uint64(16) {
			want := "EPERM"
			switch kind << 12 {
			case 0, h.number("S_IFREG"), h.number("S_IFIFO"), h.number("S_IFSOCK"):
				want = "allow"
			}
			// The kernel has 16 bits of it.
			for _, mode := range []uint64{kind << 12, kind<<12 | 0o644, kind<<12 | 0xfff, 1<<16 | kind<<12, 0xffff0000 | kind<<12} {
				cases = append(cases,
					asked{"mknod", []uint64{0x2000, mode, 0x103}, want},
					asked{"mknodat", []uint64{0x2000, 0x8000, mode, 0x103}, want})
			}
		}
		return cases
	})
}

func TestRequests(t *testing.T) {
	// By their names, and those that golang.org/x/sys has not by their numbers.
	always := []string{"TIOCOUTQ", "SIOCOUTQ", "TCGETS", "TCGETA", "TIOCGPGRP", "TIOCGWINSZ", "TIOCGETD", "TIOCGSID", "TCGETS2",
		"TIOCINQ", "SIOCINQ", "BLKGETSIZE64", "FS_IOC_GETFLAGS"}
	terminal := []string{"TCSETS", "TCSETSW", "TCSETSF", "TCSETA", "TCSETAW", "TCSETAF", "TCSETS2", "TCSETSW2", "TCSETSF2", "TCSBRK", "TCSBRKP",
		"TCXONC", "TCFLSH", "TIOCSCTTY", "TIOCNOTTY", "TIOCSPGRP", "TIOCSWINSZ", "TIOCPKT", "TIOCGPKT", "TIOCGPTN", "TIOCSPTLCK", "TIOCGPTLCK",
		"TIOCGDEV", "TIOCSIG", "TIOCGPTPEER"}
	never := []string{"TIOCSTI", "TIOCLINUX", "TIOCSETD", "TIOCCONS", "TIOCVHANGUP", "TIOCEXCL", "TIOCSSERIAL", "TIOCSRS485", "TIOCMSET", "TUNSETIFF",
		"TUNSETPERSIST", "TUNSETOWNER", "FS_IOC_ADD_ENCRYPTION_KEY", "FS_IOC_REMOVE_ENCRYPTION_KEY", "FS_IOC_SET_ENCRYPTION_POLICY"}
	for _, o := range allOptions() {
		compare(t, o, func(h header) []asked {
			var cases []asked
			add := func(want string, requests ...uint64) {
				for _, request := range requests {
					// Other arguments are whatever they are, requests included.
					cases = append(cases, asked{"ioctl", []uint64{0, request, 0}, want}, asked{"ioctl", []uint64{0x5412, request, 0x5412}, want})
				}
			}
			for _, name := range always {
				add("allow", h.number(name))
			}
			for _, name := range terminal {
				add(either(o.Terminal, "EPERM"), h.number(name))
			}
			for _, name := range never {
				add("EPERM", h.number(name))
			}
			// FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC, FIOQSIZE; FICLONE, FIGETBSZ, SIOCGIFCONF, FIBMAP and nothing
			add("allow", 0x5421, 0x5450, 0x5451, 0x5452, 0x5460, 0x40049409, 2, 0x8912, 1, 0)
			// KDSETMODE, KDSKBENT, VT_ACTIVATE, VT_SETMODE, and USERFAULTFD_IOC_NEW
			add("EPERM", 0x4b3a, 0x4b47, 0x5606, 0x5602, 0xaa00, 0xc0406619)
			// The letter of terminals, with each direction and size.
			for _, high := range []uint64{0x4004, 0x8004, 0xc004, 0x0001, 0xffff} {
				add("EPERM", high<<16|0x5412, high<<16|0x541c, high<<16|0x54ff)
			}
			return cases
		})
	}
}

func TestOptionsOfProcesses(t *testing.T) {
	eachOption(t, func(h header) []asked {
		refused := map[uint64]bool{h.number("PR_SET_MM"): true, h.number("PR_SET_PTRACER"): true, h.number("PR_SCHED_CORE"): true}
		var cases []asked
		for option := range uint64(100) {
			want := either(option <= h.number("PR_SET_CFI"), "EINVAL")
			if refused[option] {
				want = "EPERM"
			}
			cases = append(cases, asked{"prctl", []uint64{option, 35, 35}, want})
		}
		return append(cases,
			asked{"prctl", []uint64{h.number("PR_SET_PTRACER"), 0xffffffff}, "EPERM"},
			asked{"prctl", []uint64{h.number("PR_SET_VMA")}, "allow"},
			asked{"prctl", []uint64{h.number("PR_GET_AUXV")}, "allow"},
			asked{"prctl", []uint64{h.number("PR_SET_VMA") + 1}, "EINVAL"},
			asked{"prctl", []uint64{0x80000000 | h.number("PR_SET_NAME")}, "EINVAL"},
			asked{"prctl", []uint64{0xffffffff}, "EINVAL"})
	})
}

func TestOrders(t *testing.T) {
	eachOption(t, func(h header) (cases []asked) {
		for number := range uint64(65) {
			want := either(number != 40 && number != 41, "EPERM")
			cases = append(cases, asked{"kill", []uint64{1, number}, want}, asked{"tgkill", []uint64{1, 3, number}, want},
				asked{"tgkill", []uint64{40, 41, number}, want}, asked{"rt_sigqueueinfo", []uint64{1, number}, want},
				asked{"rt_tgsigqueueinfo", []uint64{1, 3, number}, want}, asked{"pidfd_send_signal", []uint64{5, number}, want},
				asked{"tkill", []uint64{3, number}, want}, asked{"fcntl", []uint64{5, 10, number}, want}, asked{"fcntl", []uint64{5, 4, number}, "allow"})
		}
		return cases
	})
}

func TestLimitsOfProcesses(t *testing.T) {
	eachOption(t, func(header) []asked {
		return []asked{
			{"prlimit64", []uint64{0, 7, 1}, "allow"},
			{"prlimit64", []uint64{1}, "EPERM"},
			{"prlimit64", []uint64{0xffffffff}, "EPERM"},
			{"prlimit64", []uint64{1 << 32}, "allow"}, // the kernel takes 32 bits
		}
	})
}

func TestPersonas(t *testing.T) {
	eachOption(t, func(header) []asked {
		const linux32, uname26, noRandomize, mmapPageZero, readImpliesExec = 0x8, 0x20000, 0x40000, 0x100000, 0x400000
		var cases []asked
		for persona, want := range map[uint64]string{
			0: "allow", 0xffffffff: "allow", noRandomize: "allow", linux32: "allow", linux32 | noRandomize | uname26: "allow",
			readImpliesExec: "EPERM", mmapPageZero: "EPERM", noRandomize | readImpliesExec: "EPERM",
			1: "EPERM", 6: "EPERM", 0xfffffffe: "EPERM", 0x8000000: "EPERM",
		} {
			cases = append(cases, asked{"personality", []uint64{persona}, want})
		}
		return cases
	})
}

// The priority of a process can be set, that of groups and users cannot.
func TestPriorities(t *testing.T) {
	eachOption(t, func(header) []asked {
		var cases []asked
		for whom := range uint64(6) {
			for call, process := range map[string]uint64{"setpriority": 0, "ioprio_set": 1} {
				want := "EPERM"
				if whom == process {
					want = "allow"
				}
				for _, odd := range []uint64{0, 0xdeadbeef << 32} {
					cases = append(cases, asked{call, []uint64{odd | whom, 0, 7}, want})
				}
			}
		}
		return cases
	})
}

func TestFurtherFilters(t *testing.T) {
	eachOption(t, func(h header) []asked {
		var cases []asked
		for operation := range uint64(6) {
			for flags := range uint64(128) {
				want := "allow"
				switch {
				case operation > 3:
					want = "EINVAL"
				case flags&h.number("SECCOMP_FILTER_FLAG_NEW_LISTENER") != 0 || flags&h.number("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV") != 0 || flags > 63:
					want = "EPERM"
				}
				cases = append(cases, asked{"seccomp", []uint64{operation, flags, 8}, want})
			}
		}
		return append(cases,
			asked{"seccomp", []uint64{0xffffffff, 0}, "EINVAL"},
			asked{"seccomp", []uint64{1, 0x80000000}, "EPERM"})
	})
}

// Of sockets, everything is tried: all families, kinds and many protocols.
func TestSockets(t *testing.T) {
	const stream, datagram, seqpacket = 1, 2, 5
	flags := []uint64{0, 0x800, 0x80000, 0x80800, 0xfffffff0}
	protocols := []uint64{0, 1, 2, 4, 6, 15, 16, 17, 33, 41, 47, 50, 58, 132, 136, 255, 256, 262, 0x10006, 0xffffffff}
	for bits := range uint8(8) { // the other options are for other calls
		o := optionsOf(bits)
		if o.Datagram && !o.Inet {
			continue
		}
		compare(t, o, func(h header) []asked {
			unix, inet, inet6, netlink := h.number("AF_UNIX"), h.number("AF_INET"), h.number("AF_INET6"), h.number("AF_NETLINK")
			// socket is the verdict; it is written again here, the other way around.
			socket := func(family, kind, protocol uint64) string {
				switch family {
				case netlink:
					return either(protocol == h.number("NETLINK_ROUTE"), "EPROTONOSUPPORT")
				case unix:
					return either(o.Unix, "EPERM")
				case inet, inet6:
					own := map[uint64]uint64{stream: h.number("IPPROTO_TCP"), datagram: h.number("IPPROTO_UDP")}[kind]
					if !o.Inet || own == 0 || kind == datagram && !o.Datagram {
						return "EPERM"
					}
					return either(protocol == 0 || protocol == own, "EPROTONOSUPPORT")
				}
				return "EAFNOSUPPORT"
			}
			pair := func(family, kind uint64) string {
				if family != unix {
					return "EAFNOSUPPORT"
				}
				return either(o.Unix || kind == stream || kind == seqpacket, "EPERM")
			}
			var cases []asked
			families := []uint64{1 << 16, 1<<16 | 2, 0x80000001, 0xffffffff}
			for family := range uint64(64) {
				families = append(families, family)
			}
			for _, family := range families {
				for kind := range uint64(16) {
					cases = append(cases, asked{"socketpair", []uint64{family, kind | flags[kind%5], 0}, pair(family, kind)})
					for i, protocol := range protocols {
						cases = append(cases, asked{"socket", []uint64{family, kind | flags[i%5], protocol}, socket(family, kind, protocol)})
					}
				}
			}
			return cases
		})
	}
}

// What each option is for is said once in plain words: the least that it opens.
func TestWhatOptionsOpen(t *testing.T) {
	tests := []struct {
		option string
		with   Options
		opens  asked
		closed string
	}{
		{"Inet", Options{Inet: true}, asked{"socket", []uint64{2, 1, 0}, "allow"}, "EPERM"},
		{"Inet", Options{Inet: true}, asked{"socket", []uint64{10, 1, 6}, "allow"}, "EPERM"},
		{"Datagram", Options{Inet: true, Datagram: true}, asked{"socket", []uint64{2, 2, 17}, "allow"}, "EPERM"},
		{"Unix", Options{Unix: true}, asked{"socket", []uint64{1, 1, 0}, "allow"}, "EPERM"},
		{"Unix", Options{Unix: true}, asked{"socketpair", []uint64{1, 2, 0}, "allow"}, "EPERM"},
		{"Terminal", Options{Terminal: true}, asked{"ioctl", []uint64{0, 0x5402}, "allow"}, "EPERM"},
		{"IPC", Options{IPC: true}, asked{"shmget", []uint64{1, 4096, 0o1600}, "allow"}, "EPERM"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/%s", test.option, test.opens.call), func(t *testing.T) {
			compare(t, test.with, func(header) []asked { return []asked{test.opens} })
			without := test.opens
			without.want = test.closed
			compare(t, Options{}, func(header) []asked { return []asked{without} })
		})
	}
}
