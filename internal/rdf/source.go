package rdf

import (
	"errors"
	"io"
	"unicode/utf8"
)

const sourceBytes = 64 << 10

// source reads a text byte by byte with a small lookahead and counts its lines.
type source struct {
	r        io.Reader
	buf      []byte
	pos, end int
	line     int   // line of the next byte, from 1
	offset   int64 // offset of the next byte
	err      error // why input ended; io.EOF at the end
}

func newSource(r io.Reader) *source {
	return &source{r: r, buf: make([]byte, sourceBytes), line: 1}
}

// fillBuffer makes n bytes available, at most maxAhead, and reports whether there are as many.
func (s *source) fillBuffer(n int) bool {
	for s.end-s.pos < n && s.err == nil {
		if s.pos > 0 {
			s.end = copy(s.buf, s.buf[s.pos:s.end])
			s.pos = 0
		}
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		s.err = err
	}
	return s.end-s.pos >= n
}

// maxAhead is the largest lookahead.
const maxAhead = 1 << 10

// peek returns the next byte, 0 at the end.
func (s *source) peek() byte {
	if s.pos < s.end || s.fillBuffer(1) {
		return s.buf[s.pos]
	}
	return 0
}

// peekAt returns the byte n places ahead, 0 if there is none.
func (s *source) peekAt(n int) byte {
	if n < maxAhead && s.fillBuffer(n+1) {
		return s.buf[s.pos+n]
	}
	return 0
}

// rune returns the next character and its length, which is 0 at the end.
func (s *source) rune() (rune, int) {
	if c := s.peek(); c > 0 && c < utf8.RuneSelf {
		return rune(c), 1
	}
	s.fillBuffer(utf8.UTFMax)
	if s.pos == s.end {
		return 0, 0
	}
	return utf8.DecodeRune(s.buf[s.pos:s.end])
}

// skip skips n bytes that are available.
func (s *source) skip(n int) {
	for _, c := range s.buf[s.pos : s.pos+n] {
		if c == '\n' {
			s.line++
		}
	}
	s.pos += n
	s.offset += int64(n)
}

func (s *source) isAtEnd() bool { return s.pos == s.end && !s.fillBuffer(1) }

// readErr returns the error that ended the text early, if any.
func (s *source) readErr() error {
	if s.err == nil || errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

func (s *source) hasPrefix(text string) bool {
	return s.fillBuffer(len(text)) && string(s.buf[s.pos:s.pos+len(text)]) == text
}

// skipSpace skips white space and comments.
func (s *source) skipSpace() {
	for {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.skip(1)
		case '#':
			for c := s.peek(); c != '\n' && !s.isAtEnd(); c = s.peek() {
				s.skip(1)
			}
		default:
			return
		}
	}
}

func (s *source) errUnexpected(wanted string) error {
	if s.isAtEnd() {
		return invalid("unexpected end of the document, expected %s", wanted)
	}
	n := 0
	for n < 20 && s.peekAt(n) != 0 && s.peekAt(n) != '\n' {
		n++
	}
	return invalid("found %s, expected %s", excerpt(s.buf[s.pos:s.pos+n]), wanted)
}
