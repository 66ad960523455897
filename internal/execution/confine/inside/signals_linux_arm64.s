#include "textflag.h"

#define wakeFD $31 // as in signals_linux.go

// A handler of signals (signals_linux.go). The kernel calls it as C does, with the
// signal's number in R0, on the thread's own stack for signals, and gives all
// registers back afterwards: R30 leads to its way back. It touches nothing of the
// Go runtime, which may be in the middle of anything: write(wakeFD, &number, 1).
TEXT wake<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $16, RSP
	MOVD R0, 0(RSP)
	MOVD wakeFD, R0
	MOVD RSP, R1
	MOVD $1, R2
	MOVD $64, R8 // write
	SVC
	ADD  $16, RSP
	RET

// func handler() uintptr
TEXT ·handler(SB), NOSPLIT, $0-8
	MOVD $wake<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func restorer() uintptr
TEXT ·restorer(SB), NOSPLIT, $0-8
	MOVD ZR, ret+0(FP)
	RET
