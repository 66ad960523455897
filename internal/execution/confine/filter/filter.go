// Package filter is the system call filter of the sandbox: it owns which calls a
// confined program may make, on which architecture, and the kernel program
// (seccomp, classic BPF) that says so.
//
// Every system call that was known when this was written has a verdict in the
// table of calls.go; a number that is not there gets ENOSYS, as on a kernel that
// is older than the call. So nothing is open by being new. The table is long
// because the programs that agents run (compilers, language runtimes, databases
// in tests) use nearly all of it; what a shorter list would refuse besides is
// harmless within the other walls.
//
// A filter sees numbers and the values of arguments, no memory that they point
// to. It leaves out what needs more: paths and files (mounts, Landlock), who can
// be signalled (the process namespace), capabilities, and descriptors that were
// open before. Flags on which permission rests and which are behind a pointer
// are why whole calls are missing: clone3, io_uring.
//
// Building is a function of values, on every platform; only [Install] and
// [InstallAll] are for Linux.
package filter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// Arch is a processor architecture in its 64-bit mode. The zero value is none.
type Arch uint8

const (
	AMD64 Arch = iota + 1
	ARM64
)

// Native returns the architecture that this program was compiled for.
func Native() (Arch, error) {
	switch runtime.GOARCH {
	case "amd64":
		return AMD64, nil
	case "arm64":
		return ARM64, nil
	}
	return 0, fmt.Errorf("there is no system call filter for %s; amd64 and arm64 have one", runtime.GOARCH)
}

func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return fmt.Sprintf("Arch(%d)", uint8(a))
}

// audit returns the value by which the kernel tells a filter the architecture:
// the ELF machine, with marks for 64 bits and little endian. It differs for
// 32-bit calls of the same processor.
func (a Arch) audit() (uint32, bool) {
	const marks = 0xc0000000
	switch a {
	case AMD64:
		return marks | 62, true
	case ARM64:
		return marks | 183, true
	}
	return 0, false
}

// Options are what a filter permits besides what every confined program may do.
// The zero value is the strictest.
type Options struct {
	// Inet permits TCP sockets. Where they lead is for the network namespace.
	Inet bool
	// Datagram permits UDP sockets; it needs Inet.
	Datagram bool
	// Unix permits Unix sockets of every kind. A filter cannot tell whose socket
	// a path or an abstract name leads to, so something else must. Without it
	// there are pairs of connected ones only.
	Unix bool
	// Terminal permits to change terminals, and to make and take new ones.
	// Without it they can be asked only, which is enough for programs that read
	// and write pipes.
	Terminal bool
	// IPC permits System V IPC and POSIX message queues. All processes of a user
	// share them, unless there is an IPC namespace.
	IPC bool
}

// Instruction is one instruction of classic BPF, as struct sock_filter is.
type Instruction struct {
	Op     uint16
	Jt, Jf uint8
	K      uint32
}

// Program is a filter for one architecture. The zero value cannot be installed.
type Program struct {
	arch Arch
	code []Instruction
}

// Build makes the filter for an architecture, which need not be that of this
// program.
func Build(a Arch, o Options) (Program, error) {
	audit, known := a.audit()
	if !known {
		return Program{}, fmt.Errorf("there is no system call filter for %v; amd64 and arm64 have one", a)
	}
	if o.Datagram && !o.Inet {
		return Program{}, errors.New("a system call filter cannot permit UDP without TCP; set Inet as well")
	}
	// First the architecture, since numbers mean other calls on another one. A
	// program that calls in 32 bits (int 0x80 on amd64) is ended at once.
	code := load(archOffset, when(jumpEqual, audit,
		load(numberOffset, choose(spans(a, o))),
		kill()))
	if len(code) > maxInstructions {
		return Program{}, fmt.Errorf("the system call filter has %d instructions, of which the kernel takes %d; shorten the table", len(code), maxInstructions)
	}
	return Program{arch: a, code: code}, nil
}

// Arch returns what the program was built for.
func (p Program) Arch() Arch { return p.arch }

// Instructions returns a copy of the program.
func (p Program) Instructions() []Instruction { return slices.Clone(p.code) }

// Hash identifies the program: the SHA-256 of its instructions as the kernel gets
// them, in hexadecimal digits.
func (p Program) Hash() string {
	encoded := make([]byte, 0, 8*len(p.code))
	for _, i := range p.code {
		encoded = binary.LittleEndian.AppendUint16(encoded, i.Op)
		encoded = append(encoded, i.Jt, i.Jf)
		encoded = binary.LittleEndian.AppendUint32(encoded, i.K)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}
