package embedding

import (
	"context"
	"errors"
	"time"

	"koine/internal/backoff"
	"koine/internal/jobs"
	"koine/internal/vectorindex"
	"koine/kg"
)

// maxGathered bounds the texts that wait in memory, and scanRows the statements that are read
// from one snapshot while the texts of a whole store are made.
const (
	maxGathered = 4096
	scanRows    = 10_000
)

// systemView reads everything: the policy decides which texts are sent.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}

// retryPause is the wait before following the log is tried again.
const retryPause = time.Second

// makeAlways follows the log from where the vectors were saved, and begins anew after an error.
func (m *Maker) makeAlways(ctx context.Context) error {
	from, err := m.store.ParsePosition(m.place)
	known := err == nil
	for ctx.Err() == nil {
		if !known {
			if from, err = m.makeOfStore(ctx); err == nil {
				m.moveTo(from)
			}
		} else {
			err = m.followFrom(ctx, &from)
		}
		switch {
		case ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed:
			return nil
		case err == nil || kg.CodeOf(err) == kg.CodeResync: // a graph was replaced, and its texts have vectors
			known = true
		case kg.CodeOf(err) == kg.CodePositionGone:
			known = false
		default:
			m.options.Logger.Warn("making embeddings is interrupted", "error", err)
			jobs.Wait(ctx, retryPause, nil)
		}
	}
	return nil
}

func (m *Maker) moveTo(p kg.Position) {
	place := m.store.FormatPosition(p)
	m.position.Store(&place)
}

// makeOfStore makes the vectors of all texts in the store, and returns the position that it
// began at.
func (m *Maker) makeOfStore(ctx context.Context) (kg.Position, error) {
	from := m.store.Head()
	return from, m.makeOfMatches(ctx, func(*kg.Snapshot) (kg.IDPattern, bool, error) { return kg.IDPattern{}, true, nil })
}

// makeOfMatches makes the vectors of the statements that match a pattern. It holds no snapshot
// while it waits for the endpoint.
func (m *Maker) makeOfMatches(ctx context.Context, pattern func(*kg.Snapshot) (p kg.IDPattern, ok bool, err error)) error {
	var after *kg.IDQuad
	for {
		list, next, err := m.gatherMatches(ctx, pattern, after)
		if err != nil {
			return err
		}
		if err := m.makeAll(ctx, list); err != nil || next == nil {
			return err
		}
		after = next
	}
}

// gatherMatches returns statements with texts behind a statement, and where to go on.
func (m *Maker) gatherMatches(ctx context.Context, pattern func(*kg.Snapshot) (kg.IDPattern, bool, error), after *kg.IDQuad) (list []kg.Quad, next *kg.IDQuad, err error) {
	snapshot, err := m.store.View(ctx, systemView)
	if err != nil {
		return nil, nil, err
	}
	defer snapshot.Close()
	p, ok, err := pattern(snapshot)
	if err != nil || !ok {
		return nil, nil, err
	}
	n := 0
	for row, err := range snapshot.MatchIDs(p, after) {
		if err != nil {
			return nil, nil, err
		}
		if n == scanRows || len(list) == maxGathered {
			return list, next, nil
		}
		n, next = n+1, &row.IDQuad
		object, err := snapshot.Term(row.Object)
		if err != nil {
			return nil, nil, err
		}
		if !object.IsLiteral() {
			continue
		}
		q, err := snapshot.Quad(row)
		if err != nil {
			return nil, nil, err
		}
		if m.needsVector(&q) {
			list = append(list, q)
		}
	}
	return list, nil, ctx.Err()
}

// needsVector reports whether a statement has a text that may be sent and has no vector.
func (m *Maker) needsVector(q *kg.Quad) bool {
	text, ok := m.textOf(q)
	return ok && m.vectorOf(keyOf(q.Graph, text)) == nil
}

