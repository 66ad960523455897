package execution

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
)

// The parts of an ELF header that are looked at, and the machines that this
// processor may run (elf(5)).
const (
	elfMagic     = "\x7fELF"
	elfDataAt    = 5
	elfBigEndian = 2
	elfMachineAt = 18

	machine386     = 3
	machineARM     = 40
	machineX86_64  = 62
	machineAArch64 = 183
	machineRISCV   = 243
)

// recognise says whether the kernel loads the image itself. It refuses what
// the kernel would refuse, as far as that can be known before the permission is
// used up.
func recognise(path string, head []byte) (native bool, err error) {
	switch {
	case head == nil:
		return true, nil // may be executed, but not read
	case !bytes.HasPrefix(head, []byte(elfMagic)):
		if otherFormats() {
			return false, nil
		}
		return false, &Error{Kind: NoProgram, Path: path}
	case runsHere(head):
		return true, nil
	case otherFormats():
		return false, nil
	}
	return false, &Error{Kind: Architecture, Path: path}
}

// runsHere looks at the machine that an image is built for.
func runsHere(head []byte) bool {
	if len(head) < elfMachineAt+2 {
		return false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[elfDataAt] == elfBigEndian {
		order = binary.BigEndian
	}
	machine := order.Uint16(head[elfMachineAt:])
	switch runtime.GOARCH {
	case "amd64", "386":
		return machine == machineX86_64 || machine == machine386
	case "arm64", "arm":
		return machine == machineAArch64 || machine == machineARM
	case "riscv64":
		return machine == machineRISCV
	}
	return true // the kernel will tell
}

// otherFormats reports whether the administrator has registered handlers for
// further formats (binfmt_misc), such as emulators.
func otherFormats() bool {
	entries, err := os.ReadDir("/proc/sys/fs/binfmt_misc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() != "register" && e.Name() != "status" {
			return true
		}
	}
	return false
}
