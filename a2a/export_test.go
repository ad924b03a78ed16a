package a2a

import (
	"context"

	"koine/kg"
)

// Tables returns the codes in each table of errors, in order.
func Tables() map[string][]kg.Code {
	out := map[string][]kg.Code{}
	for name, table := range map[string][]errorRow{
		"knowledge/*": errorTable, "channels/*": channelErrors, "base A2A": coreErrors, "base A2A, cancel": cancelErrors,
	} {
		for _, row := range table {
			out[name] = append(out[name], row.code)
		}
	}
	return out
}

// LastOfStream returns the last event of a channel's stream that ends with an error at
// a position.
func LastOfStream(h *Handler, err error, position string) *Error {
	return h.endOf(context.Background(), channelStreams, err, position)
}
