package execution

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
)

// recognise says whether the kernel loads the image itself. It refuses what
// the kernel would refuse, as far as that can be known before the permission is
// used up.
func recognise(path string, head []byte) (native bool, err error) {
	switch {
	case head == nil:
		return true, nil // may be executed, but not read
	case !bytes.HasPrefix(head, []byte(elf.ELFMAG)):
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

// runsHere looks at the machine field of an ELF header (elf(5)).
func runsHere(head []byte) bool {
	const dataAt, machineAt = 5, 18
	if len(head) < machineAt+2 {
		return false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(head[dataAt]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	machine := elf.Machine(order.Uint16(head[machineAt:]))
	switch runtime.GOARCH {
	case "amd64", "386":
		return machine == elf.EM_X86_64 || machine == elf.EM_386
	case "arm64", "arm":
		return machine == elf.EM_AARCH64 || machine == elf.EM_ARM
	case "riscv64":
		return machine == elf.EM_RISCV
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
