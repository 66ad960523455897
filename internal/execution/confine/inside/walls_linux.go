package inside

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/filter"
	"vogt/internal/execution/confine/plan"
)

// network brings up the loopback of the box and hands the listeners in it that
// the starter serves to it.
func network(p *plan.Plan, control *control) error {
	if p.Network == plan.Host {
		return nil
	}
	if p.Level != plan.Full {
		// bwrap has brought it up.
	} else if err := loopbackUp(); err != nil {
		return &stepError{step: "start the loopback network of the box", err: err}
	}
	if p.Network != plan.Proxied {
		return nil
	}
	for _, port := range p.Ports {
		family, at, err := listenAt(p, port)
		if err == nil {
			err = handOver(plan.HandsListener+strconv.Itoa(port), family, at, unix.SOCK_STREAM, control)
		}
		if err != nil {
			failed := &stepError{step: "let port " + strconv.Itoa(port) + " of the box be served", err: err}
			if errors.Is(err, unix.EACCES) {
				failed.remedy = "where bwrap makes the box, ports below 1024 cannot be had: let the authority listen on a higher one"
			}
			return failed
		}
	}
	if p.Direct != nil {
		return direct(p, control)
	}
	return nil
}

var loopback = [4]byte{127, 0, 0, 1}

// direct makes the way for programs that know of no proxy. A listener at no address
// in particular serves those of the network, all of which are local, and knows
// at which one it was reached.
func direct(p *plan.Plan, control *control) error {
	own, bits, err := p.Direct.Address()
	if err == nil {
		err = addAddress(own.As4(), bits)
	}
	if err != nil {
		return &stepError{step: "give the box its network " + p.Direct.Network, err: err}
	}
	if err := handOver(plan.HandsNames, unix.AF_INET, &unix.SockaddrInet4{Port: 53, Addr: loopback}, unix.SOCK_DGRAM, control); err != nil {
		return &stepError{step: "let the names of the box be served", err: err}
	}
	for _, port := range p.Direct.Ports {
		if err := handOver(plan.HandsDirect+strconv.Itoa(port), unix.AF_INET, &unix.SockaddrInet4{Port: port}, unix.SOCK_STREAM, control); err != nil {
			return &stepError{step: "let port " + strconv.Itoa(port) + " of hosts be served", err: err}
		}
	}
	return nil
}

// addAddress gives the loopback a second address. The kernel takes all of its
// network for local, as it does with 127.0.0.0/8.
func addAddress(own [4]byte, bits int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var mask [4]byte
	binary.BigEndian.PutUint32(mask[:], ^uint32(0)<<(32-bits))
	for _, set := range []struct {
		request uint
		value   [4]byte
	}{{unix.SIOCSIFADDR, own}, {unix.SIOCSIFNETMASK, mask}} {
		request, err := unix.NewIfreq("lo:1")
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(set.value[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.request, request); err != nil {
			return err
		}
	}
	return nil
}

// handOver makes a socket at an address, hands it to the starter, and waits until
// it is served.
func handOver(what string, family int, at unix.Sockaddr, kind int, control *control) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return err
		}
	}
	if err := unix.Sendmsg(control.fd, []byte(what), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	var answer [16]byte
	n, err := unix.Read(control.fd, answer[:])
	if err == nil && string(answer[:n]) != "served" {
		err = errors.New("the starter does not serve it")
	}
	return err
}

// listenAt is where a port of the box is served.
func listenAt(p *plan.Plan, port int) (family int, at unix.Sockaddr, err error) {
	text, ok := p.Addresses[port]
	if !ok {
		text = "127.0.0.1"
	}
	address, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return 0, nil, err
	case address.Is4():
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: address.As4()}, nil
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: address.As16()}, nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// confine takes from every thread of the helper what the command must not have,
// in the one order in which each step may still be done. The helper lives on as
// the first process of the box, so it is to be worth no more than the command.
func confine(p *plan.Plan, program filter.Program, self int) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"keep others from reading the helper's memory", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		{"set the limits", func() error { return setLimits(&p.Limits) }},
		{"give up new privileges", func() error { return noNewPrivileges(p) }},
		{"close what is open", func() error { return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }},
		{"restrict by Landlock", func() error { return restrict(p, self) }},
		{"give up capabilities", dropCapabilities},
		{"install the seccomp filter", func() error { return filter.InstallAll(program) }},
	} {
		err := step.do()
		if _, says := errors.AsType[*stepError](err); says {
			return err // and what helps
		}
		if err != nil {
			return &stepError{step: step.what, err: err}
		}
	}
	return nil
}

