#include "textflag.h"

// func dotRowsAVX2(q *int16, rows *byte, stride, n int, out *int32)
//
// 64 codes at a time: bytes become 16-bit numbers (VPMOVSXBW), are multiplied by those of q
// and added in pairs (VPMADDWD). Y8 and Y9 have the sums of a row.
TEXT ·dotRowsAVX2(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ stride+16(FP), CX
	MOVQ n+24(FP), DX
	MOVQ out+32(FP), R8
row:
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	MOVQ  DI, R9
	MOVQ  CX, R10
step:
	PREFETCHT0 1536(SI)
	VPMOVSXBW (SI), Y0
	VPMOVSXBW 16(SI), Y1
	VPMOVSXBW 32(SI), Y2
	VPMOVSXBW 48(SI), Y3
	VPMADDWD  (R9), Y0, Y0
	VPMADDWD  32(R9), Y1, Y1
	VPMADDWD  64(R9), Y2, Y2
	VPMADDWD  96(R9), Y3, Y3
	VPADDD    Y0, Y8, Y8
	VPADDD    Y1, Y9, Y9
	VPADDD    Y2, Y8, Y8
	VPADDD    Y3, Y9, Y9
	ADDQ      $64, SI
	ADDQ      $128, R9
	SUBQ      $64, R10
	JNZ       step
	VPADDD       Y9, Y8, Y8
	VEXTRACTI128 $1, Y8, X0
	VPADDD       X0, X8, X8
	VPSHUFD      $0x4e, X8, X0
	VPADDD       X0, X8, X8
	VPSHUFD      $0xb1, X8, X0
	VPADDD       X0, X8, X8
	VMOVD        X8, (R8)
	ADDQ $4, R8
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
