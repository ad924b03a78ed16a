package a2a

import (
	"context"
)

// LastOfStream returns the last event of a channel's stream that ends with an error at
// a position.
func LastOfStream(h *Handler, err error, position string) *Error {
	return h.endOf(context.Background(), channelStreams, err, position)
}
