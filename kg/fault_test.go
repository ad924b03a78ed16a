package kg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"koine/kg"
)

// Shared by the fault tests: a store with small bounds, random work on it, and a record of
// all its answers, to be compared with the answers of a store after a fault.

const (
	patience         = 60 * time.Second
	testSegmentBytes = 32 << 10
)

var tester = kg.Principal{ID: "agent://tester"}

// smallOptions make memtables, files and caches small, so that they fill up.
func smallOptions() kg.Options {
	return kg.Options{
		MemTableBytes: kg.MinMemTableBytes, BlockCacheBytes: 8 << 20, TermCache: 64, RingCommits: 8, RingBytes: 64 << 10,
		FreeBytes: func(string) (uint64, error) { return 1 << 40, nil },
	}
}

// smallLog are smallOptions with a log of several files, and more faults.
func smallLog(f kg.Faults) kg.Options {
	f.LogSegmentBytes = testSegmentBytes
	return smallOptions().WithFaults(f)
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func openStore(t testing.TB, dir string, o kg.Options) *kg.Store {
	t.Helper()
	if o.ReserveBytes == 0 && o.FreeBytes == nil {
		o.ReserveBytes = 1 // updates must not fail because the machine has little free space
	}
	s, err := kg.Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *kg.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// mustCheck fails the test unless the store takes updates and all its parts
// agree.
func mustCheck(t testing.TB, s *kg.Store) {
	t.Helper()
	if err := s.Ready(); err != nil {
		t.Fatalf("Ready: %v", err)
	}
	report, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	if !report.Clean() {
		t.Fatalf("Check found %d problems: %s", report.Total, strings.Join(report.Problems, "\n"))
	}
}

// worker makes random updates over a small vocabulary, so that statements collide.
type worker struct {
	*rand.Rand
	name string
	n    int
	// owns makes some updates change koine's own records as well.
	owns bool
}

func newWorker(seed uint64, name string) *worker {
	return &worker{Rand: rand.New(rand.NewPCG(seed, 1)), name: name}
}

// update is the next update. Every other one has an idempotency key; all carry
// their name as TaskID.
func (w *worker) update() (kg.Meta, []kg.Patch) {
	w.n++
	task := fmt.Sprintf("%s/%d", w.name, w.n)
	meta := kg.Meta{Principal: tester, TaskID: task, Justification: strings.Repeat("because ", w.IntN(3))}
	if w.n%2 == 0 {
		meta.IdempotencyKey, meta.ContentHash = task, [32]byte{byte(w.n), byte(w.n >> 8)}
	}
	// Of its own, so that every update has an effect and can be found.
	patches := []kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:task:" + task), Predicate: kg.IRI("urn:done"), Object: kg.Integer(int64(w.n))}}}
	for range w.IntN(5) {
		patches = append(patches, w.patch())
	}
	if w.owns && w.n%4 == 3 {
		patches = append(patches, w.own(task)...)
	}
	return meta, patches
}

// own is the part that a package of koine's own would commit with it: a changed policy, and
// several statements that are a proposal.
func (w *worker) own(task string) []kg.Patch {
	proposal := kg.IRI(kg.ProposalGraphPrefix + task)
	policy := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:policy:", w.n%3)), Predicate: kg.IRI("urn:readers"), Object: kg.String("agent " + task), Graph: kg.SystemGraph}
	patches := []kg.Patch{{Op: kg.Replace, Quad: policy}}
	for i, text := range []string{"open", "a reason that is long enough to need a number", "2 approvals"} {
		patches = append(patches, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: proposal, Predicate: kg.IRI(fmt.Sprint("urn:part", i)), Object: kg.String(text), Graph: proposal}})
	}
	return patches
}

