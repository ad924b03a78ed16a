package policy

import "koine/kg"

// Mode is what everybody may do with a graph that has no policy.
type Mode string

// The modes.
const (
	Private   Mode = "private"    // nothing
	ReadOnly  Mode = "read-only"  // read
	ReadWrite Mode = "read-write" // read and write
)

// Options of the policies. The zero value works.
type Options struct {
	// DefaultGraph is what everybody may do with the default graph while it has no
	// policy; "" means ReadWrite.
	DefaultGraph Mode
	// NewGraphs is what everybody may do with a graph that has no policy and does
	// not belong to an agent by its name, and what a graph that is created without
	// a word about it gets; "" means Private.
	NewGraphs Mode
	// MaxGraphs bounds how many graphs one principal may create, deleted ones
	// included: what is left of them is kept for good. 0 is no bound.
	MaxGraphs int
}

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Private, ReadOnly, ReadWrite:
		return m, nil
	}
	return "", kg.Errorf(kg.CodeInvalid, "%.40q is not one of %s, %s and %s", text, ReadWrite, ReadOnly, Private)
}

// maxRight is the greatest right that the mode gives everybody.
func (m Mode) maxRight() kg.Right {
	switch m {
	case ReadOnly:
		return kg.Read
	case ReadWrite:
		return kg.Write
	}
	return 0
}

// defaultPolicy is the mode as a policy without owners.
func (m Mode) defaultPolicy(graph kg.Term) Policy {
	p := Policy{Graph: graph, Public: m != Private}
	if m == ReadWrite {
		p.Writers = []Grantee{Everybody}
	}
	return p
}

func (o Options) withDefaults() Options {
	if o.DefaultGraph == "" {
		o.DefaultGraph = ReadWrite
	}
	if o.NewGraphs == "" {
		o.NewGraphs = Private
	}
	return o
}
