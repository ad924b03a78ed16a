package policy

import (
	"cmp"

	"koine/kg"
)

// Mode is the access of everyone to graphs without a policy.
type Mode string

// Modes.
const (
	Private   Mode = "private"    // nothing
	ReadOnly  Mode = "read-only"  // read
	ReadWrite Mode = "read-write" // read and write
)

// Options configures Policies. The zero value is valid.
type Options struct {
	// DefaultGraph is the access to the default graph while it has no policy; "" means
	// ReadWrite.
	DefaultGraph Mode
	// NewGraphs is the access to graphs without a policy that belong to no agent by
	// name, and the default policy of created graphs; "" means Private.
	NewGraphs Mode
	// MaxGraphs is the maximum number of graphs that one principal may create,
	// including deleted ones, because their tombstones are kept permanently. 0 means no
	// limit.
	MaxGraphs int
}

// ParseMode parses a mode.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Private, ReadOnly, ReadWrite:
		return m, nil
	}
	return "", kg.Errorf(kg.CodeInvalid, "%.40q is not one of %s, %s and %s", text, ReadWrite, ReadOnly, Private)
}

// maxRight returns the highest right that the mode grants to everyone.
func (m Mode) maxRight() kg.Right {
	switch m {
	case ReadOnly:
		return kg.Read
	case ReadWrite:
		return kg.Write
	}
	return 0
}

// defaultPolicy returns the mode as a policy without owners.
func (m Mode) defaultPolicy(graph kg.Term) Policy {
	p := Policy{Graph: graph, Public: m != Private}
	if m == ReadWrite {
		p.Writers = []Grantee{Everybody}
	}
	return p
}

func (o Options) withDefaults() Options {
	o.DefaultGraph, o.NewGraphs = cmp.Or(o.DefaultGraph, ReadWrite), cmp.Or(o.NewGraphs, Private)
	return o
}
