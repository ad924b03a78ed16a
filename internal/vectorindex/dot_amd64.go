package vectorindex

import "golang.org/x/sys/cpu"

// dotRows computes the dot products of q and of len(out) rows of codes.
func dotRows(q []int16, rows []byte, out []int32) {
	if len(out) == 0 {
		return
	}
	if !cpu.X86.HasAVX2 {
		dotRowsGo(q, rows, out)
		return
	}
	_ = rows[:len(q)*len(out)]
	dotRowsAVX2(&q[0], &rows[0], len(q), len(out), &out[0])
}

// dotRowsAVX2 is dotRows for n rows. stride is a positive multiple of codeUnit, and n is positive.
//
//go:noescape
func dotRowsAVX2(q *int16, rows *byte, stride, n int, out *int32)
