package embedding_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/backoff"
	"koine/internal/embedding"
	"koine/kg"
)

const key = "sk-secret-key"

// endpoint is an embeddings endpoint with vectors by hash. answer, if set, may answer instead.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	sent   []string // the texts of calls that were answered
	calls  int
	most   int // texts of a call
	answer func(w http.ResponseWriter, texts []string) bool
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model  string   `json:"model"`
			Input  []string `json:"input"`
			Format string   `json:"encoding_format"`
		}
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || in.Model != "hash" || in.Format != "float" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("call %s %s by %q for %q: %v", r.Method, r.URL, r.Header.Get("Authorization"), in.Model, err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls, e.most = e.calls+1, max(e.most, len(in.Input))
		if e.answer != nil && e.answer(w, in.Input) {
			return
		}
		e.sent = append(e.sent, in.Input...)
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []item
		for i, text := range in.Input {
			data = append(data, item{i, vectorOf(text)})
		}
		slices.Reverse(data) // an index says which text it is
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(e.Close)
	return e
}

func vectorOf(text string) []float32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return []float32{float32(h.Sum32()), 1, float32(len(text))}
}

func (e *endpoint) setAnswer(answer func(w http.ResponseWriter, texts []string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// texts returns what was sent, in order.
func (e *endpoint) texts() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := slices.Clone(e.sent)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (e *endpoint) countCalls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

type fixture struct {
	t     *testing.T
	dir   string
	store *kg.Store
	*embedding.Maker
	options embedding.Options
	log     *lockedBuffer

	mu   sync.Mutex
	told map[string]bool
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFixture(t *testing.T, e *endpoint, graphs ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	store, err := kg.Open(filepath.Join(dir, "data"), kg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	policy, err := embedding.ParseGraphs(graphs)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, dir: dir, store: store, log: &lockedBuffer{}, told: map[string]bool{}}
	f.options = embedding.Options{
		Endpoint: embedding.Endpoint{URL: e.URL + "/v1/embeddings", Model: "hash", Key: key}, Dir: embedding.Directory(dir), Graphs: policy,
		TextOf: func(q *kg.Quad) (string, bool) { return q.Object.Value(), q.Object.IsLiteral() },
		Made: func(_ context.Context, list []kg.Quad) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, q := range list {
				if f.Vector(&q) == nil {
					t.Errorf("told of %s without a vector", q)
				}
				f.told[q.Subject.Value()+" "+q.Object.Value()] = true
			}
			return nil
		},
		Logger: slog.New(slog.NewTextHandler(f.log, nil)), Waits: backoff.Waits{Min: time.Millisecond, Max: 5 * time.Millisecond}, FollowEvery: time.Millisecond,
	}
	return f
}

func (f *fixture) start() {
	f.t.Helper()
	m, err := embedding.Open(f.store, f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Maker = m
	m.Start()
	f.t.Cleanup(func() { _ = m.Close() })
}

func (f *fixture) stop() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) restart() {
	f.t.Helper()
	f.stop()
	f.start()
}

func statement(graph kg.Term, subject, text string) kg.Quad {
	return kg.Quad{Subject: kg.IRI("urn:" + subject), Predicate: kg.IRI("urn:label"), Object: kg.String(text), Graph: graph}
}

func (f *fixture) apply(op kg.Op, list ...kg.Quad) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
		for _, q := range list {
			if err := tx.Apply(kg.Patch{Op: op, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// await waits until a condition holds.
func (f *fixture) await(what string, holds func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s does not happen: %+v\n%s", what, f.Stats(), f.log)
		}
	}
}

func (f *fixture) awaitDone() {
	f.t.Helper()
	f.await("the end of the log", func() bool { return f.Stats().Behind == 0 })
}

var (
	open   = kg.IRI("urn:open")
	secret = kg.IRI("urn:secret")
)

// Texts of the graphs in the policy get vectors once, what was there before and what comes, also
// after a restart and when a graph is replaced. No other text is sent.
func TestMaker(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default", "urn:open*")
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"), statement(open, "b", "two"), statement(secret, "c", "SECRET"), statement(kg.DefaultGraph, "d", "one"))
	f.start()
	f.awaitDone()
	f.apply(kg.Add, statement(kg.IRI("urn:open/more"), "e", "three"), statement(secret, "f", "SECRET2"))
	f.awaitDone()
	if got := e.texts(); got != "one three two" {
		t.Errorf("sent %q", got)
	}
	f.restart()
	f.apply(kg.Add, statement(open, "g", "four"))
	if _, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, open, func(yield func(kg.Quad, error) bool) {
		_ = yield(statement(open, "h", "five"), nil) && yield(statement(open, "b", "two"), nil)
	}, kg.ReplaceOptions{}); err != nil {
		t.Fatal(err)
	}
	f.awaitDone()
	if got := strings.ReplaceAll(e.texts(), "four ", ""); got != "five one three two" { // four may be gone before it is sent
		t.Errorf("sent %q", got)
	}
	for _, c := range []struct {
		q    kg.Quad
		want []float32
	}{
		{statement(kg.DefaultGraph, "a", "one"), vectorOf("one")}, {statement(open, "b", "two"), vectorOf("two")},
		{statement(secret, "c", "one"), nil}, {statement(open, "a", "one"), nil}, // only in the other graph
	} {
		if got := f.Vector(&c.q); !slices.Equal(got, c.want) {
			t.Errorf("vector of %s is %v, want %v", c.q, got, c.want)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, want := range []string{"urn:a one", "urn:d one", "urn:b two", "urn:e three", "urn:h five"} {
		if !f.told[want] {
			t.Errorf("nobody was told of the vector of %s", want)
		}
	}
}

// While the endpoint is slow, wrong or gone, texts wait, also over a restart; then they get
// their vectors. The key is in no log.
func TestEndpointFails(t *testing.T) {
	huge := bytes.Repeat([]byte(" "), 1<<20)
	plain := func(status int, body string) func(http.ResponseWriter, []string) bool {
		return func(w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, []string) bool{
		"status 500": plain(500, "failed for key "+key),
		"status 429": plain(429, ""),
		"status 401": plain(401, "incorrect key: "+key),
		"status 302": func(w http.ResponseWriter, _ []string) bool {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(302)
			return true
		},
		"no JSON":          plain(200, "<html>"),
		"no vector":        plain(200, `{"data":[]}`),
		"more vectors":     plain(200, `{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}`),
		"wrong index":      plain(200, `{"data":[{"index":7,"embedding":[1]},{"index":7,"embedding":[1]}]}`),
		"negative index":   plain(200, `{"data":[{"index":-1,"embedding":[1]}]}`),
		"empty vector":     plain(200, `{"data":[{"embedding":[]}]}`),
		"zero vector":      plain(200, `{"data":[{"embedding":[0,0]}]}`),
		"infinite number":  plain(200, `{"data":[{"embedding":[1e39]}]}`),
		"text for numbers": plain(200, `{"data":[{"embedding":"AAAA"}]}`),
		"long vector":      plain(200, `{"data":[{"embedding":[1`+strings.Repeat(",1", kg.MaxEmbeddingNumbers)+`]}]}`),
		"huge answer":      func(w http.ResponseWriter, _ []string) bool { _, _ = w.Write(huge); return true },
		"cut answer": func(w http.ResponseWriter, _ []string) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"data":[`))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			e.setAnswer(answer)
			f := newFixture(t, e, "default")
			f.start()
			f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"))
			f.await("a retry", func() bool { return f.Stats().Failed > 2 })
			if s := f.Stats(); s.Waiting != 1 || s.Made != 0 || s.Behind != 1 {
				t.Errorf("while it fails: %+v", s)
			}
			f.stop()
			f.apply(kg.Add, statement(kg.DefaultGraph, "b", "two"))
			f.start()
			f.await("a retry", func() bool { return f.Stats().Failed > 0 })
			e.setAnswer(nil)
			f.awaitDone()
			if s := f.Stats(); strings.ReplaceAll(e.texts(), embedding.Probe+" ", "") != "one two" || s.GivenUp != 0 || s.Waiting != 0 || s.Made != 2 || s.Stored != 2 {
				t.Errorf("afterwards %q was sent: %+v", e.texts(), s)
			}
			if strings.Contains(f.log.String(), key) {
				t.Errorf("the log has the key:\n%s", f.log)
			}
		})
	}
}

// A text at which the endpoint always fails gets no vector, and holds up no others; while the
// endpoint fails at all texts, none is given up.
func TestEndpointFailsAtOneText(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"status 500":   func(w http.ResponseWriter) { w.WriteHeader(500) },
		"wrong answer": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"data":[{"embedding":[0]}]}`)) },
		"no answer":    func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			var down, tried atomic.Int64
			down.Store(1)
			e.setAnswer(func(w http.ResponseWriter, texts []string) bool {
				bad := slices.Contains(texts, "poison")
				if bad {
					tried.Add(1)
				}
				if bad = bad || down.Load() > 0; bad {
					fail(w)
				}
				return bad
			})
			f := newFixture(t, e, "default")
			f.start()
			f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"), statement(kg.DefaultGraph, "b", "poison"), statement(kg.DefaultGraph, "c", "three"))
			f.await("three times as many calls", func() bool { return e.countCalls() > 6*embedding.MaxAttempts })
			if s := f.Stats(); s.GivenUp != 0 || s.Waiting != 3 {
				t.Errorf("while it fails at all texts: %+v", s)
			}
			down.Store(0)
			tried.Store(0)
			f.awaitDone()
			f.apply(kg.Add, statement(kg.DefaultGraph, "d", "four"))
			f.awaitDone()
			if s := f.Stats(); s.GivenUp != 1 || s.Made != 3 || s.Waiting != 0 || s.Refused != 0 {
				t.Errorf("afterwards: %+v", s)
			}
			if n := tried.Load(); n > 2*embedding.MaxAttempts+2 {
				t.Errorf("the text was sent %d times", n)
			}
			if got := strings.ReplaceAll(e.texts(), embedding.Probe+" ", ""); got != "four one three" {
				t.Errorf("sent %q", got)
			}
			if log := f.log.String(); strings.Count(log, "fails at it") != 1 || strings.Contains(log, "poison") {
				t.Errorf("the log has\n%s", log)
			}
		})
	}
}

// An endpoint that is not there costs nothing of the budget.
func TestEndpointGone(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default")
	e.Close()
	f.start()
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"))
	f.await("a retry", func() bool { return f.Stats().Failed > 2 })
	f.stop()
	if s := f.Stats(); s.Today > 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// What is removed while it waits is not sent.
func TestRemovedWhileWaiting(t *testing.T) {
	e := newEndpoint(t)
	var failing sync.Once
	failed := make(chan struct{})
	e.setAnswer(func(w http.ResponseWriter, texts []string) bool {
		failing.Do(func() { close(failed) })
		w.WriteHeader(503)
		return true
	})
	f := newFixture(t, e, "default")
	f.start()
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "removed"), statement(kg.DefaultGraph, "b", "kept"))
	<-failed
	f.apply(kg.Remove, statement(kg.DefaultGraph, "a", "removed"))
	calls := e.countCalls()
	f.await("a call after the removal", func() bool { return e.countCalls() > calls+1 })
	e.setAnswer(nil)
	f.awaitDone()
	if got := e.texts(); got != "kept" {
		t.Errorf("sent %q", got)
	}
}

