package base

import (
	"time"

	"koine/internal/tasks"
)

// Timestamp is a time as A2A writes it.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Said is the message of a status. Where the handler gave a reason for a failure and
// said nothing, it is the reason.
func Said(s *tasks.Status, failure *tasks.Failure, of About) *tasks.Message {
	if s.Message != nil || failure == nil {
		return s.Message
	}
	text := failure.Message
	if text == "" {
		text = failure.Code
	}
	return &tasks.Message{ID: string(of.Task) + "-failure", Role: tasks.Agent, Parts: []tasks.Part{tasks.TextPart(text)}, Time: s.Time}
}
