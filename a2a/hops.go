package a2a

import (
	"math"
	"net/http"
	"strconv"
)

// HopHeader is the number of servers that forwarded the message of a request. A server that
// forwards messages increases it, so that messages do not circle.
const HopHeader = "Koine-Hops"

// hopsOf returns the number of HopHeader, 0 without one. A value that is no number counts as
// too many.
func hopsOf(h http.Header) int {
	text := h.Get(HopHeader)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return math.MaxInt32
	}
	return int(n)
}
