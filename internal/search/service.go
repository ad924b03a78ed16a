package search

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"koine/internal/jobs"
	"koine/internal/sealed"
	"koine/internal/textindex"
	"koine/internal/vectorindex"
	"koine/kg"
)

// Options configure a Service.
type Options struct {
	// Dir is the directory of the index.
	Dir    string
	Logger *slog.Logger
	// Embedder makes vectors of texts; nil for none.
	Embedder Embedder
	// SaveEvery is how often the index is written while it changes. After a crash it is
	// brought up from the last time.
	SaveEvery time.Duration
	// FollowEvery is how long commits gather before they are indexed together, while no
	// search waits for them.
	FollowEvery time.Duration
	// History keeps the texts that went, for views of the past. A store that forgets some of its
	// history cannot have it: its texts would stay.
	History bool
	// MaxOrdered bounds the hits of a search by time; DefaultMaxOrdered if it is 0.
	MaxOrdered int
}

// The defaults of Options.
const (
	DefaultSaveEvery   = 30 * time.Second
	DefaultFollowEvery = 100 * time.Millisecond
)

// MaxGathered and MaxGatheredBytes bound the texts of commits that are gathered before they are
// indexed. They keep the commits' terms in memory, and the ids of terms that came long ago are
// no longer cached.
const (
	MaxGathered      = 1 << 13
	MaxGatheredBytes = 4 << 20
)

// restShare is how long indexing rests after a time of work, while commits come, no search
// waits and not too many texts have gathered: updates go before it.
const restShare = 9

// retryPause is the wait before following the log is tried again.
const retryPause = time.Second

// Directory returns the directory of the index in a data directory.
func Directory(data string) string { return filepath.Join(data, "search") }

// RemoveIndex removes the index from a data directory that no server uses. The texts that
// were erased from the store are in its files.
func RemoveIndex(data string) error { return os.RemoveAll(Directory(data)) }

// Service searches the texts of a store. Its methods are safe for concurrent use.
type Service struct {
	store   *kg.Store
	options Options
	index   *textindex.Index
	vectors *vectorindex.Index
	jobs    *jobs.Group

	departed departures
	history  *history // nil without Options.History

	wanted   chan struct{} // capacity 1: a search begins to wait
	waiting  atomic.Int32  // searches that wait
	follows  atomic.Bool   // from Start on
	changing sync.Mutex    // held while changes of the log are indexed

	mu       sync.Mutex
	nudge    func()        // makes the watcher tell its position; nil without one
	position kg.Position   // the index knows everything before
	moved    chan struct{} // closed when the position moves
	building bool
	saved    kg.Position
	// done of total statements are read while the index is built.
	done, total uint64
	// opened is the revision that the index knew when it was opened, and until the head then.
	opened, until kg.Revision
}

// systemView reads everything: the rights of a caller are checked when it searches.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}

// Open opens the index. It answers searches at once, and follows the log from Start on.
func Open(store *kg.Store, o Options) (*Service, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.SaveEvery, o.FollowEvery = cmp.Or(max(o.SaveEvery, 0), DefaultSaveEvery), cmp.Or(max(o.FollowEvery, 0), DefaultFollowEvery)
	o.MaxOrdered = cmp.Or(max(o.MaxOrdered, 0), DefaultMaxOrdered)
	index, place, unusable, err := textindex.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	if unusable != nil {
		o.Logger.Warn("text index is not usable; it is built anew", "error", unusable)
	}
	vectors, vectorPlace, unusable, err := openVectors(o.Dir)
	if err != nil {
		return nil, err
	}
	if unusable != nil {
		o.Logger.Warn("vector index is not usable; it is built anew", "error", unusable)
	}
	s := &Service{
		store: store, options: o, index: index, vectors: vectors, jobs: jobs.NewGroup(o.Logger),
		wanted: make(chan struct{}, 1), moved: make(chan struct{}),
	}
	place = s.olderPlace(place, vectorPlace)
	if from, err := store.ParsePosition(place); err == nil && place != "" && from.Revision <= store.Head().Revision {
		s.departed.forget(from.Revision)
		s.position, s.saved, s.opened, s.until = from, from, from.Revision, store.Head().Revision
	} else {
		s.index.Clear() // the files may be of another store
		s.beginBuilding()
	}
	if o.History {
		err = s.openHistory()
	} else {
		err = os.RemoveAll(filepath.Join(o.Dir, "history"))
	}
	return s, err
}

