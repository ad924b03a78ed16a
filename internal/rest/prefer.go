package rest

import (
	"net/http"
	"strconv"
	"strings"

	"koine/kg"
)

// The values of the preference return (RFC 7240, section 4.2).
const (
	PreferMinimal        = "minimal"
	PreferRepresentation = "representation"
)

// Preference returns the client's preference for the answer to a change; "" for none.
func Preference(r *http.Request) string {
	for _, line := range r.Header.Values("Prefer") {
		for wish := range strings.SplitSeq(line, ",") {
			wish, _, _ = strings.Cut(wish, ";")
			name, value, _ := strings.Cut(wish, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "return") {
				continue
			}
			switch value = strings.Trim(strings.TrimSpace(value), `"`); value {
			case PreferMinimal, PreferRepresentation:
				return value
			}
		}
	}
	return ""
}

// SetAnswerHeaders sets the headers of an answer: the applied preference, the current version,
// and whether the request was a replay.
func SetAnswerHeaders(w http.ResponseWriter, preference string, version int64, replayed bool) {
	if preference != "" {
		w.Header().Set("Preference-Applied", "return="+preference)
	}
	w.Header().Set("ETag", `"`+strconv.FormatInt(version, 10)+`"`)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}

// IdempotencyKey returns the idempotency key of a request, "" for none.
//
// Errors: CodeInvalid if it is empty or given twice.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || values[0] == "":
		return "", kg.Errorf(kg.CodeInvalid, "the idempotency key must be given once and must not be empty").At("Idempotency-Key")
	}
	return values[0], nil
}
