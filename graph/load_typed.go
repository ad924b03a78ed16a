package graph

import (
	"context"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/tasks"
	"koine/kg"
)

// appendTyped writes the channel, message or task of an entity. It writes null for
// any other entity and for one that the caller may not see.
func (l *loader) appendTyped(entity kg.Term, f *entityField, b []byte) ([]byte, error) {
	ctx := context.WithValue(l.ctx, runKey{}, l.run)
	if f.kind == entityAsTask {
		t, err := taskIfAny(ctx, tasks.IDOf(entity))
		if t == nil || err != nil {
			return append(b, "null"...), err
		}
		return l.appendTask(b, f.inside, t)
	}
	if f.kind == entityAsMessage {
		m, err := messageIfAny(ctx, message.IDOf(entity))
		if m == nil || err != nil {
			return append(b, "null"...), err
		}
		return l.appendMessage(b, f.inside, m)
	}
	id := channel.IDOf(entity)
	if id == "" {
		return append(b, "null"...), nil
	}
	c, err := unlessGone(readChannel(ctx, string(id)))
	if c == nil || err != nil {
		return append(b, "null"...), err
	}
	return l.appendChannel(b, f.inside, c)
}
