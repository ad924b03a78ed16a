package kg

import (
	"encoding/json"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
)

// Patch is a request to add, remove or replace one statement.
type Patch struct {
	Op   Op
	Quad Quad
	// Source is the source of the assertion. For Add and Replace "" means Meta.Actor; for
	// Remove "" means the statement with all its assertions.
	Source       AgentID
	Certainty    float64
	HasCertainty bool
	// Validity is the time for which the statement is asserted: see Assertion.Validity.
	Validity   TimeSpan
	Provenance []byte // JSON, or nil
	// Embedding belongs to the assertion of an Add or Replace; nil for none.
	Embedding *Embedding
	// Time is the time of the assertion of an Add, for one that comes from another store; zero
	// means the commit's time. Only an administrator may set it, for any source except koine
	// itself. An update with such a patch cannot be held for review.
	Time time.Time

	normal     bool              // set by Normalise
	prefetched *index.Prefetched // set by TermPrefetch.Prefetch, else nil
}

// Bounds of one commit.
const (
	MaxPatches     = 10_000   // patches of one update by a caller
	MaxChanges     = 100_000  // changes of one commit: a replace may remove many statements
	MaxCommitBytes = 12 << 20 // log entry before compression
)

// Normalise validates a patch and brings it into the form in which it is applied and compared,
// with graph and source filled in. source is the default source for Add and Replace. Tx.Apply
// calls it; calling it earlier moves the work out of the committer, where other updates wait.
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
		return Errorf(CodeInvalid, `op must be "add", "remove" or "replace", not %q`, p.Op).At("op")
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
	if err := p.validEmbedding(); err != nil {
		return err
	}
	p.normal = true
	return nil
}

// validEmbedding returns an error about an embedding that the patch may not have.
func (p *Patch) validEmbedding() error {
	if p.Embedding == nil {
		return nil
	}
	if p.Op == Remove {
		return Errorf(CodeInvalid, "a removed statement is given no embedding").At("embedding")
	}
	if err := p.Embedding.Valid(); err != nil {
		return AsError(err).At("embedding")
	}
	return nil
}

// normaliseTime brings the time of an assertion into its stored form.
func (p *Patch) normaliseTime() error {
	if p.Time.IsZero() {
		return nil
	}
	if p.Op != Add {
		return Errorf(CodeInvalid, "only an added assertion may have a time").At("time")
	}
	var err *Error
	if p.Time, err = base.NormalEnd(p.Time); err != nil {
		return err.At("time")
	}
	if p.Time.IsZero() { // the first millisecond of the year 1 means none
		return Errorf(CodeInvalid, "a time is in the years 1 to 9999").At("time")
	}
	return nil
}

// With returns the patch with another predicate and object, in normal form if p is.
func (p *Patch) With(predicate, object Term) (Patch, error) {
	with := *p
	with.Quad.Predicate, with.Quad.Object = predicate, object
	if !p.normal {
		return with, nil
	}
	return with, with.Quad.ValidPredicateObject(p.termCheck())
}

// checkLiteralSize refuses an object longer than most bytes.
func (p *Patch) checkLiteralSize(most int) error {
	if err := p.Quad.Object.LiteralWithin(most); err != nil {
		return AsError(err).At("object")
	}
	return nil
}

// termCheck returns the validation for the patch's terms. A removed statement may be older
// than the checks of IRIs, and koine's own statements may name agents with such ids.
func (p *Patch) termCheck() func(Term) error {
	if p.Op == Remove || Reserved(p.Quad) {
		return Term.Valid
	}
	return Term.ValidNew
}

// showFlushed makes Badger's content up to a revision available to prefetches. The committer
// calls it with mu held, and Open.
func (s *Store) showFlushed(at Revision) {
	s.layers.flushed = at
	s.dropFlushed(index.NewLastingKV(s.db, at, &s.keysRead))
}

// dropFlushed replaces flushedKV, by nil before Badger is closed.
func (s *Store) dropFlushed(next *index.BadgerKV) {
	if old := s.flushedKV.Swap(next); old != nil {
		old.Close()
	}
}

// TermPrefetch validates the patches of an update and looks up their terms before the update
// reaches the committer, so that Tx.Apply does less while other updates wait. It belongs to
// one goroutine.
type TermPrefetch struct {
	store  *Store
	source AgentID
	last   *index.PrefetchedTerm // subject of the patch before
	room   []index.Prefetched
}

// NewTermPrefetch returns a prefetch for an update with about this many patches. source is the
// default source of their assertions.
func (s *Store) NewTermPrefetch(source AgentID, patches int) *TermPrefetch {
	return &TermPrefetch{store: s, source: source, room: make([]index.Prefetched, 0, patches)}
}

// Prefetch validates a patch (Patch.Normalise) and looks up its subject and object. It reuses
// the subject of the patch before.
func (f *TermPrefetch) Prefetch(p *Patch) error {
	if err := p.Normalise(f.source); err != nil {
		return err
	}
	s := f.store
	if f.last == nil || f.last.Term != p.Quad.Subject {
		subject := s.prefetchTerm(p.Quad.Subject)
		f.last = &subject
	}
	if len(f.room) == cap(f.room) {
		f.room = make([]index.Prefetched, 0, 4)
	}
	f.room = append(f.room, index.Prefetched{Cache: s.cache, Subject: f.last, Object: s.prefetchTerm(p.Quad.Object)})
	p.prefetched = &f.room[len(f.room)-1]
	return nil
}

// NoteNewSubject tells that the subject of the patches that follow is a name that was made of random
// bits a moment ago, and that nobody has been told. No statement has it: it is not looked up.
func (f *TermPrefetch) NoteNewSubject(subject Term) {
	key := index.KeyOf(subject)
	f.last = &index.PrefetchedTerm{Term: subject, Key: &key, AbsentFrom: f.store.flushedKV.Load()}
}

func (s *Store) prefetchTerm(t Term) index.PrefetchedTerm {
	if id, ok := base.InlineID(t); ok {
		return index.PrefetchedTerm{Term: t, ID: id}
	}
	if id, ok := s.cache.ID(t); ok {
		return index.PrefetchedTerm{Term: t, ID: id}
	}
	f := index.PrefetchedTerm{Term: t}
	key := index.KeyOf(t)
	if f.ID, f.AbsentFrom = s.flushedID(t, key); f.ID.IsZero() {
		f.Key = &key
	}
	return f
}

// flushedID returns the id of a term in Badger, or else the snapshot of Badger that lacks the
// term. It returns neither if the store is closed or the lookup fails.
func (s *Store) flushedID(t Term, key index.TermKey) (ID, *index.BadgerKV) {
	s.door.RLock()
	defer s.door.RUnlock()
	kv := s.flushedKV.Load()
	if s.closed || kv == nil || !kv.Hold() { // it may be replaced at any time
		return ID{}, nil
	}
	defer kv.Close()
	id, found, err := s.dictionary(kv).Find(t, key)
	switch {
	case err != nil:
		return ID{}, nil // the committer gets the same error
	case found:
		return id, nil
	}
	return ID{}, kv
}
