package kg

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// Caches from one statement to the next are dropped with an undone update: its numbers
// become those of other terms.
func TestUndoneNumbersAreNotRemembered(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Clock: func() time.Time { return time.UnixMilli(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	about := func(subject, graph string, fail error) func(*Tx) error {
		return func(tx *Tx) error {
			quads := []Quad{{Subject: IRI("urn:" + subject), Predicate: IRI("urn:says"), Object: String(subject + "one"), Graph: IRI("urn:" + graph)}}
			quads = append(quads, quads[0])
			quads[1].Object = String(subject + "two")
			if fail != nil { // other numbers than the next one gives
				quads = append([]Quad{{Subject: IRI("urn:x"), Predicate: IRI("urn:says"), Object: String("x"), Graph: IRI("urn:" + graph)}}, quads...)
			}
			for _, q := range quads {
				if err := tx.Apply(Patch{Op: Add, Quad: q, Source: AgentID("agent://" + strings.TrimPrefix(q.Subject.Value(), "urn:"))}); err != nil {
					return err
				}
			}
			return fail
		}
	}
	// They are one group: another update blocks the committer until they wait.
	undone := errors.New("undone")
	started, release := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = s.Update(context.Background(), Meta{}, func(*Tx) error { close(started); <-release; return nil })
	}()
	<-started
	results := make(chan error)
	for i, fn := range []func(*Tx) error{about("a", "g", nil), about("b", "h", undone), about("b", "h", nil), about("c", "h", nil)} {
		go func() {
			_, err := s.Update(context.Background(), Meta{}, fn)
			results <- err
		}()
		for len(s.queue) <= i {
			time.Sleep(time.Millisecond)
		}
	}
	close(release)
	failed := 0
	for range 4 {
		if err := <-results; errors.Is(err, undone) {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failed != 1 {
		t.Errorf("%d updates were undone, want one", failed)
	}
	if report, err := s.Maintenance().Check(context.Background(), CheckOptions{}); err != nil || len(report.Problems) != 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	snap, err := s.View(context.Background(), View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, name := range []string{"a", "b", "c"} {
		n := 0
		for st, err := range snap.Match(Pattern{Subject: IRI("urn:" + name)}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; st.Object != String(name+"one") && st.Object != String(name+"two") {
				t.Errorf("%s says %s", name, st.Object)
			}
		}
		if n != 2 {
			t.Errorf("%d statements about %s, want 2", n, name)
		}
	}
}
