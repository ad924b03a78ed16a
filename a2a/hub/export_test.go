package hub

import "koine/kg"

// Table gives the codes that have a row in the table of errors.
func Table() (out []kg.Code) {
	for _, row := range errorTable {
		out = append(out, row.code)
	}
	return out
}
