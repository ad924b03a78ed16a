package plainjson_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"koine/internal/plainjson"
)

// Unquote agrees with encoding/json on every valid string.
func FuzzUnquote(f *testing.F) {
	for _, text := range []string{`""`, `"a"`, `"\""`, `"\\"`, `"a\/b\b\f\n\r\tc"`, `"\u00e4\n"`, `"é\né"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\u0041"`, `"x\\\"y"`, `1`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		var want string
		if len(quoted) == 0 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' || !utf8.Valid(quoted) || json.Unmarshal(quoted, &want) != nil {
			return
		}
		if got := plainjson.Unquote(quoted); got != want {
			t.Errorf("%s is %q, not %q", quoted, got, want)
		}
	})
}
