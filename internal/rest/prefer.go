package rest

import (
	"net/http"
	"strconv"
	"strings"

	"koine/kg"
)

// The preferences of who asks for a change (RFC 7240, section 4.2).
const (
	PreferMinimal        = "minimal"
	PreferRepresentation = "representation"
)

// Preference is how much of what was changed is to be in the answer; "" where nothing is
// preferred.
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

// Answered says in the header of an answer which preference was followed, the version that
// there is now, and whether the request is a repetition.
func Answered(w http.ResponseWriter, preference string, version int64, replayed bool) {
	if preference != "" {
		w.Header().Set("Preference-Applied", "return="+preference)
	}
	w.Header().Set("ETag", `"`+strconv.FormatInt(version, 10)+`"`)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}

// IdempotencyKey is the key under which a request may be repeated, "" for none.
//
// Errors: CodeInvalid for one that is empty, or said twice.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || values[0] == "":
		return "", kg.Errorf(kg.CodeInvalid, "a request has one idempotency key, which is not empty").At("Idempotency-Key")
	}
	return values[0], nil
}
