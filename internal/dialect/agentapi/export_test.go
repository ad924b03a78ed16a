package agentapi

import "github.com/coder/websocket"

// Closing returns the close code of a socket for a cause.
func Closing(cause error) websocket.StatusCode {
	code, _ := closeReason(cause)
	return code
}