func (w *worker) patch() kg.Patch {
	p := kg.Patch{Quad: kg.Quad{
		Subject: kg.IRI(fmt.Sprint("urn:s", w.IntN(3))), Predicate: kg.IRI(fmt.Sprint("urn:p", w.IntN(2))), Object: w.object(),
		Graph: []kg.Term{kg.DefaultGraph, kg.IRI("urn:g")}[w.IntN(2)],
	}, Source: kg.AgentID(fmt.Sprint("agent://a", w.IntN(4)))}
	switch n := w.IntN(10); {
	case n < 6:
		p.Op = kg.Add
		if p.HasCertainty = w.IntN(2) == 0; p.HasCertainty {
			p.Certainty = float64(w.IntN(5)) / 4
		}
		if w.IntN(4) == 0 {
			p.Provenance = []byte(fmt.Sprintf(`{"page":%d}`, w.IntN(100)))
			p.Embedding = &kg.Embedding{Model: "small", Vector: []float32{w.Float32() + 1, -w.Float32()}}
		}
	case n < 8:
		p.Op = kg.Replace
	default:
		p.Op = kg.Remove
		if w.IntN(2) == 0 {
			p.Source = ""
		}
	}
	if w.IntN(6) == 0 {
		p.Quad.Predicate, p.Quad.Object = kg.IRI(kg.RDFType), kg.IRI(fmt.Sprint("urn:class", w.IntN(3)))
	}
	return p
}

func (w *worker) object() kg.Term {
	n := w.IntN(2)
	return []kg.Term{
		kg.IRI(fmt.Sprint("urn:s", n)), kg.Blank(fmt.Sprint("b", n)), kg.String(fmt.Sprint("v", n)), kg.Integer(int64(n)),
		kg.String(strings.Repeat("a text that no id holds ", 3+n)), kg.LangString(fmt.Sprint("Wort ", n), "de"),
	}[w.IntN(6)]
}

