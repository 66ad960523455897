package filter

import (
	"encoding/binary"
	"fmt"
)

// event is what a filter sees of a call: struct seccomp_data.
type event struct {
	number  uint32
	arch    uint32
	address uint64
	args    [6]uint64
}

func (e event) encode() [64]byte {
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], e.number)
	binary.LittleEndian.PutUint32(data[4:], e.arch)
	binary.LittleEndian.PutUint64(data[8:], e.address)
	for i, a := range e.args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	return data
}

// interpret runs a program over an event, by the rules of the kernel for filters
// of system calls (seccomp_check_filter and bpf_check_classic), in so far as
// programs here use them: whatever else they hold is an error, as are a load
// from outside and a step past the end.
func interpret(code []Instruction, e event) (result uint32, err error) {
	data := e.encode()
	var a uint32
	for pc := uint64(0); pc < uint64(len(code)); pc++ { // jumps lead forwards only, so it ends
		i := code[pc]
		var holds bool
		switch i.Op {
		case 0x20: // BPF_LD | BPF_W | BPF_ABS
			if i.K%4 != 0 || i.K > uint32(len(data)-4) {
				return 0, fmt.Errorf("instruction %d loads from offset %d", pc, i.K)
			}
			a = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case 0x54: // BPF_ALU | BPF_AND | BPF_K
			a &= i.K
			continue
		case 0x05: // BPF_JMP | BPF_JA
			pc += uint64(i.K)
			continue
		case 0x15: // BPF_JMP | BPF_JEQ | BPF_K
			holds = a == i.K
		case 0x25: // BPF_JMP | BPF_JGT | BPF_K
			holds = a > i.K
		case 0x35: // BPF_JMP | BPF_JGE | BPF_K
			holds = a >= i.K
		case 0x45: // BPF_JMP | BPF_JSET | BPF_K
			holds = a&i.K != 0
		case 0x06: // BPF_RET | BPF_K
			return i.K, nil
		default:
			return 0, fmt.Errorf("instruction %d is %#x", pc, i.Op)
		}
		if holds {
			pc += uint64(i.Jt)
		} else {
			pc += uint64(i.Jf)
		}
	}
	return 0, fmt.Errorf("the program of %d instructions runs past its end", len(code))
}

// sound checks a program as the kernel does before it takes one: every jump
// leads to an instruction, and the last one ends.
func sound(code []Instruction) error {
	if len(code) == 0 || len(code) > 4096 {
		return fmt.Errorf("there are %d instructions", len(code))
	}
	for pc, i := range code {
		left := uint64(len(code) - pc - 1)
		switch i.Op {
		case 0x20:
			if i.K%4 != 0 || i.K >= 64 {
				return fmt.Errorf("instruction %d loads from offset %d", pc, i.K)
			}
		case 0x05:
			if uint64(i.K) >= left {
				return fmt.Errorf("instruction %d jumps over %d of %d", pc, i.K, left)
			}
		case 0x15, 0x25, 0x35, 0x45:
			if uint64(max(i.Jt, i.Jf)) >= left {
				return fmt.Errorf("instruction %d jumps over %d or %d of %d", pc, i.Jt, i.Jf, left)
			}
		case 0x54, 0x06:
		default:
			return fmt.Errorf("instruction %d is %#x", pc, i.Op)
		}
	}
	if last := code[len(code)-1]; last.Op != 0x06 {
		return fmt.Errorf("the last instruction is %#x", last.Op)
	}
	return nil
}

// named is a result in words, and false if filters here have no such result.
func named(result uint32) (string, bool) {
	const failing = 0x00050000
	name, known := map[uint32]string{
		0x7fff0000:   "allow",
		0x80000000:   "kill",
		failing | 1:  "EPERM",
		failing | 22: "EINVAL",
		failing | 38: "ENOSYS",
		failing | 93: "EPROTONOSUPPORT",
		failing | 97: "EAFNOSUPPORT",
	}[result]
	if !known {
		return fmt.Sprintf("%#x", result), false
	}
	return name, true
}
