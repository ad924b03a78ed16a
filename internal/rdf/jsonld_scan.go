package rdf

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads JSON from a stream. Input after the mark stays in memory, so that a
// value can be put on a tape or read a second time.
type jsonScanner struct {
	ctx      context.Context
	in       io.Reader
	buf      []byte
	pos, end int          // buf[pos:end] is unread input
	mark     int          // start of the retained input; -1 for none
	limit    int          // limit of the retained input
	hold     func() error // called before more than holdFrom is retained
	release  func()       // reverts hold
	held     bool
	line     int // line of buf[counted]
	counted  int
	err      error // reason why input ended; io.EOF at the end
	tape     tape
	seed     maphash.Seed
	depth    int    // nesting in the document
	steps    uint64 // bytes received: a measure of work
}

// errWindow reports a value that is longer than the limit.
var errWindow = errors.New("longer than what may be held")

// holdFrom is the amount of input that may be retained without calling hold.
const holdFrom = 1 << 20

func newJSONScanner(ctx context.Context, in io.Reader, limit int) *jsonScanner {
	return &jsonScanner{ctx: ctx, in: in, buf: make([]byte, sourceBytes), mark: -1, limit: limit, line: 1, seed: maphash.MakeSeed()}
}

// setMark retains the input from here on.
func (s *jsonScanner) setMark() { s.mark = s.pos }

func (s *jsonScanner) hasMore() bool { return s.pos < s.end || s.fillBuffer() }

// fillBuffer reads more input.
func (s *jsonScanner) fillBuffer() bool {
	if s.err != nil {
		return false
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return false
	}
	if s.err = s.growBuffer(); s.err != nil {
		return false
	}
	n, err := s.in.Read(s.buf[s.end:])
	s.end += n
	s.steps += uint64(n)
	if err != nil && !(n > 0 && errors.Is(err, io.EOF)) {
		s.err = err
	}
	if n == 0 && s.err == nil {
		return s.fillBuffer()
	}
	return n > 0
}

func (s *jsonScanner) growBuffer() error {
	from := s.pos
	if s.mark >= 0 {
		from = s.mark
	}
	switch kept := s.end - from; {
	case s.mark >= 0 && s.pos-s.mark >= s.limit:
		return errWindow
	case kept >= holdFrom && !s.held && s.hold != nil:
		if err := s.hold(); err != nil {
			return err
		}
		s.held = true
	case kept < holdFrom && s.held:
		s.release()
		s.held = false
	}
	oversized := len(s.buf) > holdFrom && s.end-from <= sourceBytes/2
	if s.end < len(s.buf) && !oversized {
		return nil
	}
	s.countLines(from)
	to := s.buf
	if oversized {
		to = make([]byte, sourceBytes)
	} else if from < len(s.buf)/2 {
		to = make([]byte, 2*len(s.buf))
	}
	s.end = copy(to, s.buf[from:s.end])
	s.buf = to
	s.pos -= from
	s.counted -= from
	if s.mark >= 0 {
		s.mark -= from
	}
	return nil
}

// countLines returns the line of a position, counting forward or backward.
func (s *jsonScanner) countLines(pos int) int {
	if pos >= s.counted {
		s.line += bytes.Count(s.buf[s.counted:pos], []byte{'\n'})
	} else {
		s.line -= bytes.Count(s.buf[pos:s.counted], []byte{'\n'})
	}
	s.counted = pos
	return s.line
}