// apply is the function of an update that applies the patches.
func apply(patches []kg.Patch) func(*kg.Tx) error {
	return func(tx *kg.Tx) error {
		for _, p := range patches {
			do := tx.Apply
			if kg.IsOwnGraph(p.Quad.Graph) {
				do = tx.ApplyOwn
			}
			if err := do(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// work makes n updates, each a commit.
func (w *worker) work(t testing.TB, s *kg.Store, n int) {
	t.Helper()
	for range n {
		meta, patches := w.update()
		if r, err := s.Update(within(t), meta, apply(patches)); err != nil || !r.Committed {
			t.Fatalf("update %s: %+v, %v", meta.TaskID, r, err)
		}
	}
}

// statements lists the store's statements as of a revision, one line each, with
// all that is known of them, in the order of the index.
func statements(t testing.TB, s *kg.Store, at kg.Revision) []string {
	t.Helper()
	snap, err := s.View(within(t), kg.View{Principal: tester, AllGraphs: true, At: at})
	if err != nil {
		t.Fatalf("View at %d: %v", at, err)
	}
	defer snap.Close()
	var lines []string
	for st, err := range snap.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatalf("Match at %d: %v", at, err)
		}
		lines = append(lines, statementLine(st))
	}
	return lines
}

// statementLine is a statement with all that is known of it.
func statementLine(st kg.Statement) string {
	line := fmt.Sprintf("%s %s %s %s .", st.Subject, st.Predicate, st.Object, st.Graph)
	for _, a := range st.Assertions {
		line += fmt.Sprintf(" # %s %g/%t %s r%d %s", a.Source, a.Certainty, a.HasCertainty, a.Time.Format(time.RFC3339Nano), a.Revision, a.Provenance)
		if a.Embedding != nil {
			line += fmt.Sprint(" ", a.Embedding)
		}
	}
	return line
}

// record is every answer of a store: about the present, every older revision, and its log.
type record struct {
	head       kg.Revision
	statements map[kg.Revision][]string
	commits    map[kg.Revision]string
}

func recordOf(t testing.TB, s *kg.Store) *record {
	t.Helper()
	r := &record{head: s.Head().Revision, statements: make(map[kg.Revision][]string), commits: make(map[kg.Revision]string)}
	for rev := kg.Revision(1); rev <= r.head; rev++ {
		r.statements[rev] = statements(t, s, rev)
	}
	for rev := s.Oldest().Revision + 1; rev <= r.head; rev++ {
		r.commits[rev] = commitText(t, s, rev)
	}
	return r
}

func commitText(t testing.TB, s *kg.Store, r kg.Revision) string {
	t.Helper()
	c, err := s.Commit(within(t), tester, r)
	if err != nil {
		t.Fatalf("Commit(%d): %v", r, err)
	}
	return wholeText(c)
}

// wholeText is all that is shown of a commit.
func wholeText(c *kg.Commit) string {
	text := *c
	text.Replaced = nil
	return fmt.Sprintf("%+v %+v", text, orNothing(c.Replaced))
}

func orNothing(r *kg.GraphReplacement) kg.GraphReplacement {
	if r == nil {
		return kg.GraphReplacement{}
	}
	return *r
}

// agrees fails the test unless the answers of the store equal the record up to the store's
// head. Some of the older revisions are compared, and all commits that can be read.
func (r *record) agrees(t testing.TB, s *kg.Store) {
	t.Helper()
	head := s.Head().Revision
	if head > r.head {
		t.Fatalf("the store is at revision %d, and %d were committed", head, r.head)
	}
	for rev, step := head, max(1, head/6); rev > 0; rev -= min(step, rev) {
		if diff := cmp.Diff(r.statements[rev], statements(t, s, rev)); diff != "" {
			t.Fatalf("the statements of revision %d at head %d (-want +got):\n%s", rev, head, diff)
		}
	}
	for rev := s.Oldest().Revision + 1; rev <= head; rev++ {
		c, err := s.Commit(within(t), tester, rev)
		if kg.CodeOf(err) == kg.CodeLogDamaged && kg.CodeOf(s.Ready()) == kg.CodeLogDamaged {
			continue
		}
		if err != nil {
			t.Fatalf("Commit(%d): %v", rev, err)
		}
		if got := wholeText(c); got != r.commits[rev] {
			t.Fatalf("commit %d is %s, was %s", rev, got, r.commits[rev])
		}
	}
}

// restored fails the test unless the store has all of the record, is consistent, and
// continues with the next revision.
func (r *record) restored(t testing.TB, s *kg.Store) {
	t.Helper()
	if got := s.Head().Revision; got != r.head {
		t.Fatalf("the store is at revision %d, want %d", got, r.head)
	}
	mustCheck(t, s)
	r.agrees(t, s)
	meta, patches := newWorker(uint64(r.head), fmt.Sprint("after", r.head)).update()
	if got, err := s.Update(within(t), meta, apply(patches)); err != nil || got.Revision != r.head+1 {
		t.Fatalf("the next update has revision %d, %v; want %d", got.Revision, err, r.head+1)
	}
	mustCheck(t, s)
}

// copyTree copies a directory except for the paths in skip. Holes stay holes.
func copyTree(t testing.TB, from, to string, skip func(path string) bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a live store tidies up meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || skip != nil && rel != "." && skip(rel) {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if err := copyFile(path, filepath.Join(to, rel)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("copying %s: %v", from, err)
	}
}

func copyFile(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return err
	}
	w, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer w.Close()
	for at := int64(0); ; {
		begin, err := r.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return w.Truncate(st.Size())
		}
		if err != nil {
			return err
		}
		if at, err = r.Seek(begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(w, begin), io.NewSectionReader(r, begin, at-begin)); err != nil {
			return err
		}
	}
}

// inIndex names the part of a data directory that is the index, for copyTree.
func inIndex(path string) bool { return path == "index" || strings.HasPrefix(path, "index/") }

// remove deletes files of a data directory.
func remove(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
