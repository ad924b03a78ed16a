package vectorindex

// dotRowsGo computes the dot products of q and of len(out) rows of codes.
func dotRowsGo(q []int16, rows []byte, out []int32) {
	for i := range out {
		row := rows[i*len(q):][:len(q)]
		var a, b int32
		for j := 0; j < len(row); j += 2 {
			a += int32(q[j]) * int32(int8(row[j]))
			b += int32(q[j+1]) * int32(int8(row[j+1]))
		}
		out[i] = a + b
	}
}
