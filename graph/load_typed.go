package graph

import (
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/tasks"
	"koine/kg"
)

// typedFragment writes the channel, message or task of an entity. It is null for
// any other entity and for one that the caller may not see.
func (l *loader) typedFragment(entity kg.Term, f *entityField) (fragment, error) {
	return l.render(func(w *writer) error {
		switch f.kind {
		case entityAsTask:
			t, err := taskIfAny(w.Ctx, tasks.IDOf(entity))
			return writeOptional(w, f.typed, taskObject, t, err)
		case entityAsMessage:
			m, err := messageIfAny(w.Ctx, message.IDOf(entity))
			return writeOptional(w, f.typed, messageObject, m, err)
		}
		id := channel.IDOf(entity)
		if id == "" {
			return w.Nil(f.typed)
		}
		c, err := unlessGone(readChannel(w.Ctx, string(id)))
		return writeOptional(w, f.typed, channelObject, c, err)
	})
}
