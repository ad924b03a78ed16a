package changefeed_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

func open(t *testing.T) *kg.Store {
	t.Helper()
	s, err := kg.Open(t.TempDir(), kg.Options{FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func add(t *testing.T, s *kg.Store, subject string) kg.Receipt {
	t.Helper()
	receipt, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:" + subject), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func start(t *testing.T, s *kg.Store, filter kg.Filter, from operation.Resume) *changefeed.Following {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f, err := changefeed.Start(ctx, s, changefeed.Statements{Filter: filter}, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// format formats an event: its kind and its subject.
func format(e operation.Event) string {
	if e.UpToDate {
		return fmt.Sprintf("up to date at %d", e.Position.Revision)
	}
	text := e.Changes[0].Op.String() + " " + e.Changes[0].Statement.Subject.Value()
	if e.Snapshot {
		text += " stands"
	}
	if e.SnapshotEnd {
		text += fmt.Sprintf(", the last at %d", e.Position.Revision)
	}
	return text
}

// Writes during the delivery of a snapshot come after it, once, and the position is
// unknown until the snapshot is delivered.
func TestSnapshotThenChanges(t *testing.T) {
	s := open(t)
	add(t, s, "a")
	add(t, s, "b")
	f := start(t, s, kg.Filter{}, operation.Resume{Start: operation.Snapshot})
	add(t, s, "c") // registered, but nothing read yet
	want := []string{"add urn:a stands", "add urn:b stands, the last at 2", "add urn:c", "add urn:d"}
	i := 0
	for e, err := range f.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if got := format(e); got != want[i] {
			t.Fatalf("event %d: got %s, want %s", i, got, want[i])
		}
		position := f.Position()
		if e.Snapshot != (position == kg.Position{}) {
			t.Errorf("at %s: position %+v", want[i], position)
		}
		if i == 0 {
			add(t, s, "d") // in the middle of the snapshot
		}
		if i++; i == len(want) {
			break
		}
	}
	if i != len(want) {
		t.Errorf("ended after %d events, want %d", i, len(want))
	}
}

// A statement of the snapshot comes once, however many patterns it matches.
func TestSnapshotOfSeveralPatterns(t *testing.T) {
	s := open(t)
	for _, subject := range []string{"a", "b", "c"} {
		add(t, s, subject)
	}
	filter := kg.Filter{Patterns: []kg.Pattern{
		{Subject: kg.IRI("urn:b")}, {Subject: kg.IRI("urn:none")}, {Predicate: kg.IRI("urn:p"), Subject: kg.IRI("urn:a")}, {Subject: kg.IRI("urn:b"), Object: kg.Integer(1)},
	}}
	f := start(t, s, filter, operation.Resume{Start: operation.Snapshot})
	var got []string
	for e, err := range f.Events() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, format(e))
		if e.SnapshotEnd {
			break
		}
	}
	if want := []string{"add urn:b stands", "add urn:a stands, the last at 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStarts(t *testing.T) {
	s := open(t)
	first := add(t, s, "a")
	add(t, s, "b")
	for _, row := range []struct {
		name   string
		filter kg.Filter
		from   operation.Resume
		want   string // the first event, with "c" written after the start
	}{
		{"unsaid", kg.Filter{}, operation.Resume{}, "add urn:c"},
		{"latest", kg.Filter{}, operation.Resume{Start: operation.Latest}, "add urn:c"},
		{"earliest", kg.Filter{}, operation.Resume{Start: operation.Earliest}, "add urn:a"},
		{"after the first", kg.Filter{}, operation.Resume{Start: operation.After, After: first.Position}, "add urn:b"},
		{"a snapshot of nothing", kg.Filter{Patterns: []kg.Pattern{{Subject: kg.IRI("urn:none")}}}, operation.Resume{Start: operation.Snapshot}, "up to date at "},
		{"a snapshot without adds", kg.Filter{Ops: []kg.Op{kg.Remove}}, operation.Resume{Start: operation.Snapshot}, "up to date at "},
		{"a snapshot that keeps nothing", kg.Filter{Keep: func(kg.Statement) bool { return false }}, operation.Resume{Start: operation.Snapshot}, "up to date at "},
	} {
		head := s.Head().Revision
		f := start(t, s, row.filter, row.from)
		add(t, s, "c")
		if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error { // so that the next row can add it
			return tx.Apply(kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: kg.IRI("urn:c"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}})
		}); err != nil {
			t.Fatal(err)
		}
		want := row.want
		if want == "up to date at " {
			want += fmt.Sprint(head)
		}
		for e, err := range f.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if got := format(e); got != want {
				t.Errorf("%s: got %s, want %s", row.name, got, want)
			}
			break
		}
	}
}

func TestRefusals(t *testing.T) {
	s := open(t)
	for _, row := range []struct {
		name   string
		filter kg.Filter
		from   operation.Resume
		want   kg.Code
	}{
		{"a position of another log", kg.Filter{}, operation.Resume{Start: operation.After, After: kg.Position{Epoch: kg.Epoch{1}}}, kg.CodePositionGone},
		{"an age", kg.Filter{View: kg.View{MaxAge: time.Hour}}, operation.Resume{Start: operation.Snapshot}, kg.CodeInvalid},
	} {
		if _, err := changefeed.Start(t.Context(), s, changefeed.Statements{Filter: row.filter}, row.from); kg.CodeOf(err) != row.want {
			t.Errorf("%s: got %v, want %s", row.name, err, row.want)
		}
	}
	if n := s.Stats(); n.Watchers != 0 || n.Snapshots != 0 {
		t.Errorf("refused, but %d watchers and %d snapshots are left", n.Watchers, n.Snapshots)
	}
}

// The end of the context ends the events with its error.
func TestEnd(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	f, err := changefeed.Start(ctx, s, changefeed.Statements{}, operation.Resume{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	for _, err := range f.Events() {
		if err != context.Canceled {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
}
