package rdf

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// tape is a JSON text with an index of its values. It is much smaller than a tree: eight
// bytes per value.
type tape struct {
	text []byte
	toks tokens
}

// tok is a value or a key: its offset in the text, and the number of the first token
// after it and its content.
type tok struct{ pos, next uint32 }

const tokChunk = 1 << 12

// tokens is a list that grows without copying.
type tokens struct {
	chunks [][]tok
	n      uint32
}

func (t *tokens) add(k tok) uint32 {
	if int(t.n/tokChunk) == len(t.chunks) {
		t.chunks = append(t.chunks, make([]tok, tokChunk))
	}
	*t.at(t.n) = k
	t.n++
	return t.n - 1
}

func (t *tokens) at(i uint32) *tok { return &t.chunks[i/tokChunk][i%tokChunk] }

// reset empties the list and keeps one chunk of its memory.
func (t *tokens) reset() {
	t.n = 0
	if len(t.chunks) > 1 {
		clear(t.chunks[1:])
		t.chunks = t.chunks[:1]
	}
}

// val is a value on a tape.
type val struct {
	t *tape
	i uint32
}

func (v val) pos() int     { return int(v.t.toks.at(v.i).pos) }
func (v val) next() uint32 { return v.t.toks.at(v.i).next }

// kind returns the value's first character, '0' for all numbers.
func (v val) kind() byte {
	switch c := v.t.text[v.pos()]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	}
	return '0'
}

func (v val) isNull() bool   { return v.kind() == 'n' }
func (v val) isString() bool { return v.kind() == '"' }
func (v val) isObject() bool { return v.kind() == '{' }
func (v val) isArray() bool  { return v.kind() == '[' }
func (v val) isBool() bool   { return v.kind() == 't' || v.kind() == 'f' }
func (v val) isScalar() bool { return !v.isObject() && !v.isArray() }

// entries yields the keys and values of an object.
func (v val) entries() iter.Seq2[val, val] {
	return func(yield func(key, value val) bool) {
		for i, end := v.i+1, v.next(); i < end; {
			value := val{v.t, i + 1}
			if !yield(val{v.t, i}, value) {
				return
			}
			i = value.next()
		}
	}
}

// items yields the items of an array, or the value itself if it is not an array.
func (v val) items() iter.Seq[val] {
	return func(yield func(val) bool) {
		if !v.isArray() {
			yield(v)
			return
		}
		for i, end := v.i+1, v.next(); i < end; {
			item := val{v.t, i}
			if !yield(item) {
				return
			}
			i = item.next()
		}
	}
}

// lookUpEntry returns the value of an object's entry.
func (v val) lookUpEntry(key string) (found val, ok bool) {
	for k, value := range v.entries() {
		if k.equals(key) {
			return value, true
		}
	}
	return val{}, false
}

// end returns the offset after the value's text.
func (v val) end() int {
	text := v.t.text
	pos := v.pos()
	switch v.kind() {
	case '"':
		return stringEnd(text, pos)
	case '{', '[':
		last := pos + 1
		for i, end := v.i+1, v.next(); i < end; {
			child := val{v.t, i}
			if child.next() == end {
				last = child.end()
			}
			i = child.next()
		}
		for text[last] != '}' && text[last] != ']' {
			last++
		}
		return last + 1
	}
	for pos < len(text) && (isAlnum(text[pos]) || text[pos] == '-' || text[pos] == '+' || text[pos] == '.') {
		pos++
	}
	return pos
}

func stringEnd(text []byte, pos int) int {
	for pos++; text[pos] != '"'; pos++ {
		if text[pos] == '\\' {
			pos++
		}
	}
	return pos + 1
}

func (v val) raw() []byte { return v.t.text[v.pos():v.end()] }

// clone returns the value on a tape of its own.
func (v val) clone() val {
	c := &tape{text: bytes.Clone(v.raw())}
	for i, end := v.i, v.next(); i < end; i++ {
		t := *v.t.toks.at(i)
		c.toks.add(tok{t.pos - uint32(v.pos()), t.next - v.i})
	}
	return val{c, 0}
}

// bytes returns the characters of a string; the slice may alias the text.
func (v val) bytes() []byte {
	pos := v.pos() + 1
	text := v.t.text
	for i := pos; ; i++ {
		switch text[i] {
		case '"':
			return text[pos:i]
		case '\\':
			return unescapeJSON(text[pos : stringEnd(text, pos-1)-1])
		}
	}
}

func (v val) string() string { return string(v.bytes()) }

func (v val) equals(s string) bool { return string(v.bytes()) == s }

// unescapeJSON resolves the escapes of a string that the scanner has accepted.
func unescapeJSON(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := parseHex4(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, parseHex4(s[i+3:]))
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

// parseHex4 parses four hexadecimal digits. It returns -1 if they are invalid.
func parseHex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