// Start follows the log until Close.
func (s *Service) Start() {
	s.follows.Store(true)
	s.jobs.Start("follow the log for search", s.followLog)
	s.jobs.Start("save the text index", s.saveAlways)
	if s.history != nil {
		s.jobs.Start("read the history for search", s.readHistory)
	}
}

// Close stops following the log, and saves the index.
func (s *Service) Close() error {
	s.jobs.Stop()
	return s.saveIndex()
}

// ReleasePages gives pages of the indexes' files back to the system, which has them in its page
// cache.
func (s *Service) ReleasePages() { sealed.ReleasePages() }

// Revision returns the newest revision that the index knows, and whether it is being built.
func (s *Service) Revision() (r kg.Revision, building bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position.Revision, s.building
}

// WaitFor waits until the index knows a revision. What has gathered is indexed at once.
func (s *Service) WaitFor(ctx context.Context, r kg.Revision) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for {
		s.mu.Lock()
		known, moved := s.position.Revision, s.moved
		s.mu.Unlock()
		if known >= r {
			return nil
		}
		select {
		case s.wanted <- struct{}{}:
		default:
		}
		s.nudgeWatcher()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// moveTo notes how far the index is.
func (s *Service) moveTo(p kg.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position, s.building = p, false
	close(s.moved)
	s.moved = make(chan struct{})
}

// saveAlways saves the index from time to time, and settles it when nothing has come since the
// last time.
func (s *Service) saveAlways(ctx context.Context) error {
	var last kg.Position
	for jobs.Wait(ctx, s.options.SaveEvery, nil) {
		s.mu.Lock()
		at, building := s.position, s.building
		s.mu.Unlock()
		if at == last && !building && s.index.Settle() {
			s.mu.Lock()
			s.saved = kg.Position{}
			s.mu.Unlock()
		}
		last = at
		if err := s.saveIndex(); err != nil {
			s.options.Logger.Warn("text index is not saved", "error", err)
		}
		s.nudgeWatcher() // commits without texts move the place too, before the next time
	}
	return nil
}

// saveIndex writes the index if it has changed. The place is read first: texts that are indexed
// meanwhile are indexed again after a restart, which changes nothing.
func (s *Service) saveIndex() error {
	s.mu.Lock()
	at, skip := s.position, s.building || s.position == s.saved
	history := s.history != nil && s.history.done
	s.mu.Unlock()
	if skip {
		return nil
	}
	place := s.store.FormatPosition(at)
	err := errors.Join(s.index.Save(place), s.vectors.Save(place+"\n"+s.identity()))
	if history {
		err = errors.Join(err, s.history.texts.Save(place))
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.saved = at
	s.mu.Unlock()
	return nil
}

// followLog follows the log, and begins anew after an error.
func (s *Service) followLog(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		from, building := s.position, s.building
		s.mu.Unlock()
		if building {
			var err error
			if from, err = s.buildIndex(ctx); err != nil {
				if kg.CodeOf(err) == kg.CodeClosed || ctx.Err() != nil {
					return nil
				}
				s.options.Logger.Warn("text index is not built; it is tried again", "error", err)
				jobs.Wait(ctx, retryPause, nil)
				continue
			}
		}
		err := s.followFrom(ctx, from)
		switch kg.CodeOf(err) {
		case kg.CodeClosed:
			return nil
		case kg.CodePositionGone, kg.CodeResync: // the log does not have the next commit
			s.options.Logger.Warn("text index is built anew", "error", err)
			s.beginBuilding()
		default:
			if ctx.Err() == nil {
				s.options.Logger.Warn("following the log for search is interrupted", "error", err)
				jobs.Wait(ctx, retryPause, nil)
			}
		}
	}
	return nil
}

// buildIndex makes the index anew from the store, and returns the position that it stands for.
func (s *Service) buildIndex(ctx context.Context) (kg.Position, error) {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return kg.Position{}, err
	}
	defer snapshot.Close()
	s.beginBuilding()
	s.departed.forget(snapshot.Revision())
	s.index.Clear()
	s.vectors.Clear()
	if s.history != nil {
		s.history.texts.Clear()
	}
	if err := s.addMatches(ctx, snapshot, kg.IDPattern{}, s.noteRead); err != nil {
		return kg.Position{}, err
	}
	s.index.Settle()
	s.moveTo(snapshot.Position())
	s.options.Logger.Info("text index is built", "revision", snapshot.Revision(), "texts", s.index.Size().Texts)
	return snapshot.Position(), nil
}

