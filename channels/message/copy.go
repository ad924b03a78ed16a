package message

import (
	"encoding/json"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// WriteCopy writes the audit copy of the message with the salt of its hash. It returns the
// number of statements.
func (m *Message) WriteCopy(tx *kg.Tx, salt string) (n int, err error) {
	list := []vocab.Statement{vocab.NewStatement(vocab.Parts, vocab.JSON(joinParts(m.Parts))), vocab.NewStatement(vocab.Salt, kg.String(salt))}
	if m.Metadata != nil {
		list = append(list, vocab.NewStatement(vocab.Data, vocab.JSON(m.Metadata)))
	}
	graph := m.Channel.CopyGraph(m.ContentGraph())
	for _, st := range list {
		q := kg.Quad{Subject: m.ID.Entity(), Predicate: st.Property, Object: st.Object, Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// ReadCopy returns the audit copy of a message, or nil if there is none. may decides which
// audit graphs the reader may read.
func ReadCopy(match systemgraph.Matcher, id ID, may func(graph kg.Term) bool) (*scope.Copy, error) {
	var m Message
	salt := ""
	for st, err := range match(kg.Pattern{Subject: id.Entity()}) {
		if err != nil {
			return nil, err
		}
		if _, part := channel.OfGraph(st.Graph); part != channel.CopyPart {
			continue
		}
		switch {
		case !may(st.Graph):
		case st.Predicate == vocab.Salt:
			salt = st.Object.Value()
		default:
			if err := m.ApplyStatement(st.Predicate, st.Object); err != nil {
				return nil, err
			}
		}
	}
	if m.Parts == nil {
		return nil, nil
	}
	return NewCopy(m.Parts, m.Metadata, salt), nil
}

// NewCopy returns an audit copy with this content.
func NewCopy(parts []json.RawMessage, metadata json.RawMessage, salt string) *scope.Copy {
	c := &scope.Copy{Parts: parts, Metadata: metadata, Salt: salt}
	var traced struct {
		TraceID any `json:"trace_id"`
	}
	if metadata != nil && json.Unmarshal(metadata, &traced) == nil {
		c.TraceID, _ = traced.TraceID.(string)
	}
	return c
}