// Batches are bounded, and a text that the endpoint refuses does not stop the others.
func TestBatches(t *testing.T) {
	e := newEndpoint(t)
	e.setAnswer(func(w http.ResponseWriter, texts []string) bool {
		if slices.Contains(texts, "refused") {
			w.WriteHeader(400)
			return true
		}
		return false
	})
	f := newFixture(t, e, "default")
	list := []kg.Quad{statement(kg.DefaultGraph, "r", "refused"), statement(kg.DefaultGraph, "l", strings.Repeat("é", embedding.MaxTextBytes))}
	for i := range 2*embedding.MaxBatchTexts + 5 {
		list = append(list, statement(kg.DefaultGraph, fmt.Sprint(i), fmt.Sprint("text", i)))
	}
	f.apply(kg.Add, list...)
	f.start()
	f.awaitDone()
	if s := f.Stats(); s.Refused != 1 || s.Made != int64(len(list)-1) || e.most != embedding.MaxBatchTexts {
		t.Errorf("%+v; a call had %d texts", s, e.most)
	}
	for _, text := range e.sent {
		if len(text) > embedding.MaxTextBytes || strings.ContainsRune(text, '\ufffd') {
			t.Errorf("a text of %d bytes was sent", len(text))
		}
	}
}

// The bound of a day holds over restarts, for texts and for queries, and ends with the day.
func TestDailyBound(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default")
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 23, 59, 59, 9e8, time.UTC)
	f.options.Clock = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	f.options.Daily = 3
	f.start()
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"), statement(kg.DefaultGraph, "b", "two"))
	f.awaitDone()
	if v, err := f.EmbedQuery(t.Context(), "query"); err != nil || !slices.Equal(v, vectorOf("query")) {
		t.Fatal(v, err)
	}
	f.restart()
	if _, err := f.EmbedQuery(t.Context(), "query"); kg.CodeOf(err) != kg.CodeRateLimited {
		t.Errorf("a query past the bound: %v", err)
	}
	f.apply(kg.Add, statement(kg.DefaultGraph, "c", "three"))
	f.await("a text that waits", func() bool { return f.Stats().Waiting == 1 })
	if s := f.Stats(); e.texts() != "one query two" || s.Today != 3 {
		t.Errorf("sent %q: %+v", e.texts(), s)
	}
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	f.awaitDone()
	if s := f.Stats(); e.texts() != "one query three two" || s.Today != 1 {
		t.Errorf("on the next day %q was sent: %+v", e.texts(), s)
	}
}

