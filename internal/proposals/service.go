package proposals

import (
	"cmp"
	"context"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Defaults of Options.
const (
	DefaultOpenPerAgent = 100
	DefaultHeldMessages = 10_000
	DefaultHeldPerAgent = 20
	DefaultExpires      = 7 * 24 * time.Hour
)

// MaxCommentBytes limits a comment.
const MaxCommentBytes = 16 << 10

// Options configures a Service. The zero Options is valid.
type Options struct {
	// OpenPerAgent limits the pending proposals of one principal.
	OpenPerAgent int
	// HeldMessages limits the messages that wait for a review, HeldPerAgent those of one
	// principal.
	HeldMessages, HeldPerAgent int
	// Expires is how long a proposal waits if its rule does not set it.
	Expires time.Duration
	Clock   func() time.Time // time.Now when nil
	// CurrentRights returns the author of a proposal with its current rights, or an error
	// with the reason if it has none. It must not block and must use state from
	// kg.Governor.OnSystemChange. Nil keeps the rights of the proposal.
	CurrentRights func(kg.Principal) (kg.Principal, error)
}

// Store is the part of kg.Store that a Service needs.
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
	systemgraph.Reader
}

// Service manages proposals. Create it before the store, which uses it as its Holder
// and behind its Access, and bind it with Open. Its methods may be called concurrently.
type Service struct {
	options    Options
	table      table
	mirror     systemgraph.Mirror
	store      Store
	access     kg.Access // behind the guard; nil without one
	patchCheck func(context.Context, kg.Principal, []kg.Patch) error
}

// New returns a service.
func New(o Options) *Service {
	o.OpenPerAgent, o.Expires = cmp.Or(o.OpenPerAgent, DefaultOpenPerAgent), cmp.Or(o.Expires, DefaultExpires)
	o.HeldMessages, o.HeldPerAgent = cmp.Or(o.HeldMessages, DefaultHeldMessages), cmp.Or(o.HeldPerAgent, DefaultHeldPerAgent)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.CurrentRights == nil {
		o.CurrentRights = func(p kg.Principal) (kg.Principal, error) { return p, nil }
	}
	return &Service{options: o}
}

// SetPatchCheck sets a check of the patches of each proposal before a decision applies them. If
// it fails, the decision fails and the proposal stays pending.
func (s *Service) SetPatchCheck(judge func(context.Context, kg.Principal, []kg.Patch) error) {
	s.patchCheck = judge
}

// Guard returns an Access that handles proposals and passes everything else to next.
func (s *Service) Guard(next kg.Access) *Guard {
	s.access = next
	return &Guard{Front: kg.Front{Access: next}, table: &s.table}
}

// Follow applies a commit (kg.Governor.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) { s.mirror.Follow(c, s.table.applyFacts, entryStatements...) }

// Open reads the proposals of the store. Call it before anything can be held.
func (s *Service) Open(ctx context.Context, store Store) error {
	s.store = store
	return s.mirror.LoadClass(ctx, store, s.table.applyFacts, classProposal, entryProperties...)
}
