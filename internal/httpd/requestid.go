package httpd

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// requestIDs assigns ids to requests: the client's own, or a prefix unique to this
// process with a number.
type requestIDs struct {
	run  string
	last *atomic.Uint64
}

const maxRequestID = 64

func newRequestIDs() requestIDs {
	return requestIDs{run: strings.ToLower(rand.Text()[:8]), last: new(atomic.Uint64)}
}

func (ids requestIDs) idOf(r *http.Request) string {
	if id := r.Header.Get("X-Request-ID"); id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, notInID) {
		return id
	}
	return ids.run + "-" + strconv.FormatUint(ids.last.Add(1), 10)
}

func notInID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
