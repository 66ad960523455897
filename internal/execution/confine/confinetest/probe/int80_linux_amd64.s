#include "textflag.h"

// func int80(number, b, c, d uint32) int32
TEXT ·int80(SB), NOSPLIT, $0-20
	MOVL number+0(FP), AX
	MOVL b+4(FP), BX
	MOVL c+8(FP), CX
	MOVL d+12(FP), DX
	INT  $0x80
	MOVL AX, ret+16(FP)
	RET
