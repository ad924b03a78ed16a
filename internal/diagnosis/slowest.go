package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
)

// Bounds of the slowest operations.
const (
	window      = time.Hour
	perMinute   = 20 // kept of each minute
	shown       = 50
	maxDocument = 2 << 10 // bytes of a document that are shown
)

// Slow is an operation with its time. It has no value that a caller gave.
type Slow struct {
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took"` // nanoseconds
	Kind     string        `json:"kind"` // of GraphQL, or the method of JSON-RPC
	Document string        `json:"document,omitempty"`
	Failed   bool          `json:"failed,omitempty"`
	Read     int64         `json:"statementsRead,omitempty"`
	Plan     []string      `json:"plan,omitempty"`
}

// slowest keeps the slowest operations of each minute of the last hour.
type slowest struct {
	mu      sync.Mutex
	minutes [window / time.Minute]minute
}

type minute struct {
	number int64 // since 1970
	list   []Slow
}

// at returns the minute of a time, emptied if it held an earlier one. mu is held.
func (s *slowest) at(t time.Time) *minute {
	number := t.Unix() / 60
	m := &s.minutes[number%int64(len(s.minutes))]
	if m.number != number {
		*m = minute{number: number}
	}
	return m
}

// wants reports whether an operation that ends now would be kept.
func (s *slowest) wants(now time.Time, took time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.at(now)
	return len(m.list) < perMinute || took > m.list[len(m.list)-1].Took
}

// keepOperation keeps an operation that ends now if it is slow enough.
func (s *slowest) keepOperation(now time.Time, o Slow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.at(now)
	at, _ := slices.BinarySearchFunc(m.list, o, slowerFirst)
	m.list = slices.Insert(m.list, at, o)
	if len(m.list) > perMinute {
		m.list = m.list[:perMinute]
	}
}

// listSlowest returns the slowest operations of the last hour, the slowest first.
func (s *slowest) listSlowest(now time.Time) []Slow {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Slow{}
	for i := range s.minutes {
		if m := &s.minutes[i]; m.number > now.Add(-window).Unix()/60 {
			all = append(all, m.list...)
		}
	}
	slices.SortStableFunc(all, slowerFirst)
	return all[:min(len(all), shown)]
}

func slowerFirst(a, b Slow) int { return cmp.Compare(b.Took, a.Took) }

// hidden stands for a value of a caller.
const hidden = "…"

// shapeOf returns a GraphQL document without its values: texts, which may be patterns and
// credentials, and numbers. Names of fields, types, variables and enumerations stay.
func shapeOf(document string) string {
	tokens := lexer.New(&ast.Source{Input: document[:min(len(document), 4*maxDocument)]})
	var b strings.Builder
	for b.Len() < maxDocument {
		t, err := tokens.ReadToken()
		if err != nil || t.Kind == lexer.Invalid { // also a text that the bound cut
			b.WriteString(" " + hidden)
			break
		}
		if t.Kind == lexer.EOF {
			break
		}
		if b.Len() > 0 && !joins(t.Kind) {
			b.WriteByte(' ')
		}
		switch t.Kind {
		case lexer.Comment:
		case lexer.String, lexer.BlockString:
			b.WriteString(`"` + hidden + `"`)
		case lexer.Int, lexer.Float:
			b.WriteString(hidden)
		case lexer.Name:
			b.WriteString(t.Value)
		default:
			b.WriteString(t.Kind.String())
		}
	}
	return b.String()
}

// joins reports whether a token stands without a space behind the one before.
func joins(k lexer.Type) bool {
	return k == lexer.Colon || k == lexer.ParenR || k == lexer.BracketR || k == lexer.Bang || k == lexer.ParenL
}
