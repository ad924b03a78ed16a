package kg

import (
	"encoding/json"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
)

// Patch is one wish for a change.
type Patch struct {
	Op   Op
	Quad Quad
	// Source is whose assertion is made or withdrawn. For Add and Replace ""
	// stands for Meta.Actor; for Remove "" means the whole statement.
	Source       AgentID
	Certainty    float64
	HasCertainty bool
	// Validity is when what is said holds: see Assertion.Validity.
	Validity   TimeSpan
	Provenance []byte // JSON, or nil
	// Time is when the assertion of an Add was recorded, for one that comes from
	// another store; zero means the commit's time. Only an administrator sets it, for
	// any source but koine itself. An update with such a patch is not held for review.
	Time time.Time

	normal   bool            // Normalise has passed it
	foreseen *index.Foreseen // by Foresight.See, nil without
}

// Bounds of one commit.
const (
	MaxPatches     = 10_000   // patches that one caller may ask for
	MaxChanges     = 100_000  // what they may come to: a replace removes many
	MaxCommitBytes = 12 << 20 // of the log entry before compression
)

// Normalise checks a patch and brings it into the one form in which it is
// applied and compared: graph and source spelled out. source is whose assertion
// an Add or Replace makes when the patch names none. It may be called ahead of
// Tx.Apply, which otherwise does it while other updates wait.
func (p *Patch) Normalise(source AgentID) error {
	if p.normal {
		return nil
	}
	if p.Quad.Graph.IsZero() {
		p.Quad.Graph = DefaultGraph
	}
	if err := p.Quad.Valid(p.termCheck()); err != nil {
		return err
	}
	switch p.Op {
	case Add, Replace:
		if p.Source == "" {
			p.Source = source
		}
	case Remove:
	default:
		return Errorf(CodeInvalid, "a patch adds, removes or replaces").At("op")
	}
	if p.Source != "" {
		p.Source = CanonicalAgent(string(p.Source))
		if err := p.Source.Valid(); err != nil {
			return AsError(err).At("source")
		}
	}
	if p.HasCertainty && !(p.Certainty >= 0 && p.Certainty <= 1) {
		return Errorf(CodeInvalid, "a certainty is between 0 and 1").At("certainty")
	}
	if err := p.Validity.Normalise(); err != nil {
		return err
	}
	if err := p.normaliseTime(); err != nil {
		return err
	}
	if len(p.Provenance) > MaxProvenanceBytes {
		return Errorf(CodeLimitExceeded, "provenance of %d bytes is longer than the %d that are stored", len(p.Provenance), MaxProvenanceBytes).At("provenance")
	}
	if p.Provenance != nil && !json.Valid(p.Provenance) {
		return Errorf(CodeInvalid, "provenance is not JSON").At("provenance")
	}
	p.normal = true
	return nil
}

// normaliseTime brings the time of an assertion into the form in which it is stored.
func (p *Patch) normaliseTime() error {
	if p.Time.IsZero() {
		return nil
	}
	if p.Op != Add {
		return Errorf(CodeInvalid, "only an assertion that is added has a time of its own").At("time")
	}
	var err *Error
	if p.Time, err = base.NormalEnd(p.Time); err != nil {
		return err.At("time")
	}
	if p.Time.IsZero() { // the first millisecond of the year 1 stands for none
		return Errorf(CodeInvalid, "a time is in the years 1 to 9999").At("time")
	}
	return nil
}

// With is the patch about another property of the same subject, in normal form if p is.
func (p *Patch) With(predicate, object Term) (Patch, error) {
	with := *p
	with.Quad.Predicate, with.Quad.Object = predicate, object
	if !p.normal {
		return with, nil
	}
	return with, with.Quad.Says(p.termCheck())
}

// literalWithin refuses an object that is longer than the store takes.
func (p *Patch) literalWithin(most int) error {
	if err := p.Quad.Object.LiteralWithin(most); err != nil {
		return AsError(err).At("object")
	}
	return nil
}

// termCheck is what the patch asks of its terms. What is removed may be from before IRIs
// were checked, and koine's own statements name agents that may be.
func (p *Patch) termCheck() func(Term) error {
	if p.Op == Remove || Reserved(p.Quad) {
		return Term.Valid
	}
	return Term.ValidNew
}

// showFlushed lets callers see what Badger has up to a revision. Only the committer
// calls it, with mu held, and Open.
func (s *Store) showFlushed(at Revision) {
	s.layers.flushed = at
	s.flushedKV.Store(s.newKV(at))
}

// TermPrefetch does ahead of Tx.Apply what can be done of an update's patches while others
// have the committer. It belongs to one goroutine.
type TermPrefetch struct {
	store  *Store
	source AgentID
	last   *index.ForeseenTerm // subject of the patch before
	room   []index.Foreseen
}

// NewTermPrefetch is that of an update with about so many patches. source makes the assertions
// of those that name none.
func (s *Store) NewTermPrefetch(source AgentID, patches int) *TermPrefetch {
	return &TermPrefetch{store: s, source: source, room: make([]index.Foreseen, 0, patches)}
}

// Prefetch checks a patch (Patch.Normalise) and looks up what it is about. Most patches of an
// update are about the same subject, which is not looked up again.
func (f *TermPrefetch) Prefetch(p *Patch) error {
	if err := p.Normalise(f.source); err != nil {
		return err
	}
	s := f.store
	if f.last == nil || f.last.Term != p.Quad.Subject {
		subject := s.foreseeTerm(p.Quad.Subject)
		f.last = &subject
	}
	if len(f.room) == cap(f.room) {
		f.room = make([]index.Foreseen, 0, 4)
	}
	f.room = append(f.room, index.Foreseen{Cache: s.cache, Subject: f.last, Object: s.foreseeTerm(p.Quad.Object)})
	p.foreseen = &f.room[len(f.room)-1]
	return nil
}

func (s *Store) foreseeTerm(t Term) index.ForeseenTerm {
	if id, ok := base.InlineID(t); ok {
		return index.ForeseenTerm{Term: t, ID: id}
	}
	if id, ok := s.cache.ID(t); ok {
		return index.ForeseenTerm{Term: t, ID: id}
	}
	f := index.ForeseenTerm{Term: t}
	key := index.KeyOf(t)
	if f.ID, f.Lacks = s.flushedID(t, key); f.ID.IsZero() {
		f.Key = &key
	}
	return f
}

// flushedID is the id that Badger has for a term, or else what surely has none; neither
// where that cannot be told now.
func (s *Store) flushedID(t Term, key index.TermKey) (ID, *index.BadgerKV) {
	s.door.RLock()
	defer s.door.RUnlock()
	kv := s.flushedKV.Load()
	if s.closed || kv == nil {
		return ID{}, nil
	}
	id, found, err := index.Dictionary{KV: kv, Cache: s.cache}.Find(t, key)
	switch {
	case err != nil:
		return ID{}, nil // the committer will see it too
	case found:
		return id, nil
	}
	return ID{}, kv
}
