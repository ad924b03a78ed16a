package scan

import (
	"context"
	"slices"

	"koine/channels"
	"koine/kg"
)

// Rules are the operator's rules on messages (celrules.File).
type Rules interface {
	JudgesMessages() (all, byScan bool)
	Scan(ctx context.Context, m *channels.ScannedMessage) (channels.Ruling, error)
}

// Scanner is a channels.Scanner of rules and a hook.
type Scanner struct {
	rules Rules // nil for none
	hook  *Hook // nil for none
}

// New returns a scanner. Both arguments may be nil.
func New(rules Rules, hook *Hook) *Scanner { return &Scanner{rules: rules, hook: hook} }

// Needed reports whether a message has to be scanned. Without a hook and without rules
// that hold or tag, only the verdict for a repeated key needs it.
func (s *Scanner) Needed(keyed bool) bool {
	if s.hook != nil {
		return true
	}
	if s.rules == nil {
		return false
	}
	all, byScan := s.rules.JudgesMessages()
	return byScan || all && keyed
}

// Scan judges a message by the rules, and then by the hook. Tags of both count.
func (s *Scanner) Scan(ctx context.Context, m *channels.ScannedMessage) (out channels.Ruling, err error) {
	if s.rules != nil {
		if out, err = s.rules.Scan(ctx, m); err != nil || out.Outcome != kg.Accepted {
			return out, err
		}
	}
	if s.hook == nil {
		return out, nil
	}
	next, err := s.hook.judge(ctx, m)
	if err != nil {
		return channels.Ruling{}, err
	}
	next.Tags = append(next.Tags, out.Tags...)
	slices.Sort(next.Tags)
	next.Tags = slices.Compact(next.Tags)
	next.Tags = next.Tags[:min(len(next.Tags), 2*channels.MaxAddedTags)]
	return next, nil
}
