package kg_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// The texts that are erased. The long one is compressed in the log.
const eraseMarker = "the-name-of-somebody"

var longMarker = strings.Repeat(eraseMarker+" and so on ", 2000)

func eraseQuad(subject, predicate string, object kg.Term, graph kg.Term) kg.Quad {
	return kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI(predicate), Object: object, Graph: graph}
}

// personal fills a store with random work and with content to erase in between: added,
// backed by several, replaced, removed, and quoted.
func personal(t *testing.T, s *kg.Store) {
	t.Helper()
	w := newWorker(41, "w")
	who := kg.IRI("urn:person:1")
	g := kg.IRI("urn:g")
	n := 0
	say := func(why string, patches ...kg.Patch) {
		t.Helper()
		n++
		meta := kg.Meta{Principal: tester, Justification: why, IdempotencyKey: fmt.Sprint("key ", n), ContentHash: [32]byte{9}}
		if _, err := s.Update(within(t), meta, apply(patches)); err != nil {
			t.Fatal(err)
		}
	}
	add := func(source, object string) kg.Patch {
		return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: who, Predicate: kg.IRI("urn:name"), Object: kg.String(object), Graph: g}, Source: kg.AgentID(source)}
	}
	w.work(t, s, 4)
	say("one", add("agent://a1", eraseMarker), add("agent://gone", longMarker), kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s0"), Predicate: kg.IRI("urn:knows"), Object: who}})
	w.work(t, s, 3)
	say("because of "+eraseMarker, add("agent://gone", eraseMarker))
	w.work(t, s, 3)
	say("two", add("agent://a2", eraseMarker))
	replace := add("agent://a1", eraseMarker+"-now")
	replace.Op = kg.Replace
	say("three", replace)
	w.work(t, s, 3)
	remove := add("agent://gone", longMarker)
	remove.Op = kg.Remove
	say("four", remove, add("agent://gone", "another name that is long enough"))
	w.work(t, s, 4)
	p := add("agent://gone", "kept by nobody else, long enough")
	p.Provenance = []byte(`{"said":"` + eraseMarker + `"}`)
	p.Embedding = &kg.Embedding{Model: eraseMarker, Vector: []float32{0.25, -1}}
	say("five", p)
	w.work(t, s, 2)
}

