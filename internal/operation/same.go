package operation

import (
	"bytes"
	"slices"

	"koine/kg"
)

// Bounds of the commits whose events are kept for other streams (IsShared).
const (
	MaxSharedChanges = 64
	MaxSharedBytes   = 128 << 10
)

// IsShared reports whether what a stream makes of an event may be kept for other streams that show
// the same: the event is a single change of a small commit.
func IsShared(e *Event) bool {
	if len(e.Changes) != 1 || e.Snapshot || e.Changes[0].Replaced != nil || len(e.Changes[0].Commit.Changes) > MaxSharedChanges {
		return false
	}
	bytes := 0
	for i := range e.Changes[0].Commit.Changes {
		c := &e.Changes[0].Commit.Changes[i]
		bytes += len(c.Quad.Subject.Value()) + len(c.Quad.Object.Value()) + c.Assertion.ContentBytes()
		for k := range c.Before {
			bytes += c.Before[k].ContentBytes()
		}
	}
	return bytes <= MaxSharedBytes
}

// SameChange reports whether two readers see the same of a change. Their commits are the same
// object, unless something of it is hidden from one of them. The replacement of a graph is not
// compared.
func SameChange(a, b *kg.Event) bool {
	return a.Commit == b.Commit && a.Position == b.Position && a.Op == b.Op && a.StatementRemains == b.StatementRemains && a.Types == b.Types &&
		a.Replaced == nil && b.Replaced == nil && sameStatement(&a.Statement, &b.Statement) && sameStatements(a.Previous, b.Previous)
}

func sameStatements(a, b []kg.Statement) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameStatement(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameStatement(a, b *kg.Statement) bool {
	if len(a.Assertions) != len(b.Assertions) || a.Quad != b.Quad {
		return false
	}
	// Readers from whom nothing is hidden are given the same objects (kg.Watcher).
	return len(a.Assertions) == 0 || &a.Assertions[0] == &b.Assertions[0] || slices.EqualFunc(a.Assertions, b.Assertions, sameAssertion)
}

func sameAssertion(a, b kg.Assertion) bool {
	return a.Source == b.Source && a.Certainty == b.Certainty && a.HasCertainty == b.HasCertainty && a.Time.Equal(b.Time) &&
		a.Validity == b.Validity && bytes.Equal(a.Provenance, b.Provenance) && a.Embedding == b.Embedding && a.Revision == b.Revision
}
