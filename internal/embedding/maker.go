package embedding

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"koine/internal/backoff"
	"koine/internal/jobs"
	"koine/internal/vectorindex"
	"koine/kg"
)

// The bounds of a batch, and of the part of a text that is sent.
const (
	MaxBatchTexts = 64
	MaxTextBytes  = 8 << 10
)

// DefaultDaily is the number of texts that are sent a day unless configured.
const DefaultDaily = 100_000

// Options configure a Maker.
type Options struct {
	Endpoint Endpoint
	// Dir is the directory of the made vectors.
	Dir    string
	Graphs Graphs
	// Daily bounds the texts that are sent a day.
	Daily int
	// TextOf returns the text of a statement, and false if it has none.
	TextOf func(q *kg.Quad) (string, bool)
	// Made is told of statements with texts that have vectors now.
	Made   func(ctx context.Context, list []kg.Quad) error
	Logger *slog.Logger

	SaveEvery   time.Duration    // how often vectors are written; 0 is DefaultSaveEvery
	FollowEvery time.Duration    // how long commits gather; 0 is DefaultFollowEvery
	Waits       backoff.Waits    // between calls that fail; zero is DefaultWaits
	Clock       func() time.Time // nil is time.Now
}

// The defaults of Options.
const (
	DefaultSaveEvery   = 30 * time.Second
	DefaultFollowEvery = 200 * time.Millisecond
)

// DefaultWaits are the delays between calls that fail.
var DefaultWaits = backoff.Waits{Min: time.Second, Max: 5 * time.Minute}

// Maker makes vectors of the texts of a store. Its methods are safe for concurrent use.
type Maker struct {
	store   *kg.Store
	options Options
	made    *vectorindex.Index
	budget  *budget
	jobs    *jobs.Group
	place   string // where it was saved

	position atomic.Pointer[string] // as it is saved
	counts   struct{ waiting, made, refused, givenUp, failed atomic.Int64 }
}

// Open opens the vectors that were made. Start makes more.
func Open(store *kg.Store, o Options) (*Maker, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.SaveEvery, o.FollowEvery = cmp.Or(o.SaveEvery, DefaultSaveEvery), cmp.Or(o.FollowEvery, DefaultFollowEvery)
	o.Waits, o.Daily = cmp.Or(o.Waits, DefaultWaits), cmp.Or(o.Daily, DefaultDaily)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if err := o.Endpoint.Check(); err != nil {
		return nil, err
	}
	made, place, unusable, err := vectorindex.Open(filepath.Join(o.Dir, vectorsDirectory))
	if err != nil {
		return nil, err
	}
	if unusable != nil {
		o.Logger.Warn("made vectors are not usable; they are made again", "error", unusable)
	}
	b, err := openBudget(filepath.Join(o.Dir, spentFile), o.Daily, o.Clock)
	if err != nil {
		return nil, err
	}
	m := &Maker{store: store, options: o, made: made, budget: b, jobs: jobs.NewGroup(o.Logger)}
	var s state
	if json.Unmarshal([]byte(place), &s) == nil && s.Model == o.Endpoint.Model && s.Graphs == o.Graphs.String() {
		m.place = s.Position
	}
	m.position.Store(&m.place)
	return m, nil
}

// Start makes vectors until Close.
func (m *Maker) Start() {
	m.jobs.Start("make embeddings", m.makeAlways)
	m.jobs.Start("save embeddings", m.saveAlways)
}

// Close stops, and saves the vectors.
func (m *Maker) Close() error {
	m.jobs.Stop()
	return m.Save()
}

// Identity names the model and the graphs of the vectors.
func (m *Maker) Identity() string { return m.options.Endpoint.Model + " " + m.options.Graphs.String() }

// Model returns the name of the model.
func (m *Maker) Model() string { return m.options.Endpoint.Model }

// Vector returns the vector of a statement's text, nil if there is none.
func (m *Maker) Vector(q *kg.Quad) []float32 {
	text, ok := m.textOf(q)
	if !ok {
		return nil
	}
	return m.vectorOf(keyOf(q.Graph, text))
}

func (m *Maker) vectorOf(k vectorindex.Key) []float32 {
	if model, v := m.made.Vector(k); model == m.options.Endpoint.Model {
		return v
	}
	return nil
}

// textOf returns the part of a text that is sent, and false if none may be.
func (m *Maker) textOf(q *kg.Quad) (string, bool) {
	if !m.options.Graphs.Allow(q.Graph) {
		return "", false
	}
	text, ok := m.options.TextOf(q)
	return clipText(text), ok
}

// clipText returns the part of a text that is sent.
func clipText(text string) string {
	if len(text) <= MaxTextBytes {
		return text
	}
	n := MaxTextBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// QueryTimeout bounds the call for the text of a query.
const QueryTimeout = 5 * time.Second

// EmbedQuery returns the vector of a text that somebody searches for. It counts as one of the
// day's texts, and is not tried again.
func (m *Maker) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if len(text) > MaxTextBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "text has %d bytes; at most %d can be sent to the embeddings endpoint", len(text), MaxTextBytes)
	}
	n, wait, err := m.budget.reserveTexts(1)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		e := kg.Errorf(kg.CodeRateLimited, "the server has sent as many texts to the embeddings endpoint today as it may")
		e.RetryAfter = wait
		return nil, e
	}
	call, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	list, err := m.options.Endpoint.Embed(call, []string{text})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m.counts.failed.Add(1)
		m.options.Logger.WarnContext(ctx, "query has no embedding", "error", err)
		e := kg.Errorf(kg.CodeOverloaded, "the embeddings endpoint does not answer")
		e.RetryAfter = m.options.Waits.Min
		return nil, e
	}
	return list[0], nil
}

// Stats are counts for metrics.
type Stats struct {
	Waiting int64 // texts that were read from the log and have no vectors yet
	Made    int64 // texts that got vectors since the start
	Refused int64 // texts that the endpoint does not take
	GivenUp int64 // texts at which the endpoint fails, while it answers others
	Failed  int64 // calls that failed
	Today   int64 // texts that were sent today
	Daily   int64
	Stored  int64 // vectors on disk
	Behind  int64 // revisions with texts that may have no vectors
}

// Stats returns the counts.
func (m *Maker) Stats() Stats {
	s := Stats{
		Waiting: m.counts.waiting.Load(), Made: m.counts.made.Load(), Refused: m.counts.refused.Load(), GivenUp: m.counts.givenUp.Load(), Failed: m.counts.failed.Load(),
		Today: int64(m.budget.sentToday()), Daily: int64(m.options.Daily), Stored: int64(m.made.Len()), Behind: int64(m.store.Head().Revision),
	}
	if p, err := m.store.ParsePosition(*m.position.Load()); err == nil {
		s.Behind -= int64(p.Revision)
	}
	return s
}

func (m *Maker) saveAlways(ctx context.Context) error {
	for jobs.Wait(ctx, m.options.SaveEvery, nil) {
		if err := m.Save(); err != nil {
			m.options.Logger.Warn("made vectors are not saved", "error", err)
		}
	}
	return nil
}

// Save writes the vectors. It happens from time to time, and at Close.
func (m *Maker) Save() error {
	place, err := json.Marshal(state{m.options.Endpoint.Model, m.options.Graphs.String(), *m.position.Load()})
	if err != nil {
		return err
	}
	return m.made.Save(string(place))
}