// findBytes lists the files below a directory that contain the text, in the clear or in an
// entry of the log or a checkpoint.
func findBytes(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(logBytes(t, dir), hexOf(text)) {
		found = append(found, "log entries")
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
	for _, path := range paths {
		text2, err := kg.CheckpointText(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text2, text) {
			found = append(found, path)
		}
	}
	return found
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// withoutLines is a list of statements' lines without the erased ones.
func withoutLines(lines []string, drop func(line string) (string, bool)) (out []string) {
	for _, l := range lines {
		if l, keep := drop(l); keep {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	return out
}

// Erased content is in no file any more, nor readable at any revision; everything else is
// unchanged, under the same revisions, in a store that is consistent and another one for
// its clients. Erasing it again does nothing.
func TestErase(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	s := openStore(t, whole, tinyLog())
	personal(t, s)
	mustClose(t, s)
	cut := filepath.Join(t.TempDir(), "cut")
	copyTree(t, whole, cut, nil)
	s = openStore(t, cut, tinyLog())
	if err := s.Maintenance().CutLog(within(t), 9); err != nil {
		t.Fatal(err)
	}
	newWorker(42, "late").work(t, s, 4)
	again := kg.Patch{Op: kg.Add, Quad: eraseQuad("urn:person:1", "urn:name", kg.String(eraseMarker), kg.IRI("urn:g")), Source: "agent://a3"}
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{again})); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	dirs := append([]string{whole, cut}, replacedDirs(t, whole)...)
	before := make(map[string]beforeErasing)
	for _, dir := range dirs {
		before[dir] = readBeforeErasing(t, dir)
	}
	person, name, g := kg.IRI("urn:person:1"), kg.IRI("urn:name"), kg.IRI("urn:g")
	gone := func(part string) func(string) (string, bool) {
		return func(l string) (string, bool) { return l, !strings.Contains(l, part) }
	}
	for what, row := range map[string]struct {
		options kg.EraseOptions
		line    func(string) (string, bool)
		markers []string
	}{
		"a subject":               {kg.EraseOptions{Pattern: kg.Pattern{Subject: person}}, func(l string) (string, bool) { return l, !strings.HasPrefix(l, "<urn:person:1>") }, []string{eraseMarker}},
		"a pattern":               {kg.EraseOptions{Pattern: kg.Pattern{Subject: person, Predicate: name, Object: kg.String(eraseMarker)}}, gone(`"` + eraseMarker + `" `), nil},
		"a graph":                 {kg.EraseOptions{Pattern: kg.Pattern{Graph: g}}, gone(" <urn:g> ."), []string{eraseMarker}},
		"a predicate":             {kg.EraseOptions{Pattern: kg.Pattern{Predicate: name}}, gone("<urn:name>"), []string{eraseMarker, "urn:name"}},
		"a source":                {kg.EraseOptions{Source: "gone"}, withoutAgent("agent://gone"), []string{"agent://gone", longMarker, "kept by nobody else"}},
		"a source of random work": {kg.EraseOptions{Source: "agent://a1"}, withoutAgent("agent://a1"), []string{"agent://a1"}},
	} {
		for i, dir := range dirs {
			replaced := i > 1
			if replaced && what != "a subject" && what != "a source" && (row.options.Source == "" || !strings.HasSuffix(dir, "within")) {
				continue
			}
			t.Run(what+" "+filepath.Base(dir), func(t *testing.T) {
				spoiled := filepath.Join(t.TempDir(), "spoiled")
				copyTree(t, dir, spoiled, nil)
				was := before[dir]
				want := make(map[kg.Revision][]string)
				for r, lines := range was.lines {
					want[r] = withoutLines(lines, row.line)
				}
				try := row.options
				try.DryRun = true
				log := logBytes(t, spoiled)
				trial, err := kg.Erase(within(t), spoiled, try)
				if err != nil || trial.Changes+trial.Rows == 0 || trial.Epoch != was.epoch || logBytes(t, spoiled) != log {
					t.Fatalf("a trial: %+v, %v", trial, err)
				}
				report, err := kg.Erase(within(t), spoiled, row.options)
				if err != nil || report.Changes != trial.Changes || report.Rows != trial.Rows || report.Commits != trial.Commits || report.Epoch == was.epoch {
					t.Fatalf("Erase: %+v, %v; the trial said %+v", report, err, trial)
				}
				for _, m := range row.markers {
					if replaced && strings.HasPrefix(m, "agent:") {
						continue // it made commits there, and those keep their author
					}
					if found := findBytes(t, spoiled, m); found != nil {
						t.Errorf("%.40q is still in %v", m, found)
					}
				}
				s := openStore(t, spoiled, tinyLog())
				if s.Head().Revision != was.head || s.Oldest().Revision != was.oldest || s.Epoch() != report.Epoch {
					t.Errorf("revision %d, oldest %d, want %d, %d", s.Head().Revision, s.Oldest().Revision, was.head, was.oldest)
				}
				if _, err := s.ParsePosition(was.token); kg.CodeOf(err) != kg.CodePositionGone {
					t.Errorf("a position of before: %v", err)
				}
				mustCheck(t, s)
				for r := kg.Revision(1); r <= was.head; r++ {
					got := statements(t, s, r)
					slices.Sort(got)
					equalLines(t, fmt.Sprint("revision ", r), want[r], got)
				}
				mustClose(t, s)
				if r, err := kg.Erase(within(t), spoiled, row.options); err != nil || r.Changes != 0 || r.Rows != 0 || r.Epoch != report.Epoch {
					t.Errorf("Erase again: %+v, %v", r, err)
				}
				s = openStore(t, spoiled, tinyLog())
				newWorker(43, "after").work(t, s, 3)
				mustCheck(t, s)
				mustClose(t, s)
				rebuild := tinyLog()
				rebuild.Rebuild = true
				mustCheck(t, openStore(t, spoiled, rebuild))
			})
		}
	}
}

// beforeErasing is the content of a directory, by the revisions at which it is read.
type beforeErasing struct {
	lines        map[kg.Revision][]string
	epoch        kg.Epoch
	head, oldest kg.Revision
	token        string // of the position of the head
}

func readBeforeErasing(t *testing.T, dir string) beforeErasing {
	t.Helper()
	read := filepath.Join(t.TempDir(), "read") // opening may change the directory
	copyTree(t, dir, read, nil)
	s := openStore(t, read, tinyLog())
	defer mustClose(t, s)
	b := beforeErasing{make(map[kg.Revision][]string), s.Epoch(), s.Head().Revision, s.Oldest().Revision, s.FormatPosition(s.Head())}
	for r := kg.Revision(1); r <= b.head; r++ {
		b.lines[r] = statements(t, s, r)
	}
	return b
}

// replacedDirs are copies of a directory in which the graph urn:g was replaced as a whole,
// changed, and replaced again, and another was deleted and created again: with the whole
// log, and with one that was cut after that, within the last replacement, and before it.
func replacedDirs(t *testing.T, from string) (dirs []string) {
	t.Helper()
	o := smallOptions().WithFaults(kg.Faults{LogSegmentBytes: 1 << 10, WholeFrom: 3, WholeCommit: 2})
	g := kg.IRI("urn:g")
	for _, name := range []string{"replaced", "replaced, cut before", "replaced, cut within", "replaced, cut behind"} {
		dir := filepath.Join(t.TempDir(), name)
		copyTree(t, from, dir, nil)
		s := openStore(t, dir, o)
		cutLog := func(at string) {
			if name != "replaced, cut "+at {
				return
			}
			if err := s.Maintenance().CutLog(within(t), s.Head().Revision-1); err != nil {
				t.Error(err)
			}
			if s.Oldest().Revision == 0 {
				t.Error("the log was not cut")
			}
		}
		replace := func(source kg.AgentID, step int) {
			var quads []kg.Quad
			n := 0
			snap, err := s.View(within(t), kg.View{Principal: tester})
			if err != nil {
				t.Fatal(err)
			}
			for st, err := range snap.Match(kg.Pattern{Graph: g}) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n%4 != step { // much stays
					quads = append(quads, st.Quad)
				}
			}
			snap.Close()
			for i := range 4 {
				quads = append(quads, eraseQuad(fmt.Sprint("urn:s", i+step), "urn:came", kg.String(fmt.Sprint("with a replacement, number ", i)), g))
			}
			quads = append(quads, eraseQuad("urn:person:1", "urn:name", kg.String(fmt.Sprint(eraseMarker, step)), g))
			read := 0
			r, err := s.ReplaceGraph(within(t), kg.Meta{Principal: kg.SystemPrincipal(), Actor: source, Justification: "replaced"}, g, func(yield func(kg.Quad, error) bool) {
				for _, q := range quads {
					if read++; read == 9 && step == 2 {
						cutLog("within")
					}
					if !yield(q, nil) {
						return
					}
				}
			}, kg.ReplaceOptions{})
			if err != nil || !r.Whole || read < 9 {
				t.Fatalf("%+v, %v of %d", r, err, read)
			}
		}
		w := newWorker(44, "replaced")
		replace("agent://gone", 0)
		w.work(t, s, 6)
		replace("agent://a1", 1)
		w.work(t, s, 5)
		if _, err := s.DropGraph(within(t), kg.Meta{Principal: tester}, kg.IRI("urn:other"), kg.DropOptions{}); err != nil {
			t.Fatal(err)
		}
		cutLog("before")
		replace("agent://gone", 2)
		w.work(t, s, 4)
		cutLog("behind")
		w.work(t, s, 4)
		mustCheck(t, s)
		mustClose(t, s)
		dirs = append(dirs, dir)
	}
	return dirs
}

// withoutAgent takes an agent's assertions out of a line, and the line with the
// last of them.
func withoutAgent(agent string) func(string) (string, bool) {
	return func(l string) (string, bool) {
		parts := strings.Split(l, " # ")
		kept := slices.DeleteFunc(parts[1:], func(p string) bool { return strings.HasPrefix(p, agent+" ") })
		return strings.Join(append(parts[:1:1], kept...), " # "), len(kept) > 0
	}
}

// A commit keeps its number, time and author, loses its justification, and its key
// is refused for another update.
func TestErasedCommit(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	meta := kg.Meta{Principal: tester, Justification: "it is about " + eraseMarker, IdempotencyKey: "key", ContentHash: [32]byte{1}}
	patch := kg.Patch{Op: kg.Add, Quad: eraseQuad("urn:person:1", "urn:name", kg.String(eraseMarker), kg.DefaultGraph)}
	r, err := s.Update(within(t), meta, apply([]kg.Patch{patch}))
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if _, err := kg.Erase(within(t), dir, kg.EraseOptions{Pattern: kg.Pattern{Subject: kg.IRI("urn:person:1")}}); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, tinyLog())
	c, err := s.Commit(within(t), tester, r.Revision)
	if err != nil || len(c.Changes) != 0 || c.Justification != "erased" || !c.Time.Equal(r.Time) || c.Principal != tester.ID {
		t.Errorf("the commit is %+v, %v", c, err)
	}
	if _, err := s.Update(within(t), meta, apply([]kg.Patch{patch})); kg.CodeOf(err) != kg.CodeIdempotencyConflict {
		t.Errorf("the same again: %v, want IDEMPOTENCY_CONFLICT", err)
	}
}

