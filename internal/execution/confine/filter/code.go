package filter

import "slices"

// Operations of classic BPF that filters here use (linux/bpf_common.h).
const (
	loadWord    = 0x20 // A = the 32 bits at K of struct seccomp_data
	and         = 0x54 // A &= K
	jump        = 0x05 // by K instructions
	jumpEqual   = 0x15 // A == K
	jumpGreater = 0x25 // A > K
	jumpAtLeast = 0x35 // A >= K
	jumpAny     = 0x45 // A & K != 0
	result      = 0x06 // K
)

// Offsets in struct seccomp_data. Both architectures are little endian, so that
// the lower half of an argument comes first.
const (
	numberOffset    = 0
	archOffset      = 4
	argumentsOffset = 16
	argumentSize    = 8
)

const maxInstructions = 4096 // BPF_MAXINSNS

// Results of a filter (linux/seccomp.h).
const (
	allowing = 0x7fff0000
	failing  = 0x00050000 // with the error number added
	killing  = 0x80000000 // the whole process
)

// errno is an error number of Linux, whatever platform this is compiled for.
type errno uint16

const (
	eperm           errno = 1
	einval          errno = 22
	enosys          errno = 38
	eprotonosupport errno = 93
	eafnosupport    errno = 97
)

// A verdict is code that ends: every path through it returns. Verdicts are
// composed of verdicts, so all jumps lead forwards and within.
type verdict []Instruction

func allow() verdict       { return verdict{{Op: result, K: allowing}} }
func fail(e errno) verdict { return verdict{{Op: result, K: failing | uint32(e)}} }
func kill() verdict        { return verdict{{Op: result, K: killing}} }

// load loads the 32 bits at an offset, then continues.
func load(offset uint32, then verdict) verdict {
	return append(verdict{{Op: loadWord, K: offset}}, then...)
}

// argument loads the lower half of an argument. Most arguments have 32 bits for
// the kernel, which ignores the upper half; so must the filter.
func argument(i uint32, then verdict) verdict {
	return load(argumentsOffset+argumentSize*i, then)
}

// upperHalf loads the upper half of an argument.
func upperHalf(i uint32, then verdict) verdict {
	return load(argumentsOffset+argumentSize*i+argumentSize/2, then)
}

// masked leaves the bits of a mask, then continues.
func masked(mask uint32, then verdict) verdict {
	return append(verdict{{Op: and, K: mask}}, then...)
}

// when compares what is loaded with k.
func when(comparison uint16, k uint32, yes, no verdict) verdict {
	const farthest = 255 // for comparisons; jumps have no such limit
	compare := verdict{{Op: comparison, Jf: uint8(len(yes)), K: k}}
	if len(yes) > farthest {
		compare = verdict{{Op: comparison, Jt: 1, K: k}, {Op: jump, K: uint32(len(yes))}}
	}
	return slices.Concat(compare, yes, no)
}

// among finds what is loaded in a list.
func among(list []uint32, yes, no verdict) verdict {
	const most = 128 // so that a comparison reaches over the others
	if len(list) > most {
		return among(list[:most], yes, among(list[most:], yes, no))
	}
	last := len(list) - 1
	end := when(jumpEqual, list[last], yes, no)
	found := len(end) - len(no) - len(yes) // where in end
	var code verdict
	for i, k := range list[:last] {
		code = append(code, Instruction{Op: jumpEqual, Jt: uint8(last - i - 1 + found), K: k})
	}
	return append(code, end...)
}

// span is a run of numbers with one verdict, up to the next span.
type span struct {
	from uint32
	then verdict
}

// choose finds the span of the number that is loaded, by bisection. Spans are
// sorted, and the first begins at zero.
func choose(spans []span) verdict {
	if len(spans) == 1 {
		return spans[0].then
	}
	middle := len(spans) / 2
	return when(jumpAtLeast, spans[middle].from, choose(spans[middle:]), choose(spans[:middle]))
}

// spans lists the verdicts of an architecture's calls, and of all numbers between
// and after them.
func spans(a Arch, o Options) []span {
	var end int16 // the last number is not listed, like all after it
	for _, c := range calls {
		end = max(end, c.number(a)+1)
	}
	rules := make([]rule, end+1)
	for _, c := range calls {
		if n := c.number(a); n != none {
			rules[n] = c.rule
		}
	}
	var all []span
	for n, r := range rules {
		if n > 0 && r == rules[n-1] {
			continue
		}
		then := o.verdict(r)
		if len(all) == 0 || !slices.Equal(all[len(all)-1].then, then) {
			all = append(all, span{from: uint32(n), then: then})
		}
	}
	return all
}