// Another model, or another policy, makes the vectors of what is there.
func TestChangedOptions(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default")
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"), statement(open, "b", "two"))
	f.start()
	f.awaitDone()
	f.stop()
	var err error
	if f.options.Graphs, err = embedding.ParseGraphs([]string{"default", "urn:open"}); err != nil {
		t.Fatal(err)
	}
	f.start()
	f.awaitDone()
	if got := e.texts(); got != "one two" {
		t.Errorf("sent %q", got)
	}
}

// Pruning leaves the vectors of the texts that are in the store, and nothing of others in the files.
func TestPrune(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default")
	kept, gone := statement(kg.DefaultGraph, "a", "kept"), statement(kg.DefaultGraph, "b", "gone")
	f.apply(kg.Add, kept, gone)
	f.start()
	f.awaitDone()
	f.stop()
	f.apply(kg.Remove, gone)
	if err := embedding.Prune(t.Context(), f.store, f.options.Dir, f.options.TextOf); err != nil {
		t.Fatal(err)
	}
	number := binary.LittleEndian.AppendUint32(nil, math.Float32bits(vectorOf("gone")[0]))
	err := filepath.WalkDir(f.options.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, number) {
			t.Errorf("%s has the vector of a text that is gone", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.start()
	if f.Vector(&gone) != nil || !slices.Equal(f.Vector(&kept), vectorOf("kept")) {
		t.Errorf("vectors after pruning: %v, %v", f.Vector(&gone), f.Vector(&kept))
	}
	f.awaitDone()
	if got := e.texts(); got != "gone kept" {
		t.Errorf("sent %q", got)
	}
}

// A backup gets the saved vectors, beside a Maker that saves, and its errors come back. Vectors that
// are damaged do not keep a backup from being made.
func TestAttachMade(t *testing.T) {
	e := newEndpoint(t)
	f := newFixture(t, e, "default")
	attached := func() (list []string) {
		t.Helper()
		err := embedding.AttachMade(f.dir, f.options.Logger, func(path string, content io.Reader) error {
			b, err := io.ReadAll(content)
			if saved, _ := os.ReadFile(filepath.Join(f.dir, path)); !bytes.Equal(b, saved) {
				t.Errorf("%s is not the file", path)
			}
			list = append(list, path)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return list
	}
	if list := attached(); list != nil {
		t.Errorf("before the first vector: %q", list)
	}
	f.apply(kg.Add, statement(kg.DefaultGraph, "a", "one"))
	f.options.SaveEvery = time.Hour
	f.start()
	f.awaitDone()
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	want := []string{"embeddings/vectors/manifest", "embeddings/vectors/chunk-00000001"}
	if list := attached(); !slices.Equal(list, want) {
		t.Errorf("attached %q, want %q", list, want)
	}
	full := errors.New("full")
	if err := embedding.AttachMade(f.dir, f.options.Logger, func(string, io.Reader) error { return full }); !errors.Is(err, full) {
		t.Errorf("AttachMade: %v, want %v", err, full)
	}
	f.stop()
	if err := os.WriteFile(filepath.Join(f.dir, want[0]), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list := attached(); list != nil || !strings.Contains(f.log.String(), "the backup does not contain them") {
		t.Errorf("attached %q of a damaged index\n%s", list, f.log)
	}
}

func TestParseGraphs(t *testing.T) {
	for _, list := range [][]string{nil, {""}, {"a*b"}, {"a b"}, {"**"}} {
		if _, err := embedding.ParseGraphs(list); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%q: %v", list, err)
		}
	}
	all := []string{"default", "messages", "urn:open", "urn:team:*", "*"}
	for graph, want := range map[kg.Term]string{
		kg.DefaultGraph: "default", open: "urn:open *", secret: "*", kg.IRI("urn:team:a"): "urn:team:* *",
		kg.IRI(kg.JournalGraphPrefix + "x"): "messages", kg.IRI(kg.OwnGraphPrefix + "policies"): "",
	} {
		var got []string
		for _, name := range all {
			if p, err := embedding.ParseGraphs([]string{name}); err != nil {
				t.Fatal(err)
			} else if p.Allow(graph) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("graph %q is allowed by %q, want %q", graph, got, want)
		}
	}
}

func TestCheckEndpoint(t *testing.T) {
	for _, e := range []embedding.Endpoint{
		{URL: "ftp://x/v1", Model: "m"}, {URL: "http://", Model: "m"}, {URL: "http://a:" + key + "@x/", Model: "m"}, {URL: "http://a:" + key + "@x:%/", Model: "m"}, {URL: "http://x/v1/embeddings"},
	} {
		if err := e.Check(); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
