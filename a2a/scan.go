package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"koine/internal/plainjson"
	"koine/kg"
)

// The errors of an unusable body. Input on which JSON readers disagree is refused and
// not guessed at (RFC 8259, sections 4, 8.2 and 9).
var (
	errNotJSON   = errors.New("the body is not JSON")
	errNotUTF8   = errors.New("the body is not UTF-8")
	errSurrogate = errors.New("a string has half of a surrogate pair")
	errTooDeep   = errors.New("the body is nested too deeply")
	errRepeated  = errors.New("an object has the same member twice")
)

// scanBody checks the whole body once, so that later readers see only JSON with unique
// member names and Unicode text, at most depth levels deep.
func scanBody(body []byte, depth int) error {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	if !json.Valid(body) {
		return whereNotJSON(body)
	}
	s := scanner{body: body, depth: depth}
	for i := 0; i < len(body); i++ {
		if body[i] == '"' {
			end := stringEnd(body, i)
			if err := s.scanText(body[i:end]); err != nil {
				return err
			}
			i = end - 1
			continue
		}
		if err := s.scanSign(body[i]); err != nil {
			return err
		}
	}
	return nil
}

func whereNotJSON(body []byte) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, new(json.RawMessage)); errors.As(err, &syntax) {
		return fmt.Errorf("%w: %v, at byte %d", errNotJSON, syntax, syntax.Offset)
	}
	return errNotJSON
}

type scanner struct {
	body   []byte
	depth  int
	levels []level // levels above open are kept for reuse
	open   int
	isName bool // the next string is a member's name
}

// level is an open array or object.
type level struct {
	object bool
	names  []string
	many   map[string]struct{} // the names, when too many for a linear search
}

const fewNames = 16

func (s *scanner) scanSign(c byte) error {
	switch c {
	case '{', '[':
		if s.open == s.depth {
			return fmt.Errorf("%w: more than %d levels", errTooDeep, s.depth)
		}
		if s.open == len(s.levels) {
			s.levels = append(s.levels, level{})
		}
		top := &s.levels[s.open]
		top.object, top.names, top.many = c == '{', top.names[:0], nil
		s.open++
		s.isName = top.object
	case '}', ']':
		s.open--
	case ',':
		s.isName = s.levels[s.open-1].object
	case ':':
		s.isName = false
	}
	return nil
}

func (s *scanner) scanText(quoted []byte) error {
	if bytes.IndexByte(quoted, '\\') >= 0 && !surrogatesPaired(quoted) {
		return errSurrogate
	}
	if !s.isName {
		return nil
	}
	name := decodeString(quoted)
	if !s.levels[s.open-1].addName(name) {
		return fmt.Errorf("%w: %q", errRepeated, clipText(name))
	}
	return nil
}

func (l *level) addName(name string) bool {
	if l.many == nil && len(l.names) < fewNames {
		if slices.Contains(l.names, name) {
			return false
		}
		l.names = append(l.names, name)
		return true
	}
	if l.many == nil {
		l.many = make(map[string]struct{}, 4*fewNames)
		for _, n := range l.names {
			l.many[n] = struct{}{}
		}
	}
	if _, ok := l.many[name]; ok {
		return false
	}
	l.many[name] = struct{}{}
	return true
}

// stringEnd returns the index after the string that starts at i.
func stringEnd(body []byte, i int) int {
	for i++; body[i] != '"'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func surrogatesPaired(quoted []byte) bool {
	high := false
	for i := 1; i < len(quoted)-1; i++ {
		if quoted[i] != '\\' {
			if high {
				return false
			}
			continue
		}
		i++
		if quoted[i] != 'u' {
			if high {
				return false
			}
			continue
		}
		unit, err := strconv.ParseUint(string(quoted[i+1:i+5]), 16, 16)
		if err != nil {
			return false
		}
		i += 4
		isHigh, isLow := unit >= 0xd800 && unit <= 0xdbff, unit >= 0xdc00 && unit <= 0xdfff
		if high != isLow {
			return false
		}
		high = isHigh
	}
	return !high
}

// decodeString decodes a scanned JSON string.
func decodeString(quoted []byte) string {
	return plainjson.Unquote(quoted)
}

// clipText limits the length of client text in an answer.
func clipText(s string) string { return kg.Excerpt(s, 120) }
