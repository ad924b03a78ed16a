package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/rdf"
	"koine/kg"
)

// loadingOf is a load of files, which are written first.
func loadingOf(t *testing.T, store *kg.Store, said io.Writer, resume bool, files map[string]string) *loadJob {
	t.Helper()
	l := &loadJob{c: &LoadCommand{Resume: resume, Why: "Load of {file}"}, t: cli.Terminal{Err: said}, store: store, graph: kg.DefaultGraph}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.sources = append(l.sources, &source{name: name, path: filepath.Join(dir, name), format: rdf.NQuads, size: int64(len(text))})
	}
	slices.SortFunc(l.sources, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	t.Cleanup(func() {
		for _, s := range l.sources {
			s.close()
		}
	})
	l.work = newLoadProgress(l.sources)
	return l
}

// TestInterruptedLoadSaysWhereItWas ends loads as Ctrl-C does. One line on standard error
// has the place in the files, and the exit code is that of an interruption.
func TestInterruptedLoadSaysWhereItWas(t *testing.T) {
	const each = 60
	files := map[string]string{}
	for _, name := range []string{"a.nq", "b.nq"} {
		var text strings.Builder
		for i := range each {
			fmt.Fprintf(&text, "<urn:s%d> <urn:in> \"%s\" .\n", i, name)
		}
		files[name] = text.String()
	}
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	complaint := func(err error) string {
		t.Helper()
		var i cli.Interruption
		if code := cli.ExitCode(err); code != cli.ExitInterrupted || !errors.As(err, &i) {
			t.Errorf("%v: exit code %d, want %d", err, code, cli.ExitInterrupted)
		}
		return i.Standing
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = loadingOf(t, store, io.Discard, false, files).run(ended)
	if got, want := complaint(err), "while a.nq was checked; nothing was written"; got != want {
		t.Errorf("while it is checked: %q, want %q", got, want)
	}

	l := loadingOf(t, store, io.Discard, false, files)
	for _, s := range l.sources {
		if _, _, err := l.checkFile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := complaint(l.interruptedError(ended.Err(), kg.LoadReport{})), "before anything was written"; got != want {
		t.Errorf("before the first commit: %q, want %q", got, want)
	}
	const most, commits = 70, 7
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	taken := make(chan struct{}, each)
	source := func(yield func(kg.Quad, error) bool) {
		n := 0
		for q, err := range l.unloadedQuads(ctx) {
			if n == most {
				break
			}
			if n++; !yield(q, err) {
				return
			}
		}
		for range commits { // all that was read is in the load
			<-taken
		}
		interrupt()
		if err := store.WaitFor(t.Context(), commits); err != nil {
			t.Error(err)
		}
	}
	meta := kg.Meta{Principal: l.c.LocalPrincipal(), SessionID: l.sessionID()}
	report, err := store.Load(ctx, meta, source, kg.LoadOptions{CommitQuads: 10, Place: l.formatPosition, Progress: func(uint64) { taken <- struct{}{} }})
	want := "at statement 11 of 60 in b.nq: the 70 before it are stored, at revision 7; run the same command with --resume to continue"
	if got := complaint(l.interruptedError(err, report)); got != want {
		t.Errorf("in the second file: %q, want %q", got, want)
	}
	var said strings.Builder
	if err := loadingOf(t, store, &said, true, files).run(t.Context()); err != nil || !strings.Contains(said.String(), "resuming at statement 11 of 60 in b.nq") {
		t.Errorf("it does not go on there: %v, %q", err, said.String())
	}
}

// TestLoadResumes interrupts a load in its second file: it reports its place, continues
// there with the same blank nodes, and changes nothing if it is complete.
func TestLoadResumes(t *testing.T) {
	const each = 60
	files := map[string]string{}
	for _, name := range []string{"a.nq", "b.nq"} {
		var text strings.Builder
		for i := range each {
			fmt.Fprintf(&text, "_:b%d <urn:in> \"%s %d\" .\n", i%7, name, i)
		}
		files[name] = text.String()
	}
	open := func() *kg.Store {
		s, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	at, whole := open(), open()
	var said strings.Builder
	if err := loadingOf(t, whole, &said, false, files).run(t.Context()); err != nil {
		t.Fatal(err)
	}

	l := loadingOf(t, at, &said, false, files)
	for _, s := range l.sources {
		if _, _, err := l.checkFile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("the plug was pulled")
	meta := kg.Meta{Principal: l.c.LocalPrincipal(), SessionID: l.sessionID()}
	report, err := at.Load(t.Context(), meta, until(l.unloadedQuads(t.Context()), each+15, broken), kg.LoadOptions{CommitQuads: 10, Place: l.formatPosition})
	err = l.interruptedError(err, report)
	want := "stopped at statement 16 of 60 in b.nq: the 75 before it are stored, at revision 8;"
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), want) {
		t.Errorf("the load failed with %v, want %q", err, want)
	}

	said.Reset()
	if err := loadingOf(t, at, &said, true, files).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"resuming at statement 16 of 60 in b.nq, after revision 8", "45 statements, 45 of them new; revision 9"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("said %q, want %q", said.String(), want)
		}
	}
	if got, want := statementsOf(t, at), statementsOf(t, whole); !slices.Equal(got, want) {
		t.Errorf("%d statements, want %d, or others", len(got), len(want))
	}
	said.Reset()
	if err := loadingOf(t, at, &said, true, files).run(t.Context()); err != nil || !strings.Contains(said.String(), "nothing to resume: all 120 statements") {
		t.Errorf("once more: %v, %q", err, said.String())
	}
	files["b.nq"] += "<urn:s> <urn:p> <urn:o> .\n"
	if err := loadingOf(t, at, &said, true, files).run(t.Context()); !errors.As(err, new(cli.UsageError)) {
		t.Errorf("other files: %v, want an error of usage", err)
	}
}

