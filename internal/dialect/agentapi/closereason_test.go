package agentapi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"koine/internal/ws"
	"koine/kg"
)

// A message that is longer than a close frame has room for is cut between characters: a
// client fails a connection whose reason is not UTF-8.
func TestCloseReasonIsUTF8(t *testing.T) {
	for n := range 4 {
		cause := kg.Errorf(kg.CodePermissionDenied, "%s%s", strings.Repeat("a", n), strings.Repeat("é", ws.MaxReasonBytes))
		code, reason := closeReason(cause)
		if code != ws.StatusForbidden || len(reason) > ws.MaxReasonBytes || len(reason) < ws.MaxReasonBytes-5 || !utf8.ValidString(reason) {
			t.Errorf("%d bytes in front: closed with %d and %d bytes %q", n, code, len(reason), reason)
		}
	}
}
