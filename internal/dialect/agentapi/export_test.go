package agentapi

import (
	"github.com/coder/websocket"

	"koine/kg"
)

// Table returns the codes in the table of errors.
func Table() (out []kg.Code) {
	for _, row := range errorTable {
		out = append(out, row.code)
	}
	return out
}

// Closing returns the close code of a socket for a cause.
func Closing(cause error) websocket.StatusCode {
	code, _ := closeReason(cause)
	return code
}
