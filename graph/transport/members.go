package transport

import (
	"encoding/json"

	"koine/internal/plainjson"
)

// readMembers returns the members of a valid JSON object, the last of each name. They are
// parts of the text, which encoding/json would read twice more: to skip each member, and to
// copy it.
func readMembers(object []byte) map[string]json.RawMessage {
	members := make(map[string]json.RawMessage, 4)
	for i := skipToMember(object, 1); object[i] != '}'; i = skipToMember(object, i) {
		end := endOfValue(object, i)
		name, _ := decodeString(object[i:end]) // it is valid
		from := skipToMember(object, end)
		i = endOfValue(object, from)
		members[name] = object[from:i:i]
	}
	return members
}

// skipToMember skips white space, commas and colons.
func skipToMember(text []byte, i int) int {
	for {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
}

// endOfValue returns the end of the value of a valid text that begins at i.
func endOfValue(text []byte, i int) int {
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			if i = endOfString(text, i); depth == 0 {
				return i
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // behind a number or a name
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
}

// endOfString returns the end of the string that begins at i.
func endOfString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// decodeString decodes a valid value that must be a string.
func decodeString(raw []byte) (s string, ok bool) {
	if raw[0] != '"' {
		return "", false
	}
	return plainjson.Unquote(raw), true
}

// decodeMap decodes a valid value that must be an object, and keeps the digits of numbers.
func decodeMap(raw []byte) (m map[string]any, ok bool) {
	if raw[0] != '{' {
		return nil, false
	}
	members := readMembers(raw)
	m = make(map[string]any, len(members))
	for name, value := range members {
		if s, isString := decodeString(value); isString {
			m[name] = s
			continue
		}
		var v any
		if decodeNumbers(value, &v) != nil {
			return nil, false
		}
		m[name] = v
	}
	return m, true
}
