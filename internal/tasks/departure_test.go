package tasks_test

import (
	"bytes"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// A departure is data like any other: check accepts it, a backup contains it, and if it
// is erased, the next start records it again.
func TestDeparturesAreKept(t *testing.T) {
	slowtest.Long(t)
	var later atomic.Int64 // how much the clock is ahead
	clock := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	gone := func(kg.AgentID) bool { return false }
	b := open(t, tasks.Options{LeaveGrace: time.Hour, Clock: clock, Registered: gone}, nil)
	task := b.send(ann, tasks.SendRequest{})
	b.report(task.ID, tasks.Report{State: tasks.Working})
	if _, err := b.store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return tasks.RecordDeparture(tx, bot) }); err != nil {
		t.Fatal(err)
	}
	departures := kg.IRI(kg.JournalGraphPrefix + "departures")
	wantNoted := func(where string, want int) {
		t.Helper()
		report, err := b.store.Maintenance().Check(t.Context(), kg.CheckOptions{})
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("%s: check found %v, %v", where, report, err)
		}
		snapshot, err := b.store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		got := 0
		for st, err := range snapshot.Match(kg.Pattern{Graph: departures}) {
			if err != nil || st.Subject != kg.IRI(string(bot)) {
				t.Fatalf("%s: noted %v, %v", where, st.Quad, err)
			}
			got++
		}
		if got != want {
			t.Errorf("%s: %d departures are noted, want %d", where, got, want)
		}
	}
	wantFailed := func(where string) {
		t.Helper()
		if err := b.FailAbandoned(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.get(as(ann), task.ID); got.Status.State != tasks.Working {
			t.Errorf("%s: within the grace it is %s", where, got.Status.State)
		}
		later.Store(int64(2 * time.Hour))
		if err := b.FailAbandoned(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.get(as(ann), task.ID); got.Failure == nil || got.Failure.Code != tasks.FailureLeft {
			t.Errorf("%s: behind the grace it is %s, %+v", where, got.Status.State, got.Failure)
		}
		wantNoted(where+", failed", 0)
		later.Store(0)
	}
	wantNoted("noted", 1)
	var backup bytes.Buffer
	if _, err := b.store.Maintenance().Backup(t.Context(), &backup, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		t.Helper()
		b.dir = filepath.Join(t.TempDir(), "restored")
		if _, err := kg.Restore(t.Context(), b.dir, []io.Reader{bytes.NewReader(backup.Bytes())}, kg.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.stop()
	restore()
	b.start()
	wantNoted("restored", 1)
	wantFailed("restored")

	b.stop()
	restore()
	if r, err := kg.Erase(t.Context(), b.dir, kg.EraseOptions{Pattern: kg.Pattern{Graph: departures}}); err != nil || r.Changes != 1 {
		t.Fatalf("erased %+v, %v", r, err)
	}
	b.start()
	wantNoted("erased", 0)
	b.stop()
	asked, left := make(chan struct{}), []kg.AgentID(nil)
	b.o.Unregistered = func() []kg.AgentID {
		agents := left
		if agents == nil { // by the start, at any time
			close(asked)
		}
		return agents
	}
	b.start()
	<-asked
	left = []kg.AgentID{bot}
	if err := b.NoteDeparted(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNoted("noted again", 1)
	wantFailed("noted again")
}
