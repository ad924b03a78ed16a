package agentapi

import (
	"github.com/coder/websocket"

	"koine/kg"
)

// Table gives the codes that have a row in the table of errors.
func Table() (out []kg.Code) {
	for _, row := range errorTable {
		out = append(out, row.code)
	}
	return out
}

// Closing is the code with which a socket closes for a reason.
func Closing(cause error) websocket.StatusCode {
	code, _ := closeReason(cause)
	return code
}