// readStep is how many statements are read between two notes of it.
const readStep = 1024

// addMatches adds the texts and the vectors of the statements that match. It notes how many it
// has read.
func (s *Service) addMatches(ctx context.Context, snapshot *kg.Snapshot, p kg.IDPattern, note func(uint64)) error {
	err := eachText(ctx, snapshot, p, note, func(q *kg.Quad, ids kg.IDQuad, t *textindex.Text) {
		s.addText(t)
		s.putMade(q, ids)
	})
	if err != nil {
		return err
	}
	return s.addVectors(ctx, snapshot, p)
}

// eachText calls add with the texts of the statements that match. It notes how many statements it
// has read.
func eachText(ctx context.Context, snapshot *kg.Snapshot, p kg.IDPattern, note func(uint64), add func(*kg.Quad, kg.IDQuad, *textindex.Text)) error {
	n := uint64(0)
	for row, err := range snapshot.MatchIDs(p, nil) {
		if err != nil {
			return err
		}
		if n++; n%readStep == 0 {
			note(n)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		object, err := snapshot.Term(row.Object)
		if err != nil {
			return err
		}
		if !object.IsLiteral() {
			continue
		}
		q, err := snapshot.Quad(row)
		if err != nil {
			return err
		}
		if t, ok := newText(&q); ok {
			identify(&t, q.Subject, row.IDQuad)
			add(&q, row.IDQuad, &t)
		}
	}
	note(n)
	return nil
}

// followFrom keeps the index behind the log from a position on.
func (s *Service) followFrom(ctx context.Context, from kg.Position) error {
	w, err := s.store.Watch(ctx, kg.Filter{View: systemView}, from)
	if err != nil {
		return err
	}
	defer w.Close()
	s.setNudge(w.Nudge)
	defer s.setNudge(nil)
	var list gathered
	var rested time.Time             // until when indexing rests
	until := s.store.Head().Revision // commits up to it are read without a pause
	for c, err := range w.WholeCommits() {
		if err != nil {
			return err
		}
		at := w.Position()
		if c != nil {
			at = kg.Position{Epoch: at.Epoch, Revision: c.Revision, Index: kg.EndOfCommit}
			list.addCommit(c)
		}
		switch replaced := c != nil && c.Replaced != nil; {
		case replaced || list.isFull():
		case c != nil && at.Revision < until:
			continue
		case list.isEmpty() || s.waiting.Load() > 0:
		case time.Now().Before(rested):
			jobs.Wait(ctx, s.options.FollowEvery, s.wanted)
			if until = s.store.Head().Revision; at.Revision < until {
				continue
			}
		}
		begun := time.Now()
		if err := s.changeTexts(ctx, &list); err != nil {
			return err
		}
		if c != nil && c.Replaced != nil {
			if err := s.replaceGraph(ctx, c.Replaced, at.Revision); err != nil {
				return err
			}
		}
		s.moveTo(at)
		rested = time.Now().Add(restShare * time.Since(begun))
		jobs.Wait(ctx, s.options.FollowEvery, s.wanted)
		until = s.store.Head().Revision
	}
	return ctx.Err()
}

func (s *Service) setNudge(nudge func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nudge = nudge
}

func (s *Service) nudgeWatcher() {
	s.mu.Lock()
	nudge := s.nudge
	s.mu.Unlock()
	if nudge != nil {
		nudge()
	}
}

// textChange is a text, or vectors, that come or go.
type textChange struct {
	quad       kg.Quad
	text       bool
	assertions []kg.Assertion // whose vectors change
	add        bool
	revision   kg.Revision
}

// gathered are changes of texts and vectors that are not indexed yet.
type gathered struct {
	list  []textChange
	bytes int
}

func (g *gathered) isFull() bool  { return len(g.list) >= MaxGathered || g.bytes >= MaxGatheredBytes }
func (g *gathered) isEmpty() bool { return len(g.list) == 0 }

// clear empties the list, and keeps its room.
func (g *gathered) clear() {
	clear(g.list)
	g.list, g.bytes = g.list[:0], 0
}

// addCommit adds the texts of statements that a commit made or removed, and the vectors of
// assertions.
func (g *gathered) addCommit(c *kg.Commit) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		text := (len(ch.Before) == 0) != (len(ch.After) == 0) && mayHaveText(&ch.Quad)
		gone := withoutEmbedding(ch)
		if text && len(ch.After) == 0 || gone != nil {
			g.addChange(textChange{quad: ch.Quad, text: text, assertions: gone, revision: c.Revision})
			text = text && len(ch.After) > 0
		}
		var came []kg.Assertion
		if ch.Op != kg.Remove && ch.Assertion.Embedding != nil {
			came = []kg.Assertion{ch.Assertion}
		}
		if text || came != nil {
			g.addChange(textChange{quad: ch.Quad, text: text, assertions: came, add: true, revision: c.Revision})
		}
	}
}

