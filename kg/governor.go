package kg

import (
	"context"

	"koine/kg/base"
)

// Governor decides about reads and updates, and is told of them. The zero Governor allows and
// accepts everything and is told of nothing; the parts of the server set its fields.
// They are called from many goroutines, and must be fast and safe for concurrent use unless
// their comment says otherwise.
type Governor struct {
	Access   Access   // AllowAll when nil
	Distrust Distrust // everybody is trusted when nil
	Verifier Verifier // accepts everything when nil
	Holder   Holder   // stores held updates; nil: the caller is told, and nothing is stored

	// RulesVersion returns a number that grows whenever something outside the graph changes
	// that the Verifier or a Hider depends on. It grows after the change: every later
	// judgement sees the change. A verdict made under an older number is made again before the
	// update is committed or held. nil: nothing outside the graph matters.
	RulesVersion func() uint64

	// OnSystemChange is called with each commit that changes one of koine's own graphs other
	// than a journal (JournalGraphPrefix). The commit is durable then, and no reader sees it
	// yet: decisions derived from those graphs (policies, credentials) are never older than
	// the data that is read. No update is executed in between. The committer calls it, one
	// commit at a time: it must not block or call the store. Commits made before the store was
	// opened are not reported.
	OnSystemChange func(*Commit)

	// Admit is called for each update, dry runs included, and at the beginning of each load,
	// before any other work. Its error is returned to the caller. nil admits all.
	Admit func(context.Context, Meta) error

	// AdmitRead is called when an outside principal begins to read: by View, Commit and
	// ReadLog, and, with follow, by Watch. Its error is returned to the caller. The context
	// carries request data from the caller to the hook. nil admits all.
	AdmitRead func(ctx context.Context, p Principal, follow bool) error

	// Charge is called after each further LoadUpdateQuads quads of a load, beyond those that
	// Admit admitted. A running load is not stopped; the charge can count against the caller's
	// next request. nil charges nobody.
	Charge func(context.Context, Meta)

	// Span begins a trace span within the one that ctx carries: for an update, for a load, and
	// for a view until it is closed. end is called once. nil: no traces.
	Span func(ctx context.Context, name string) (inner context.Context, end func(error))
	// Stages is called before Update returns, with the times that an acknowledged update spent
	// in each stage. ctx belongs to the update's span. nil: not reported.
	Stages func(ctx context.Context, s Stages)
}

// withDefaults returns the governor with functions that do nothing for those that are nil, other
// than Span and Stages, which cost something.
func (g Governor) withDefaults() Governor {
	if g.Access == nil {
		g.Access = AllowAll{}
	}
	if g.Distrust == nil {
		g.Distrust = base.TrustAll{}
	}
	if g.RulesVersion == nil {
		g.RulesVersion = func() uint64 { return 0 }
	}
	if g.OnSystemChange == nil {
		g.OnSystemChange = func(*Commit) {}
	}
	if g.Admit == nil {
		g.Admit = func(context.Context, Meta) error { return nil }
	}
	if g.AdmitRead == nil {
		g.AdmitRead = func(context.Context, Principal, bool) error { return nil }
	}
	if g.Charge == nil {
		g.Charge = func(context.Context, Meta) {}
	}
	return g
}
