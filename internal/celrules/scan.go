package celrules

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"koine/channels"
	"koine/channels/message"
	"koine/kg"
)

// setTags checks and sets the tags of a rule.
func (r *Rule) setTags(tags []string) error {
	switch {
	case r.Effect != Tag && len(tags) > 0:
		return errors.New("tags requires effect tag")
	case r.Effect == Tag && len(tags) == 0:
		return errors.New("effect tag requires at least one tag")
	case len(tags) > channels.MaxAddedTags:
		return fmt.Errorf("a rule may have at most %d tags", channels.MaxAddedTags)
	}
	checked := message.Envelope{Tags: tags}
	if err := checked.Normalize(); err != nil {
		return err
	}
	r.Tags = checked.Tags
	return nil
}

// JudgesMessages reports whether the set has rules on messages. Only some of them, those
// that hold or tag, need Scan; Verify evaluates the others.
func (s *Set) JudgesMessages() (all, byScan bool) {
	return len(s.rules[OnMessage])+len(s.scans) > 0, len(s.scans) > 0
}

// Scan judges a message before it is published, by the rules that hold or tag
// (channels.Scanner). A rule that cannot be evaluated holds: one that tags adds its tags,
// one that holds refuses the message.
func (s *Set) Scan(ctx context.Context, m *channels.ScannedMessage) (out channels.Ruling, err error) {
	if len(s.scans) == 0 {
		return out, nil
	}
	b := s.newBudget(ctx)
	defer b.cancel()
	if err := b.chargeRead(messageSize(m.Message)); err != nil {
		return out, err
	}
	var sum verdict
	vars := sharedVars(m.Meta.Principal, m.Meta.Actor, Call{Method: m.Meta.Method, TaskID: m.Meta.TaskID, SessionID: m.Meta.SessionID, Metadata: m.Meta.Metadata})
	vars["justification"] = m.Meta.Justification
	vars["message"] = messageValue(&m.JudgedMessage, len(m.Patches))
	for _, r := range s.scans {
		holds, failed, err := b.evaluate(r, vars)
		if err != nil {
			return out, err
		}
		switch {
		case !holds:
		case r.Effect == Tag:
			out.Tags = append(out.Tags, r.Tags...)
		default:
			sum.addResult(r, "the message", failed)
		}
	}
	slices.Sort(out.Tags)
	out.Tags = slices.Compact(out.Tags)
	if len(out.Tags) > channels.MaxAddedTags {
		return channels.Ruling{}, kg.Errorf(kg.CodeJudgeLimit, "the operator's rules add %d tags to the message, more than the limit of %d", len(out.Tags), channels.MaxAddedTags)
	}
	out.Verdict = sum.Verdict
	return out, nil
}