// followFrom makes the vectors of texts that commits add, and moves from behind them.
func (m *Maker) followFrom(ctx context.Context, from *kg.Position) error {
	w, err := m.store.Watch(ctx, kg.Filter{View: systemView, Replacements: true}, *from)
	if err != nil {
		return err
	}
	defer w.Close()
	late := time.AfterFunc(m.options.FollowEvery, w.Nudge) // the newest commits may have no events
	defer late.Stop()
	var gathered []kg.Quad
	for events, err := range w.Commits() {
		if err != nil {
			return err
		}
		at := w.Position()
		for i := range events {
			e := &events[i]
			if at = e.Position; e.Replaced != nil {
				if err := m.makeOfGraph(ctx, e.Replaced.Graph); err != nil {
					return err
				}
			} else if e.Op != kg.Remove && m.options.Graphs.Allow(e.Statement.Graph) {
				gathered = append(gathered, e.Statement.Quad)
			}
		}
		if len(events) > 0 && events[0].Replaced == nil && len(gathered) < maxGathered && m.store.Head().Revision > at.Revision {
			late.Reset(m.options.FollowEvery)
			continue
		}
		if err := m.makeAll(ctx, gathered); err != nil {
			return err
		}
		gathered = nil
		*from = at
		m.moveTo(at)
		if m.store.Head().Revision == at.Revision {
			jobs.Wait(ctx, m.options.FollowEvery, nil)
		}
	}
	return ctx.Err()
}

// makeOfGraph makes the vectors of a graph's texts.
func (m *Maker) makeOfGraph(ctx context.Context, graph kg.Term) error {
	return m.makeOfMatches(ctx, func(s *kg.Snapshot) (p kg.IDPattern, ok bool, err error) {
		p.Graph, ok, err = s.ID(graph)
		return p, ok, err
	})
}

// text is a text that waits for its vector, with the statements that have it.
type text struct {
	key   vectorindex.Key
	value string
	quads []kg.Quad
}

// makeAll makes the vectors of statements, and returns when all have one, or were refused.
func (m *Maker) makeAll(ctx context.Context, list []kg.Quad) error {
	at := map[vectorindex.Key]int{}
	var texts []text
	for i := range list {
		value, ok := m.textOf(&list[i])
		if !ok {
			continue
		}
		k := keyOf(list[i].Graph, value)
		n, known := at[k]
		if !known {
			n = len(texts)
			at[k] = n
			texts = append(texts, text{key: k, value: value})
		}
		texts[n].quads = append(texts[n].quads, list[i])
	}
	m.counts.waiting.Add(int64(len(texts)))
	defer func() { m.counts.waiting.Add(-int64(len(texts))) }()
	for len(texts) > 0 {
		n := min(len(texts), MaxBatchTexts)
		if err := m.makeBatch(ctx, texts[:n]); err != nil {
			return err
		}
		texts = texts[n:]
		m.counts.waiting.Add(-int64(n))
	}
	return nil
}

// MaxAttempts is how often the endpoint may fail at some texts, one after the other, before it is
// asked whether it fails at others: at each of them alone, then at Probe.
const MaxAttempts = 5

// Probe is sent to see whether the endpoint answers at all.
const Probe = "probe"

