package hub

import "koine/kg"

// Table returns the codes in the table of errors.
func Table() (out []kg.Code) {
	for _, row := range errorTable {
		out = append(out, row.code)
	}
	return out
}
