package review

import (
	"context"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Defaults of Options.
const (
	DefaultOpenPerAgent = 100
	DefaultExpires      = 7 * 24 * time.Hour
)

// MaxCommentBytes bounds what a reviewer writes.
const MaxCommentBytes = 16 << 10

// Options of a Service. The zero Options is a working one.
type Options struct {
	// OpenPerAgent bounds the proposals of one principal that wait for review.
	OpenPerAgent int
	// Expires is how long a proposal waits where no rule says.
	Expires time.Duration
	Clock   func() time.Time // time.Now when nil
	// Standing gives the author of a proposal the rights of now, or an error that
	// says why it has none. It answers at once, and from what Store.Update has
	// told of (kg.Options.OnSystemChange). Nil leaves authors the rights they had.
	Standing func(kg.Principal) (kg.Principal, error)
}

// Store is what a Service works on (kg.Store).
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
	records.Reader
}

// Service keeps proposals. It is made before the store, which it is part of as
// its Holder and in front of its Access, and bound to it by Open. Its methods may
// be called concurrently.
type Service struct {
	options Options
	table   table
	mirror  records.Mirror
	store   Store
	access  kg.Access // that its guard is in front of; nil without one
	judge   func(context.Context, kg.Principal, []kg.Patch) error
}

// New makes a service.
func New(o Options) *Service {
	if o.OpenPerAgent == 0 {
		o.OpenPerAgent = DefaultOpenPerAgent
	}
	if o.Expires == 0 {
		o.Expires = DefaultExpires
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Standing == nil {
		o.Standing = func(p kg.Principal) (kg.Principal, error) { return p, nil }
	}
	return &Service{options: o}
}

// Judge has the patches of each proposal judged before they are applied. An error is the
// answer, and the proposal goes on waiting. It is called before anything is decided.
func (s *Service) Judge(judge func(context.Context, kg.Principal, []kg.Patch) error) { s.judge = judge }

// Guard puts the access to proposals in front of another.
func (s *Service) Guard(next kg.Access) *Guard {
	s.access = next
	return &Guard{Front: kg.Front{Access: next}, table: &s.table}
}

// Follow takes a commit (kg.Options.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) { s.mirror.Follow(c, s.table.take, entryStatements...) }

// Open reads the proposals that the store has. Before it nothing may be held.
func (s *Service) Open(ctx context.Context, store Store) error {
	s.store = store
	return s.mirror.LoadClass(ctx, store, s.table.take, classProposal, entryProperties...)
}