// rewind moves back to the mark. The retained input stays until it is read again.
func (s *jsonScanner) rewind() {
	s.pos, s.mark = s.mark, -1
	if errors.Is(s.err, errWindow) {
		s.err = nil
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.hasMore() {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// errUnexpected returns the error for invalid input.
func (s *jsonScanner) errUnexpected(wanted string) error {
	if !s.hasMore() {
		if errors.Is(s.err, io.EOF) {
			return invalid("not JSON: unexpected end of the document, expected %s", wanted)
		}
		return s.err
	}
	return invalid("not JSON: found %s, expected %s", excerpt(s.buf[s.pos:min(s.end, s.pos+12)]), wanted)
}

// expectByte consumes one character.
func (s *jsonScanner) expectByte(c byte) error {
	if s.peek() != c {
		return s.errUnexpected("'" + string(rune(c)) + "'")
	}
	s.pos++
	return nil
}

// readValue reads a value to a new tape. The tape is valid until the next call.
func (s *jsonScanner) readValue() (val, error) {
	s.peek()
	s.setMark()
	s.tape.toks.reset()
	err := s.scanValue(s.depth)
	return s.tapedValue(err)
}

func (s *jsonScanner) tapedValue(err error) (val, error) {
	if err == nil && s.pos-s.mark > s.limit {
		err = errWindow
	}
	if err != nil {
		return val{}, err
	}
	s.tape.text = s.buf[s.mark:s.pos]
	s.countLines(s.mark)
	return val{&s.tape, 0}, nil
}

// readObject reads an object to a new tape. It stops before the value of the first key
// for which stop returns true, and returns the entries before the key and the key.
func (s *jsonScanner) readObject(keys *keySet, stop func(head val, key string) (bool, error)) (v val, key string, stopped bool, err error) {
	s.setMark()
	s.tape.toks.reset()
	start, err := s.openBracket('{')
	if err != nil {
		return v, "", false, err
	}
	for first := true; ; first = false {
		more, err := s.readSeparator('}', first)
		if err != nil {
			return v, "", false, err
		}
		s.tape.toks.at(start).next = s.tape.toks.n
		if !more {
			break
		}
		end := s.tape.toks.n
		at, err := s.readKey(keys)
		if err != nil {
			return v, "", false, err
		}
		s.tape.text = s.buf[s.mark:s.pos]
		key = val{&s.tape, at}.string()
		if stopped, err = stop(val{&s.tape, 0}, key); stopped || err != nil {
			s.tape.toks.n = end
			return val{&s.tape, 0}, key, stopped, err
		}
		if err := s.scanValue(s.depth + 1); err != nil {
			return v, "", false, err
		}
	}
	v, err = s.tapedValue(nil)
	return v, "", false, err
}

// nextKey reads a key and the colon after it without retaining them.
func (s *jsonScanner) nextKey(keys *keySet) (string, error) {
	s.peek()
	s.setMark()
	s.tape.toks.reset()
	at, err := s.readKey(keys)
	if err != nil {
		return "", err
	}
	s.tape.text = s.buf[s.mark:s.pos]
	return val{&s.tape, at}.string(), nil
}

func (s *jsonScanner) addToken() uint32 {
	at := s.tape.toks.add(tok{pos: uint32(s.pos - s.mark)})
	s.tape.toks.at(at).next = at + 1
	return at
}

func (s *jsonScanner) openBracket(c byte) (uint32, error) {
	if s.peek() != c {
		return 0, s.errUnexpected("'" + string(rune(c)) + "'")
	}
	at := s.addToken()
	s.pos++
	return at, nil
}

// readSeparator moves to the next entry or item, or past the closing bracket.
func (s *jsonScanner) readSeparator(closing byte, first bool) (more bool, err error) {
	c := s.peek()
	switch {
	case c == closing:
		s.pos++
		return false, nil
	case first && c != 0:
		return true, nil
	case c == ',':
		s.pos++
		return true, nil
	}
	return false, s.errUnexpected("',' or '" + string(rune(closing)) + "'")
}

// readKey reads the key of an entry and the colon after it.
func (s *jsonScanner) readKey(seen *keySet) (uint32, error) {
	if s.peek() != '"' {
		return 0, s.errUnexpected("the key of an entry")
	}
	at := s.addToken()
	if err := s.scanString(); err != nil {
		return 0, err
	}
	s.tape.text = s.buf[s.mark:s.pos]
	name := val{&s.tape, at}.bytes()
	if !seen.add(name) {
		return 0, invalid("an object has the key %s twice", excerpt(name))
	}
	return at, s.expectByte(':')
}

func (s *jsonScanner) scanValue(depth int) error {
	if depth > MaxDepth {
		return tooLong("the JSON is nested more than %d deep", MaxDepth)
	}
	switch c := s.peek(); c {
	case '{':
		start := s.addToken()
		s.pos++
		keys := keySet{seed: s.seed}
		for first := true; ; first = false {
			more, err := s.readSeparator('}', first)
			if err != nil || !more {
				s.tape.toks.at(start).next = s.tape.toks.n
				return err
			}
			if _, err := s.readKey(&keys); err != nil {
				return err
			}
			if err := s.scanValue(depth + 1); err != nil {
				return err
			}
		}
	case '[':
		start := s.addToken()
		s.pos++
		for first := true; ; first = false {
			more, err := s.readSeparator(']', first)
			if err != nil || !more {
				s.tape.toks.at(start).next = s.tape.toks.n
				return err
			}
			if err := s.scanValue(depth + 1); err != nil {
				return err
			}
		}
	case '"':
		s.addToken()
		return s.scanString()
	case 't':
		return s.scanWord("true")
	case 'f':
		return s.scanWord("false")
	case 'n':
		return s.scanWord("null")
	}
	return s.scanNumber()
}

func (s *jsonScanner) scanWord(w string) error {
	s.addToken()
	for i := range len(w) {
		if !s.hasMore() || s.buf[s.pos] != w[i] {
			return s.errUnexpected(w)
		}
		s.pos++
	}
	return nil
}

// scanNumber parses the grammar of RFC 8259, section 6.
func (s *jsonScanner) scanNumber() error {
	s.addToken()
	next := func(c ...byte) bool {
		if s.hasMore() && bytes.IndexByte(c, s.buf[s.pos]) >= 0 {
			s.pos++
			return true
		}
		return false
	}
	digits := func() bool {
		any := false
		for s.hasMore() && isDigit(s.buf[s.pos]) {
			s.pos++
			any = true
		}
		return any
	}
	next('-')
	if !next('0') && !digits() {
		return s.errUnexpected("a value")
	}
	if next('.') && !digits() {
		return s.errUnexpected("a digit")
	}
	if next('e', 'E') {
		next('+', '-')
		if !digits() {
			return s.errUnexpected("a digit")
		}
	}
	return nil
}

// scanString reads a string. It rejects invalid text: bytes that are not UTF-8, and
// unpaired surrogates.
func (s *jsonScanner) scanString() error {
	s.pos++
	start := s.pos - s.mark
	ascii := true
	for s.hasMore() {
		c := s.buf[s.pos]
		s.pos++
		switch {
		case c == '"':
			if !ascii && !utf8.Valid(s.buf[s.mark+start:s.pos]) {
				return invalid("a string is not valid UTF-8")
			}
			return nil
		case c == '\\':
			if err := s.scanEscape(); err != nil {
				return err
			}
		case c < ' ':
			s.pos--
			return invalid("a string has the unescaped control character U+%04X", c)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return s.errUnexpected("the end of a string")
}

func (s *jsonScanner) scanEscape() error {
	if !s.hasMore() {
		return s.errUnexpected("an escape")
	}
	c := s.buf[s.pos]
	if bytes.IndexByte([]byte(`"\/bfnrtu`), c) < 0 {
		return s.errUnexpected("an escape")
	}
	s.pos++
	if c != 'u' {
		return nil
	}
	r, err := s.scanHex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return err
	}
	if s.hasMore() && s.buf[s.pos] == '\\' {
		s.pos++
		if s.hasMore() && s.buf[s.pos] == 'u' {
			s.pos++
			second, err := s.scanHex4()
			if err != nil || utf16.DecodeRune(r, second) != utf8.RuneError {
				return err
			}
		}
	}
	return invalid("a string has an unpaired surrogate")
}

func (s *jsonScanner) scanHex4() (rune, error) {
	var digits [4]byte
	for i := range digits {
		if !s.hasMore() {
			return 0, s.errUnexpected("a hexadecimal digit")
		}
		digits[i] = s.buf[s.pos]
		s.pos++
	}
	r := parseHex4(digits[:])
	if r < 0 {
		return 0, invalid("\\u%s is not an escape", digits)
	}
	return r, nil
}

// checkEnd returns an error unless only white space follows.
func (s *jsonScanner) checkEnd() error {
	if s.peek() != 0 || s.hasMore() {
		return invalid("unexpected text behind the JSON document")
	}
	if !errors.Is(s.err, io.EOF) {
		return s.err
	}
	return nil
}

// keySet detects duplicate keys of an object. It stores 64-bit hashes with a random seed
// instead of the keys.
type keySet struct {
	seed maphash.Seed
	few  []uint64
	many map[uint64]struct{}
}

const fewKeys = 16

func (k *keySet) add(key []byte) bool {
	h := maphash.Bytes(k.seed, key)
	if k.many != nil {
		n := len(k.many)
		k.many[h] = struct{}{}
		return len(k.many) > n
	}
	for _, other := range k.few {
		if other == h {
			return false
		}
	}
	k.few = append(k.few, h)
	if len(k.few) > fewKeys {
		k.many = map[uint64]struct{}{}
		for _, h := range k.few {
			k.many[h] = struct{}{}
		}
	}
	return true
}

func (k *keySet) len() int { return max(len(k.few), len(k.many)) }
