//go:build !amd64

package vectorindex

func dotRows(q []int16, rows []byte, out []int32) { dotRowsGo(q, rows, out) }
