package kg_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"koine/kg"
)

// childVariable contains the job of a child process, and makes the binary one.
const childVariable = "KOINE_KG_KILL_CHILD"

// job is the work of a child process until it is killed.
type job struct {
	Dir       string
	Name      string      // begins the names of all updates
	Seed      uint64      // of the writers
	Load      int         // statements to load first
	CutBefore kg.Revision // the log before it is no longer needed
	Linear    bool        // be one of TestLinearizableAcrossKills instead
	After     string      // position that the subscriber goes on from; "" for the oldest
}

const (
	killWriters     = 4
	checkpointEvery = 60 // updates between two checkpoints
)

func (j job) writer(i int) *worker {
	w := newWorker(j.Seed+uint64(i), fmt.Sprintf("%s.%d", j.Name, i))
	w.owns = true
	return w
}

// beKilled opens the store and writes, watches and makes checkpoints until the
// process is killed. It prints each acknowledgement before it continues:
//
//	open REVISION         the store is open
//	loaded TASK COUNT     a load has been acknowledged
//	begin TASK            an update is about to be made
//	ack TASK REVISION     it has been acknowledged
//	replacing TASK        a graph is about to be replaced
//	replaced TASK REVISION  it has been acknowledged
//	seen POSITION DIGEST  the subscriber has received an event
//	resync POSITION       the subscriber got a resync to there
//	failed WHAT           an error, of which there must be none
func beKilled(text string) {
	var j job
	must(json.Unmarshal([]byte(text), &j))
	if j.Linear {
		beLinear(j)
		return
	}
	s, err := kg.Open(j.Dir, killOptions())
	must(err)
	say("open", s.Head().Revision)
	go subscribe(s, j.After)
	if j.Load > 0 {
		task := j.Name + ".load"
		report, err := s.Load(context.Background(), kg.Meta{Principal: tester, TaskID: task}, manyQuads(j.Load), kg.LoadOptions{})
		must(err)
		say("loaded", task, report.Statements)
	}
	var updates atomic.Int64
	var wg sync.WaitGroup
	for i := range killWriters {
		wg.Go(func() {
			for w := j.writer(i); ; {
				meta, patches := w.update()
				say("begin", meta.TaskID)
				r, err := s.Update(context.Background(), meta, apply(patches))
				must(err)
				say("ack", meta.TaskID, r.Revision)
				if n := updates.Add(1); n%checkpointEvery == 0 {
					tidy(s, n, j.CutBefore)
				}
			}
		})
	}
	wg.Go(func() { j.replace(s) })
	wg.Wait()
}

// tidy makes a checkpoint, every other time to cut the log.
func tidy(s *kg.Store, n int64, before kg.Revision) {
	if before > 0 && n/checkpointEvery%2 == 1 {
		must(s.Maintenance().CutLog(context.Background(), before))
		return
	}
	_, err := s.Maintenance().Checkpoint(context.Background())
	must(err)
}

func subscribe(s *kg.Store, after string) {
	from := s.Oldest()
	if after != "" {
		var err error
		from, err = s.ParsePosition(after)
		must(err)
	}
	for {
		w, err := s.Watch(context.Background(), everything(), from)
		must(err)
		for e, err := range w.Events() {
			if kg.CodeOf(err) == kg.CodeResync {
				from = *kg.AsError(err).Oldest
				say("resync", s.FormatPosition(from))
				break
			}
			must(err)
			say("seen", s.FormatPosition(e.Position), digest(e))
		}
		w.Close()
	}
}

// everything is the filter that leaves nothing out.
func everything() kg.Filter { return kg.Filter{View: kg.View{Principal: tester, AllGraphs: true}} }

// digest identifies the whole content of an event.
func digest(e kg.Event) string {
	lines := []string{fmt.Sprint(e.Op, e.StatementRemains, e.Commit.TaskID, e.Position), statementLine(e.Statement)}
	for _, p := range e.Previous {
		lines = append(lines, statementLine(p))
	}
	slices.Sort(lines[2:]) // the removals of a replace come in any order
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// say writes a line in one piece. It is in the pipe when say returns.
func say(words ...any) {
	if _, err := os.Stdout.WriteString(fmt.Sprintln(words...)); err != nil {
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		say("failed", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}