// makeBatch makes the vectors of texts that are still in the store and have none. It calls the
// endpoint until it has answered for each. If it refuses several texts, each is sent alone; those
// that it refuses alone get no vector. So do those at which it fails MaxAttempts times, and once
// more after it has answered Probe: they would hold up all others.
func (m *Maker) makeBatch(ctx context.Context, batch []text) error {
	var send []text
	for _, t := range batch {
		if m.vectorOf(t.key) == nil {
			send = append(send, t)
		} else if err := m.options.Made(ctx, t.quads); err != nil {
			return err
		}
	}
	alone := 0       // how many of the first texts are sent alone
	answers := false // the endpoint has just answered Probe
	for attempt := 0; ; {
		var err error
		if send, err = m.keepPresent(ctx, send); err != nil || len(send) == 0 {
			return err
		}
		n := len(send)
		if alone > 0 {
			n = 1
		}
		n, wait, err := m.budget.reserveTexts(n)
		if err != nil {
			return err
		}
		if n == 0 {
			m.options.Logger.Warn("embeddings wait for the next day: the texts of today are sent", "texts", m.options.Daily)
			if err := backoff.Sleep(ctx, wait); err != nil {
				return err
			}
			continue
		}
		failure, err := m.sendTexts(ctx, send[:n])
		switch {
		case err != nil:
			return err
		case failure == nil:
			send, attempt, alone, answers = send[n:], 0, max(alone-1, 0), false
		case failure.refused && n > 1:
			alone = n
		case failure.refused || failure.failed && answers:
			m.leaveText(&send[0], failure)
			send, attempt, alone, answers = send[1:], 0, max(alone-1, 0), false
		case failure.failed && attempt+1 >= MaxAttempts && n > 1:
			attempt, alone = 0, n
		case failure.failed && attempt+1 >= MaxAttempts && m.answersProbe(ctx):
			answers = true
		default:
			if failure.unsent {
				m.budget.returnTexts(n)
			}
			wait := m.options.Waits.After(attempt, failure.after)
			m.options.Logger.Warn("embeddings wait", "error", failure, "texts", len(send), "retry", wait)
			if err := backoff.Sleep(ctx, wait); err != nil {
				return err
			}
			attempt++
		}
	}
}

// leaveText notes that a text gets no vector.
func (m *Maker) leaveText(t *text, failure *callError) {
	message := "a text has no embedding: the endpoint refuses it"
	if failure.refused {
		m.counts.refused.Add(1)
	} else {
		m.counts.givenUp.Add(1)
		message = "a text has no embedding: the endpoint fails at it, and answers others"
	}
	m.options.Logger.Warn(message, "graph", t.quads[0].Graph.Value(), "bytes", len(t.value), "error", failure)
}

// answersProbe reports whether the endpoint answers Probe, which counts as one of the day's texts.
func (m *Maker) answersProbe(ctx context.Context) bool {
	if n, _, err := m.budget.reserveTexts(1); n == 0 || err != nil {
		return false
	}
	_, err := m.options.Endpoint.Embed(ctx, []string{Probe})
	return err == nil
}

// sendTexts calls the endpoint, and keeps and tells of the vectors that it answers.
func (m *Maker) sendTexts(ctx context.Context, list []text) (failure *callError, err error) {
	values := make([]string, len(list))
	for i, t := range list {
		values[i] = t.value
	}
	vectors, err := m.options.Endpoint.Embed(ctx, values)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.As(err, &failure) {
		m.counts.failed.Add(1)
		return failure, nil
	}
	if err != nil {
		return nil, err
	}
	for i, t := range list {
		m.made.Put(t.key, m.options.Endpoint.Model, vectors[i])
		m.counts.made.Add(1)
	}
	for _, t := range list {
		if err := m.options.Made(ctx, t.quads); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// keepPresent returns the texts of which a statement is in the store: a text that was removed while it
// waited is not sent.
func (m *Maker) keepPresent(ctx context.Context, list []text) ([]text, error) {
	snapshot, err := m.store.View(ctx, systemView)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	var out []text
	for _, t := range list {
		for _, q := range t.quads {
			present, err := isPresent(snapshot, &q)
			if err != nil {
				return nil, err
			}
			if present {
				out = append(out, t)
				break
			}
		}
	}
	return out, nil
}

func isPresent(snapshot *kg.Snapshot, q *kg.Quad) (bool, error) {
	ids, known, err := snapshot.PatternIDs(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Graph: q.Graph})
	if err != nil || !known {
		return false, err
	}
	for _, err := range snapshot.MatchIDs(ids, nil) {
		return err == nil, err
	}
	return false, nil
}