// A stop at any place between making the new store and the end of the exchange
// leaves one of the two, whole.
func TestEraseKilled(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	personal(t, s)
	if err := keepPrefixes(s, map[string]string{"ex": "https://example.org/"}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	o := kg.EraseOptions{Pattern: kg.Pattern{Subject: kg.IRI("urn:person:1")}}
	for _, keep := range []bool{false, true} {
		o.Keep = keep
		done := false
		for stop := 0; !done; stop++ {
			if keep && stop%4 > 1 {
				continue
			}
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			err := kg.EraseStopped(within(t), spoiled, o, stop)
			done = err == nil
			if err != nil && !errors.Is(err, kg.ErrStopped) {
				t.Fatalf("stopped after %d: %v", stop, err)
			}
			s := openStore(t, spoiled, tinyLog())
			mustCheck(t, s)
			if len(s.KeptPrefixes()) != 1 {
				t.Errorf("stopped after %d: prefixes %v", stop, s.KeptPrefixes())
			}
			lines := strings.Join(statements(t, s, 0), "\n")
			mustClose(t, s)
			if erased := !strings.Contains(lines, "<urn:person:1> <urn:name>"); erased != (stop > 0) {
				t.Errorf("stopped after %d: erased %t", stop, erased)
			}
			for _, name := range []string{"erasing", "erasing.ready"} {
				if _, err := os.Stat(filepath.Join(spoiled, name)); err == nil {
					t.Errorf("stopped after %d: %s is left", stop, name)
				}
			}
			if _, err := os.Stat(filepath.Join(spoiled, kg.KeptName, "koine.json")); (err == nil) != (keep && stop > 0) {
				t.Errorf("stopped after %d, keep %t: %v", stop, keep, err)
			}
			if !keep {
				if found := findBytes(t, spoiled, eraseMarker); stop > 0 && found != nil {
					t.Errorf("stopped after %d: still in %v", stop, found)
				}
				continue
			}
			if stop == 0 {
				continue
			}
			kept := openStore(t, filepath.Join(spoiled, kg.KeptName), tinyLog())
			mustCheck(t, kept)
			mustClose(t, kept)
			if _, err := kg.Erase(within(t), spoiled, o); kg.CodeOf(err) != kg.CodeInvalid {
				t.Errorf("Erase over what was kept: %v", err)
			}
		}
	}
}

// koine's own records are erased only by name.
func TestEraseLeavesOwnGraphs(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	own := kg.IRI(kg.OwnGraphPrefix + "test")
	_, err := s.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		return errors.Join(tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: eraseQuad("urn:person:1", "urn:name", kg.String(eraseMarker), own)}),
			tx.Apply(kg.Patch{Op: kg.Add, Quad: eraseQuad("urn:person:1", "urn:name", kg.String("in the default graph"), kg.DefaultGraph)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	for graph, want := range map[kg.Term]uint64{{}: 1, own: 1} {
		r, err := kg.Erase(within(t), dir, kg.EraseOptions{Pattern: kg.Pattern{Subject: kg.IRI("urn:person:1"), Graph: graph}, DryRun: true})
		if err != nil || r.Changes != want {
			t.Errorf("graph %v: %+v, %v", graph, r, err)
		}
	}
	for _, o := range []kg.EraseOptions{{}, {Source: "not an agent id"}} {
		if _, err := kg.Erase(within(t), dir, o); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%+v: %v, want INVALID", o, err)
		}
	}
	s = openStore(t, dir, tinyLog())
	if _, err := kg.Erase(within(t), dir, kg.EraseOptions{Source: "x"}); kg.CodeOf(err) != kg.CodeDataDirInUse {
		t.Errorf("of an open store: %v", err)
	}
	mustClose(t, s)
	remove(t, dir, "log")
	if _, err := kg.Erase(within(t), dir, kg.EraseOptions{Source: "x"}); err == nil {
		t.Error("of a store without its log: no error")
	} else if kg.CodeOf(err) != kg.CodeLogDamaged {
		t.Errorf("of a store without its log: %v, want LOG_DAMAGED", err)
	}
}
