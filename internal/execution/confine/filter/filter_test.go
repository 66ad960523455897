package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// architectures are those that have a filter.
func architectures() []Arch { return []Arch{AMD64, ARM64} }

// allOptions are all that Build takes.
func allOptions() []Options {
	var all []Options
	for bits := range uint8(32) {
		if o := optionsOf(bits); o.Inet || !o.Datagram {
			all = append(all, o)
		}
	}
	return all
}

func optionsOf(bits uint8) Options {
	return Options{Inet: bits&1 != 0, Datagram: bits&2 != 0, Unix: bits&4 != 0, Terminal: bits&8 != 0, IPC: bits&16 != 0}
}

func everything() Options {
	return Options{Inet: true, Datagram: true, Unix: true, Terminal: true, IPC: true}
}

func built(t *testing.T, a Arch, o Options) []Instruction {
	t.Helper()
	p, err := Build(a, o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Instructions()
}

// verdictOf is what the program says about an event, in words.
func verdictOf(t *testing.T, code []Instruction, e event) string {
	t.Helper()
	result, err := interpret(code, e)
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	name, known := named(result)
	if !known {
		t.Fatalf("%+v ends in %s", e, name)
	}
	return name
}

// audited is how the kernel names an architecture to a filter.
func audited(h header, a Arch) uint32 {
	return uint32(h.number(map[Arch]string{AMD64: "AUDIT_ARCH_X86_64", ARM64: "AUDIT_ARCH_AARCH64"}[a]))
}

func TestBuild(t *testing.T) {
	seen := make(map[string]string)
	for _, a := range architectures() {
		for _, o := range allOptions() {
			name := fmt.Sprintf("%v %+v", a, o)
			p, err := Build(a, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := sound(p.Instructions()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			again, err := Build(a, o)
			if err != nil || again.Hash() != p.Hash() || !slices.Equal(again.Instructions(), p.Instructions()) {
				t.Errorf("%s: built again, it is another program", name)
			}
			if p.Arch() != a {
				t.Errorf("%s: it is for %v", name, p.Arch())
			}
			if len(p.Hash()) != 64 || seen[p.Hash()] != "" {
				t.Errorf("%s: its hash is %s, like that of %s", name, p.Hash(), seen[p.Hash()])
			}
			seen[p.Hash()] = name
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, a := range []Arch{0, 3, 255} {
		if p, err := Build(a, Options{}); err == nil || len(p.Instructions()) != 0 {
			t.Errorf("Build makes a filter for %v", a)
		}
	}
	for _, a := range architectures() {
		if p, err := Build(a, Options{Datagram: true}); err == nil || len(p.Instructions()) != 0 {
			t.Errorf("%v: Build permits UDP without TCP", a)
		}
	}
}

// The program that a caller gets is a copy.
func TestInstructionsAreCopied(t *testing.T) {
	p, err := Build(AMD64, Options{})
	if err != nil {
		t.Fatal(err)
	}
	hash := p.Hash()
	p.Instructions()[0] = Instruction{Op: result, K: allowing}
	if p.Hash() != hash {
		t.Error("a caller can change a program")
	}
}

// Calls whose arguments do not matter, and those whose arguments decide. What is
// in none of these lists is allowed.
const (
	refusedCalls = `ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp migrate_pages
		bpf perf_event_open userfaultfd add_key request_key keyctl
		mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr setns
		name_to_handle_at open_by_handle_at fanotify_init fanotify_mark
		kexec_load kexec_file_load init_module finit_module delete_module reboot settimeofday clock_settime adjtimex clock_adjtime
		sethostname setdomainname acct swapon swapoff quotactl quotactl_fd syslog vhangup lookup_dcookie iopl ioperm modify_ldt
		lsm_set_self_attr`
	absentCalls = `clone3 io_uring_setup io_uring_enter io_uring_register statmount listmount listns
		uselib ustat sysfs _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security
		vserver epoll_ctl_old epoll_wait_old set_thread_area get_thread_area remap_file_pages`
	sharedCalls = `shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
		mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`
	argumentCalls = `clone unshare mknod mknodat ioctl prctl personality seccomp socket socketpair
		prlimit64 kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal fcntl setpriority ioprio_set`
)

// flat returns the verdict over a call whose arguments do not matter.
func flat(call string, o Options) (verdict string, decides bool) {
	in := func(list string) bool { return slices.Contains(strings.Fields(list), call) }
	switch {
	case in(argumentCalls):
		return "", false
	case in(refusedCalls):
		return "EPERM", true
	case in(absentCalls):
		return "ENOSYS", true
	case in(sharedCalls) && !o.IPC:
		return "EPERM", true
	}
	return "allow", true
}

// fills are arguments that a call which takes none of them must not look at.
func fills() [][6]uint64 {
	var all [][6]uint64
	for _, n := range []uint64{0, 1, ^uint64(0), 0xdeadbeef_00000000, 0xffffffff, 0x5555_5555_aaaa_aaaa} {
		all = append(all, [6]uint64{n, n, n, n, n, n})
	}
	return all
}

// Every call that Linux has is decided, by its number on each architecture.
func TestEveryCall(t *testing.T) {
	for _, a := range architectures() {
		h := headerOf(t, a)
		numbers, arch := h.calls(), audited(h, a)
		for _, o := range allOptions() {
			code := built(t, a, o)
			for call, number := range numbers {
				want, decides := flat(call, o)
				for _, args := range fills() {
					if got := verdictOf(t, code, event{number: number, arch: arch, args: args}); decides && got != want {
						t.Errorf("%v %+v: %s (%d) with %#x: %s, want %s", a, o, call, number, args[0], got, want)
					}
				}
			}
		}
		for _, name := range strings.Fields(refusedCalls + " " + absentCalls + " " + sharedCalls + " " + argumentCalls) {
			if _, known := numbers[name]; !known && !slices.Contains(strings.Fields(amd64Only), name) {
				t.Errorf("%v has no call %s; its name is wrong", a, name)
			}
		}
	}
}

// amd64Only are the calls of the lists above that arm64 does not have.
const amd64Only = `iopl ioperm modify_ldt mknod uselib ustat sysfs _sysctl create_module get_kernel_syms query_module getpmsg putpmsg
	afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old set_thread_area get_thread_area`

// The table has the calls that golang.org/x/sys has, with their names and
// numbers. A new version of that may have more: then the table, the tests and
// the comment at the table have to decide about each.
func TestTable(t *testing.T) {
	for _, a := range architectures() {
		table := make(map[string]uint32)
		for _, c := range calls {
			if c.rule == unlisted {
				t.Errorf("%s has no rule", c.name)
			}
			if c.number(a) == none {
				continue
			}
			if _, twice := table[c.name]; twice {
				t.Errorf("%s is listed twice", c.name)
			}
			table[c.name] = uint32(c.number(a))
		}
		known := headerOf(t, a).calls()
		for name, number := range known {
			if got, listed := table[name]; !listed || got != number {
				t.Errorf("%v: %s is %d, and in the table %d (%v)", a, name, number, got, listed)
			}
		}
		for name, number := range table {
			if _, exists := known[name]; !exists {
				t.Errorf("%v: golang.org/x/sys has no %s (%d)", a, name, number)
			}
		}
		if distinct := len(slices.Compact(slices.Sorted(maps.Values(table)))); distinct != len(table) {
			t.Errorf("%v: %d calls have %d numbers", a, len(table), distinct)
		}
	}
}

// Numbers that no call has are absent, among them all of x32, which are those of
// amd64 with one bit more.
func TestUnknownNumbers(t *testing.T) {
	const x32 = 0x40000000
	for _, a := range architectures() {
		h := headerOf(t, a)
		taken := make(map[uint32]bool)
		for _, number := range h.calls() {
			taken[number] = true
		}
		unknown := []uint32{1 << 16, 1 << 24, x32 - 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff}
		for n := range uint32(600) {
			if !taken[n] {
				unknown = append(unknown, n)
			}
			unknown = append(unknown, x32|n, 0x80000000|n, 0xffff0000|n, 1<<16|n, 600+n)
		}
		for _, o := range []Options{{}, everything()} {
			code := built(t, a, o)
			for _, number := range unknown {
				for _, args := range fills() {
					if got := verdictOf(t, code, event{number: number, arch: audited(h, a), args: args}); got != "ENOSYS" {
						t.Errorf("%v %+v: the number %#x: %s, want ENOSYS", a, o, number, got)
					}
				}
			}
		}
	}
}

// A call by the door of another architecture ends the process, whatever its
// number.
func TestOtherArchitectures(t *testing.T) {
	for _, a := range architectures() {
		h := headerOf(t, a)
		own := audited(h, a)
		others := []uint32{0, 1, ^uint32(0), own &^ 0x40000000, own &^ 0x80000000, own ^ 1, own << 1}
		var names int
		for name, n := range h {
			if strings.HasPrefix(name, "AUDIT_ARCH_") && uint32(n) != own {
				others = append(others, uint32(n))
				names++
			}
		}
		if names < 20 { // among them i386, arm, and each other
			t.Fatalf("golang.org/x/sys has %d other architectures", names)
		}
		for _, o := range []Options{{}, everything()} {
			code := built(t, a, o)
			for _, other := range others {
				for n := range uint32(600) {
					for _, number := range []uint32{n, 0x40000000 | n} {
						if got := verdictOf(t, code, event{number: number, arch: other}); got != "kill" {
							t.Fatalf("%v: the call %#x of architecture %#x: %s, want kill", a, number, other, got)
						}
					}
				}
			}
		}
	}
}

func TestNative(t *testing.T) {
	a, err := Native()
	if (err == nil) != slices.Contains(architectures(), a) {
		t.Errorf("Native is %v, %v", a, err)
	}
	for a, want := range map[Arch]string{0: "Arch(0)", AMD64: "amd64", ARM64: "arm64", 9: "Arch(9)"} {
		if a.String() != want {
			t.Errorf("%d is called %s, want %s", uint8(a), a, want)
		}
	}
}

// FuzzVerdict asks about any event. It ends in a defined result, which keeps to
// what holds for all programs here.
func FuzzVerdict(f *testing.F) {
	const x86, arm = 0xc000003e, 0xc00000b7
	f.Add(uint32(0), uint32(x86), uint8(0), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(41), uint32(x86), uint8(1), uint64(2), uint64(0x80001), uint64(6), uint64(1<<40))
	f.Add(uint32(16), uint32(x86), uint8(8), uint64(0), uint64(1<<32|0x5412), uint64(0), uint64(0))
	f.Add(uint32(29), uint32(arm), uint8(31), uint64(0), uint64(0x802c542a), uint64(0), uint64(0))
	f.Add(uint32(97), uint32(arm), uint8(0), uint64(1<<32), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(272), uint32(x86), uint8(0), uint64(0x10000000), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(157), uint32(x86), uint8(4), uint64(0x53564d41), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(0x40000029), uint32(x86), uint8(4), uint64(1), uint64(1), uint64(0), uint64(0))
	f.Add(uint32(102), uint32(0x40000003), uint8(31), uint64(1), uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, number, arch uint32, bits uint8, a0, a1, a2, address uint64) {
		o := optionsOf(bits)
		o.Inet = o.Inet || o.Datagram
		for a, own := range map[Arch]uint32{AMD64: x86, ARM64: arm} {
			code := built(t, a, o)
			if !slices.Equal(code, built(t, a, o)) {
				t.Fatalf("%v %+v: built again, it is another program", a, o)
			}
			e := event{number: number, arch: arch, address: address, args: [6]uint64{a0, a1, a2, a0, a1, a2}}
			got := verdictOf(t, code, e)
			if (got == "kill") != (arch != own) {
				t.Errorf("%v %+v: %+v: %s", a, o, e, got)
			}
			if arch == own && number > 471 && got != "ENOSYS" {
				t.Errorf("%v %+v: %+v: %s", a, o, e, got)
			}
			if strict := verdictOf(t, built(t, a, Options{}), e); strict == "allow" && got != "allow" {
				t.Errorf("%v: %+v is allowed, and with %+v it is %s", a, e, o, got)
			}
			elsewhere := e
			elsewhere.address ^= 0xffff_ffff
			for i := 3; i < 6; i++ {
				elsewhere.args[i] = ^elsewhere.args[i]
			}
			if unshare := map[Arch]uint32{AMD64: 272, ARM64: 97}[a]; number != unshare {
				for i := range elsewhere.args {
					elsewhere.args[i] ^= 0xffff_ffff_0000_0000
				}
			}
			if other := verdictOf(t, code, elsewhere); other != got {
				t.Errorf("%v %+v: %+v: %s, and %s where only what does not matter is different", a, o, e, got, other)
			}
		}
	})
}
