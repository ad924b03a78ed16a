package plainjson

import (
	"bytes"
	"encoding/json"
)

// Unquote decodes a string of a valid JSON text in UTF-8, with its quotes. encoding/json would
// check the text again.
func Unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	at := bytes.IndexByte(inner, '\\')
	if at < 0 {
		return string(inner)
	}
	out := make([]byte, 0, len(inner))
	for at >= 0 {
		c, ok := unescape(inner[at+1])
		if !ok { // \u, with pairs of surrogates
			var s string
			if json.Unmarshal(quoted, &s) != nil {
				return string(inner) // cannot happen: the text is valid
			}
			return s
		}
		out = append(append(out, inner[:at]...), c)
		inner = inner[at+2:]
		at = bytes.IndexByte(inner, '\\')
	}
	return string(append(out, inner...))
}

// unescape returns the character that stands behind a backslash for another one.
func unescape(c byte) (of byte, ok bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}
