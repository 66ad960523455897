#include "textflag.h"

#define wakeFD $31 // as in signals_linux.go

// A handler of signals (signals_linux.go). The kernel calls it as C does, with the
// signal's number in DI, on the thread's own stack for signals, and gives all
// registers back afterwards. It touches nothing of the Go runtime, which may be in
// the middle of anything: write(wakeFD, &number, 1).
TEXT wake<>(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	MOVQ  wakeFD, DI
	MOVQ  SP, SI
	MOVQ  $1, DX
	MOVQ  $1, AX // write
	SYSCALL
	POPQ  DI
	RET

// What a handler returns to: rt_sigreturn().
TEXT back<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $15, AX // rt_sigreturn
	SYSCALL
	INT  $3

// func handler() uintptr
TEXT ·handler(SB), NOSPLIT, $0-8
	MOVQ $wake<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func restorer() uintptr
TEXT ·restorer(SB), NOSPLIT, $0-8
	MOVQ $back<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
