package filter

import (
	"slices"
	"testing"
)

// long is a verdict of n instructions, the last of which ends with k.
func long(n int, k uint32) verdict {
	code := slices.Repeat(verdict{{Op: and, K: ^uint32(0)}}, n-1)
	return append(code, Instruction{Op: result, K: k})
}

// Whatever the distance, a comparison leads to its verdict.
func TestDistances(t *testing.T) {
	const yes, no = 1, 2
	lengths := []int{1, 2, 254, 255, 256, 257, 1000}
	for _, n := range lengths {
		for _, m := range lengths {
			compared := when(jumpEqual, 7, long(n, yes), long(m, no))
			for number, want := range map[uint32]uint32{7: yes, 8: no} {
				decided(t, compared, number, want)
			}
			list := []uint32{3, 1, 4, 15, 9}
			found := among(list, long(n, yes), long(m, no))
			for _, number := range list {
				decided(t, found, number, yes)
			}
			decided(t, found, 5, no)
		}
	}
}

// Lists are longer than a comparison can jump, and short ones work too.
func TestLists(t *testing.T) {
	const yes, no = 1, 2
	for _, n := range []int{1, 2, 127, 128, 129, 255, 256, 257, 1000} {
		list := make([]uint32, n)
		for i := range list {
			list[i] = uint32(2 * i)
		}
		code := among(list, long(1, yes), long(1, no))
		for i := range uint32(2 * n) {
			want := uint32(no)
			if i%2 == 0 {
				want = yes
			}
			decided(t, code, i, want)
		}
		decided(t, code, uint32(2*n), no)
	}
}

func TestSpans(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 100, 333} {
		var all []span
		for i := range uint32(n) {
			all = append(all, span{from: 3 * i, then: long(10, i)})
		}
		code := choose(all)
		for number := range uint32(3 * n) {
			decided(t, code, number, number/3)
		}
		decided(t, code, ^uint32(0), uint32(n-1))
	}
}

// decided checks the result for a number.
func decided(t *testing.T, code verdict, number, want uint32) {
	t.Helper()
	program := load(numberOffset, code)
	if err := sound(program); err != nil {
		t.Fatal(err)
	}
	got, err := interpret(program, event{number: number})
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%d gives %d, want %d", number, got, want)
	}
}