// TestLoadSession shows that a load is the same one only if its files are read in the same
// way.
func TestLoadSession(t *testing.T) {
	files := map[string]string{"a.ttl": "<a> <urn:p> <b> ."}
	session := func(change func(*loadJob)) string {
		l := loadingOf(t, nil, io.Discard, false, files)
		l.sources[0].format, l.sources[0].base = rdf.Turtle, "file:///one/a.ttl"
		change(l)
		return l.sessionID()
	}
	same := session(func(*loadJob) {})
	if again := session(func(*loadJob) {}); again != same {
		t.Errorf("the same load is %s and %s", same, again)
	}
	for name, change := range map[string]func(*loadJob){
		"another base":      func(l *loadJob) { l.sources[0].base = "file:///two/a.ttl" },
		"IRIs are mended":   func(l *loadJob) { l.c.FixIRIs = true },
		"lines are skipped": func(l *loadJob) { l.c.ContinueOnError = true },
		"a context": func(l *loadJob) {
			l.c.reading.Contexts = &rdf.JSONLDContexts{}
			if err := l.c.reading.Contexts.Add("http://example.org/c", []byte(`{"@context": {}}`)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if session(change) == same {
			t.Errorf("%s: it is the same load", name)
		}
	}
	lines := func(base string) string {
		return session(func(l *loadJob) { l.sources[0].format, l.sources[0].base = rdf.NQuads, base })
	}
	if lines("file:///one/a.nq") != lines("file:///two/a.nq") {
		t.Error("N-Quads that were moved are another load")
	}
}

// until gives the first n, and then an error.
func until(quads iter.Seq2[kg.Quad, error], n int, err error) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		left := n
		for q, failed := range quads {
			if left--; left < 0 {
				yield(kg.Quad{}, err)
				return
			}
			if !yield(q, failed) {
				return
			}
		}
	}
}

func statementsOf(t *testing.T, s *kg.Store) (out []string) {
	t.Helper()
	snap, err := s.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for st, err := range snap.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(st.Quad))
	}
	slices.Sort(out)
	return out
}

// TestTimeLeft simulates a load whose parts cost half or twice their estimated work, in one
// and in several rounds: from the first tenth on, the reported remaining time is right
// within a half.
func TestTimeLeft(t *testing.T) {
	for _, rounds := range []int{1, 3} {
		for _, faster := range []float64{0.7, 1, 1.4} {
			sources := []*source{{size: 600}, {size: 400}}
			w := newLoadProgress(sources)
			now, costs := w.began, [...]float64{checkCost, loadCost * faster, indexCost}
			total := 1000 * (costs[0] + costs[1] + costs[2])
			spent := 0.0
			look := func(cost float64) {
				spent += cost
				now = now.Add(time.Duration(cost * float64(time.Second)))
				left, want := w.timeLeft(now).Seconds(), total-spent
				if spent >= total/10 && want > total/100 && (left > 1.5*want || left < want/1.5) {
					t.Errorf("%d rounds, %g: after %.0f of %.0f: %.0f left, want %.0f", rounds, faster, spent, total, left, want)
				}
			}
			for _, s := range sources {
				part := w.startCheck(s)
				for n := int64(100); n <= s.size; n += 100 {
					part.setBytesRead(n)
					look(100 * costs[0])
				}
			}
			index := w.indexReporter(cli.Terminal{Err: io.Discard, Quiet: true})
			read := 0
			for _, s := range sources {
				part := w.startLoad(s)
				for n := int64(100); n <= s.size; n += 100 {
					part.setBytesRead(n)
					look(100 * costs[1])
					if read++; read%(10/rounds) == 0 || read == 10 {
						size := 100 * float64(read%(10/rounds))
						if read%(10/rounds) == 0 {
							size = 100 * float64(10/rounds)
						}
						for done := uint64(1); done <= 10; done++ {
							index(done, 10)
							look(size / 10 * costs[2])
						}
					}
				}
			}
			w.finish()
		}
	}
}