// everywhere makes a system call on all threads, as far as the program is built
// without cgo, which vogt-confine is.
func everywhere(call, a1, a2, a3 uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(call, a1, a2, a3, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// noNewPrivileges is for every thread, or for this one where the others have the
// capability to go under Landlock without: they get it with the filter.
func noNewPrivileges(p *plan.Plan) error {
	if p.Level == plan.Full {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return everywhere(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
}

// setLimits bounds what the command may use, but for its memory: that bound
// comes last, since the helper would be held to it.
func setLimits(l *plan.Limits) error {
	for _, limit := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_NPROC, l.Processes}, {unix.RLIMIT_NOFILE, l.Files},
		{unix.RLIMIT_FSIZE, l.FileSize}, {unix.RLIMIT_CPU, l.CPU},
	} {
		if err := setLimit(limit.resource, limit.value); err != nil {
			return err
		}
	}
	// A core dump holds what the command had in memory, and may start a program.
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// setLimit sets both limits of a resource, unless value is 0.
func setLimit(resource int, value int64) error {
	if value <= 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit := min(uint64(value), now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
}

// restrict applies Landlock. It holds besides the mounts in a full box and
// instead of them in a reduced one.
func restrict(p *plan.Plan, self int) error {
	config, err := configFor(p)
	if err != nil {
		return err
	}
	var rules []landlock.Rule
	// split drops what is not there.
	split := func(names []string) (files, dirs []string) {
		for _, name := range names {
			var st unix.Stat_t
			switch err := unix.Stat(name, &st); {
			case err != nil:
			case st.Mode&unix.S_IFMT == unix.S_IFDIR:
				dirs = append(dirs, name)
			default:
				files = append(files, name)
			}
		}
		return files, dirs
	}
	var temporary []string
	if p.Level.Whole() {
		rules = append(rules, landlock.RODirs("/"))
		temporary = append(temporary, "/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/pts")
		if p.Root == plan.Listed {
			temporary = append(temporary, p.Home)
		}
		if p.Cache != "" {
			temporary = append(temporary, path.Join(p.Home, ".cache"))
		}
	} else {
		// There are no mounts: what is not listed here cannot be read. What is
		// hidden is left out of the folders that it is in.
		read := append(p.Read[:len(p.Read):len(p.Read)], "/proc")
		if p.Root == plan.HostView {
			read = []string{"/"}
		}
		var open []string
		for _, name := range read {
			var err error
			if open, err = without(open, name, p.Hidden); err != nil {
				return err
			}
		}
		files, dirs := split(open)
		rules = append(rules, landlock.ROFiles(files...), landlock.RODirs(dirs...))
		temporary = append(temporary, p.Private)
	}
	files, dirs := split(p.Write)
	_, temporary = split(temporary)
	devices, _ := split([]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"})
	rules = append(rules,
		landlock.RWDirs(dirs...).WithRefer(), landlock.RWFiles(files...),
		landlock.RWDirs(temporary...).WithRefer().WithIoctlDev(), landlock.RWFiles(devices...).WithIoctlDev())
	if self >= 0 {
		rules = append(rules, landlock.ROFiles(selfPath(self)))
	}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return everywhere(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), uintptr(flags), 0)
}

// without appends to list what a path holds but for what is hidden.
func without(list []string, name string, hidden []string) ([]string, error) {
	inside := false
	for _, h := range hidden {
		if below(name, h) {
			return list, nil
		}
		inside = inside || below(h, name)
	}
	if !inside {
		return append(list, name), nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if list, err = without(list, path.Join(name, e.Name()), hidden); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// configFor is the exact configuration for this kernel: the newest that it
// knows, and an error if that is too old for the level.
func configFor(p *plan.Plan) (landlock.Config, error) {
	version, err := landlockVersion()
	if err != nil {
		return landlock.Config{}, err
	}
	known := [...]landlock.Config{landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10}
	least, kernel := 2, "5.19" // before, files could not be moved from folder to folder
	if p.Level == plan.Reduced {
		least, kernel = 6, "6.12" // signals and abstract sockets are scoped from here on
	}
	if p.Network == plan.Host && p.Sockets == plan.OwnSockets {
		least, kernel = 6, "6.12" // abstract sockets are of the network, which is the machine's
	}
	if version < least {
		return landlock.Config{}, &stepError{step: "hold a box of the level " + string(p.Level), err: errors.New("Landlock is of version " + number(version)), remedy: "it needs Linux " + kernel + " or later"}
	}
	config := known[min(version, len(known))-1]
	if p.Level.Whole() || p.Network == plan.Host {
		config.HandledAccessNet = 0 // the network namespace holds, or the plan has no wall there
	}
	return config, nil
}

// dropCapabilities empties the five sets of this thread, from which the command
// is started, and those of every other thread but for the bounding set: that one
// matters in execve alone, which gives nothing any more (no_new_privs), and a
// call on all threads for each of its forty parts would take longer than all the
// rest of the box (capabilities(7)).
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+32; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel knows no further one
		}
		if errors.Is(err, unix.EPERM) {
			break // there is none to give up, as without a user namespace
		}
		if err != nil {
			return err
		}
	}
	// The ambient set goes with the others: it is never more than they are.
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := &[2]unix.CapUserData{}
	err := everywhere(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(none)), 0)
	runtime.KeepAlive(header)
	runtime.KeepAlive(none)
	if err != nil {
		return err
	}
	return haveNone()
}

// haveNone checks that no capability is left.
func haveNone() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for _, set := range have {
		if set.Effective|set.Permitted|set.Inheritable != 0 {
			return errors.New("some are left")
		}
	}
	return nil
}