// withoutEmbedding returns the assertions whose embedding a change takes away.
func withoutEmbedding(ch *kg.Change) (list []kg.Assertion) {
	for i := range ch.Before {
		a := &ch.Before[i]
		if a.Embedding != nil && !slices.ContainsFunc(ch.After, func(b kg.Assertion) bool { return b.Source == a.Source && b.Embedding != nil }) {
			list = append(list, *a)
		}
	}
	return list
}

func (g *gathered) addChange(c textChange) {
	g.list = append(g.list, c)
	g.bytes += len(c.quad.Object.Value())
	for i := range c.assertions {
		g.bytes += c.assertions[i].ContentBytes()
	}
}

// changeTexts changes the index as commits changed the store, and empties the list.
func (s *Service) changeTexts(ctx context.Context, g *gathered) error {
	if g.isEmpty() {
		return nil
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	snapshot, err := s.store.View(ctx, systemView) // of the ids
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for i := range g.list {
		if err := s.changeText(snapshot, &g.list[i]); err != nil {
			return err
		}
	}
	g.clear()
	return nil
}

// changeText adds or removes the text and the vectors of a statement.
func (s *Service) changeText(snapshot *kg.Snapshot, c *textChange) error {
	q := &c.quad
	var t textindex.Text
	if c.text {
		t, c.text = newText(q)
	}
	if !c.text && c.assertions == nil {
		return nil
	}
	ids, known, err := snapshot.PatternIDs(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Graph: q.Graph})
	if err != nil || !known { // a term that was erased since is in no index
		return err
	}
	s.changeVectors(q, kg.IDQuad(ids), c.assertions, c.add)
	if !c.text {
		return nil
	}
	identify(&t, q.Subject, kg.IDQuad(ids))
	if c.add {
		s.addText(&t)
		s.putMade(q, kg.IDQuad(ids))
	} else {
		s.departed.add(c.revision, t.Subject) // first, so that a search misses none
		s.removeText(&t)
		s.removeMade(q, kg.IDQuad(ids))
	}
	return nil
}

// replaceGraph indexes the content of a graph anew.
func (s *Service) replaceGraph(ctx context.Context, r *kg.GraphReplacement, at kg.Revision) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	id, known, err := snapshot.ID(r.Graph)
	if err != nil || !known {
		return err
	}
	s.departed.forget(at)
	s.index.RemoveGraph(id)
	s.vectors.RemoveIf(func(k *vectorindex.Key) bool { return k.Ref.Graph == id })
	if err := s.addMatches(ctx, snapshot, kg.IDPattern{Graph: id}, func(uint64) {}); err != nil || s.history == nil {
		return err
	}
	if r.Deleted {
		s.forgetGraph(id)
		return nil
	}
	return s.keepContent(ctx, r.Graph, at)
}
