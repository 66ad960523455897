#include "textflag.h"

#define clone3 $435
#define exit $60

// func vfork(b *batch) int
//
// Both processes return from clone3 on the same stack. The child writes to none of
// it: it needs no more than registers, which are its own, until it executes a
// program or ends. The starter's thread stands still as long.
TEXT ·vfork(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), BX
	MOVQ 0(BX), DI  // clone
	MOVQ 8(BX), SI  // size
	MOVQ clone3, AX
	SYSCALL
	TESTQ AX, AX
	JZ   child
	MOVQ AX, ret+8(FP)
	RET

child:
	MOVQ 16(BX), R12 // calls
	MOVQ 24(BX), R13 // count
	XORQ R14, R14    // how many were begun

next:
	INCQ R14
	MOVQ 0(R12), AX
	MOVQ 8(R12), DI
	MOVQ 16(R12), SI
	MOVQ 24(R12), DX
	MOVQ 32(R12), R10
	MOVQ 40(R12), R8
	MOVQ 48(R12), R9
	SYSCALL
	CMPQ AX, $0xfffffffffffff001
	JCC  failed
	ADDQ $56, R12
	CMPQ R14, R13
	JCS  next
	MOVQ $0, AX // the last one was to execute a program

failed:
	NEGQ AX
	MOVQ R14, 32(BX)
	MOVQ AX, 40(BX)

end:
	MOVQ $127, DI
	MOVQ exit, AX
	SYSCALL
	JMP  end
