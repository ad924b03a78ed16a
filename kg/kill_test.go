package kg_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

var killSeed = flag.Uint64("kg.killseed", 0, "seed of TestKill (0: a new one for each run)")

// defaultKills is how often TestKill kills a child; -kg.kills or, for all of
// .ci/run, the environment variable KOINE_KG_KILLS say otherwise.
const defaultKills = 5

var kills = flag.Int("kg.kills", killsOf(os.Getenv("KOINE_KG_KILLS")), "how many child processes TestKill kills")

func killsOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return defaultKills
}

const (
	killsOfOneLife = 5                // kills before a new, empty directory is begun
	childTime      = 30 * time.Second // after which a child is killed in any case
	killLoad       = 10_500           // statements of a load, in two commits
	mostLines      = 600              // after as many lines from a child it is killed at the latest
)

// killOptions have memtables and files that fill up now and then.
func killOptions() kg.Options {
	o := smallLog(kg.Faults{BulkFrom: 1, BulkChunk: 4000, WholeFrom: killWhole, WholeCommit: killWholeCommit}) // so that loads later on are in bulk too
	o.GroupCommits = 3
	return o
}

// TestKill kills a process that writes to a store with SIGKILL at random moments: while it
// opens the store, loads in bulk, commits, replaces graphs, makes checkpoints and cuts the
// log. It proves, after each reopening: the check is clean; every acknowledged commit is
// there, under its revision; revisions have no gap; repeating an interrupted update gives
// exactly one commit; the present and the past are those of the commits; and a subscriber
// that resumes at its last position each time has seen each change exactly once, and got
// exactly one resync for each graph that was replaced. A graph has its old or its complete
// new content, and nothing of an unfinished replacement is left in the index.
func TestKill(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	dice := rand.New(rand.NewPCG(seed, 2))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test -run TestKill -kg.kills=%d -kg.killseed=%d", *kills, seed)
		}
	})
	for done := 0; done < *kills; {
		n := min(killsOfOneLife, *kills-done)
		t.Run(fmt.Sprint("kills ", done+1, " to ", done+n), func(t *testing.T) {
			newLife(t, dice, done).run(n)
		})
		if t.Failed() {
			return
		}
		done += n
	}
}

// life is one data directory and all that is known of it from outside.
type life struct {
	t    *testing.T
	dice *rand.Rand
	dir  string
	no   int // of the kill

	model  *kgtest.Model
	loads  map[string]uint64      // acknowledged loads and their statements
	loaded map[string]uint64      // statements of loads, by the log
	acked  map[string]kg.Revision // acknowledged updates
	tasks  map[string]kg.Revision // updates that the log has
	flying map[string]update      // updates begun and not acknowledged
	seen   []sighting             // the events that the subscriber received
	cut    kg.Revision            // the log before it is not needed
	whole  int                    // graphs that were replaced as a whole

	replacing map[string]exchange // replacements begun and not acknowledged

	moments []string // the last lines of the children
}

type update struct {
	meta    kg.Meta
	patches []kg.Patch
}

// sighting is an event as the subscriber noted it.
type sighting struct{ position, digest string }

func newLife(t *testing.T, dice *rand.Rand, no int) *life {
	return &life{
		t: t, dice: dice, dir: filepath.Join(t.TempDir(), "data"), no: no,
		loads: make(map[string]uint64), loaded: make(map[string]uint64),
		acked: make(map[string]kg.Revision), tasks: make(map[string]kg.Revision), flying: make(map[string]update),
		replacing: make(map[string]exchange),
	}
}

func (l *life) run(kills int) {
	for i := range kills {
		l.kill(i == 0)
		if i == kills-1 || l.dice.IntN(4) > 0 { // else the next child is the one that finds the mess
			l.verify(killOptions())
		}
	}
	rebuild := killOptions()
	rebuild.Rebuild = true
	l.verify(rebuild)
	l.t.Logf("%d commits, %d updates acknowledged, %d graphs replaced as a whole, %d events seen; children were killed at %v", l.model.Head(), len(l.acked), l.whole, len(l.seen), l.moments)
}

// kill starts a child, follows its output, and kills it.
func (l *life) kill(first bool) {
	l.no++
	j := job{Dir: l.dir, Name: fmt.Sprint("k", l.no), Seed: l.dice.Uint64(), CutBefore: l.cut}
	if first || l.dice.IntN(4) == 0 {
		j.Load = killLoad
	}
	if n := len(l.seen); n > 0 {
		j.After = l.seen[n-1].position
	}
	text, err := json.Marshal(j)
	if err != nil {
		l.t.Fatal(err)
	}
	// Most are killed by their output, so that a slow machine does not kill all of them
	// early; some by time, to be hit while opening.
	after, lines := childTime, 1+l.dice.IntN(mostLines)
	if l.dice.IntN(3) == 0 {
		after = time.Duration(l.dice.IntN(400)) * time.Millisecond
	}
	if err := kgtest.Child(after, l.listen(j, lines), childVariable+"="+string(text)); err != nil {
		l.t.Fatalf("child %s: %v", j.Name, err)
	}
}

// listen reads a number of lines of the child.
func (l *life) listen(j job, lines int) func([]byte) (bool, error) {
	writers := make(map[string]*worker)
	for i := range killWriters {
		w := j.writer(i)
		writers[w.name] = w
	}
	l.moments = append(l.moments, "start")
	return func(line []byte) (enough bool, err error) {
		words := strings.Fields(string(line))
		l.moments[len(l.moments)-1] = words[0]
		switch words[0] {
		case "open":
		case "seen":
			l.seen = append(l.seen, sighting{words[1], words[2]})
			return false, nil // there are many: they do not count
		case "loaded":
			if l.loads[words[1]], err = strconv.ParseUint(words[2], 10, 64); err != nil {
				return false, err
			}
		case "begin":
			name, _, _ := strings.Cut(words[1], "/")
			meta, patches := writers[name].update()
			if meta.TaskID != words[1] {
				return false, fmt.Errorf("%s is begun where %s comes next", words[1], meta.TaskID)
			}
			l.flying[meta.TaskID] = update{meta, patches}
		case "ack":
			r, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				return false, err
			}
			l.acked[words[1]] = kg.Revision(r)
			delete(l.flying, words[1])
		case "resync":
			l.seen = append(l.seen, sighting{words[1], resynced})
			return false, nil
		case "replacing":
			e, ok := exchangeOf(words[1])
			if !ok {
				return false, fmt.Errorf("%s is no replacement", words[1])
			}
			l.replacing[e.task] = e
		case "replaced":
			r, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				return false, err
			}
			l.acked[words[1]] = kg.Revision(r)
			delete(l.replacing, words[1])
		default:
			return false, fmt.Errorf("it says: %s", line)
		}
		lines--
		return lines == 0, nil
	}
}

// verify opens the store and compares it with everything that is known.
func (l *life) verify(o kg.Options) {
	s := openStore(l.t, l.dir, o)
	if l.model == nil {
		l.model = kgtest.NewModel(s.Epoch(), nil)
	}
	mustCheck(l.t, s)
	nothingStray(l.t, s)
	l.replay(s)
	for task, r := range l.acked {
		if l.tasks[task] != r {
			l.t.Errorf("update %s was acknowledged as revision %d, the log has it as %d", task, r, l.tasks[task])
		}
	}
	for task, n := range l.loads {
		if l.loaded[task] != n {
			l.t.Errorf("load %s was acknowledged with %d statements, the log has %d", task, n, l.loaded[task])
		}
	}
	l.askAgain(s)
	l.replay(s)
	mustCheck(l.t, s)
	l.compare(s)
	l.subscriber(s)
	mustClose(l.t, s)
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// replay takes the store's new commits into the model, which refuses gaps and
// commits that do not follow from the ones before.
func (l *life) replay(s *kg.Store) {
	l.t.Helper()
	for r := l.model.Head() + 1; r <= s.Head().Revision; r++ {
		c, err := s.Commit(within(l.t), tester, r)
		if err == nil {
			err = l.replayOne(c)
		}
		if err != nil {
			l.t.Fatalf("commit %d: %v", r, err)
		}
		if strings.HasSuffix(c.TaskID, ".load") {
			l.loaded[c.TaskID] += uint64(len(c.Changes))
			continue
		}
		if c.TaskID == "" { // a part of a graph that is replaced
			continue
		}
		if before, twice := l.tasks[c.TaskID]; twice {
			l.t.Errorf("update %s is commit %d and commit %d", c.TaskID, before, r)
		}
		l.tasks[c.TaskID] = r
	}
	if l.model.Head() != s.Head().Revision {
		l.t.Errorf("the store is at revision %d, and was at %d", s.Head().Revision, l.model.Head())
	}
}

func (l *life) replayOne(c *kg.Commit) error {
	e, ok := exchangeOf(c.TaskID)
	switch {
	case ok:
		return l.replayReplaced(c, e)
	case c.TaskID == "":
		return l.model.Skip(c)
	}
	return l.model.Replay(c)
}

// askAgain repeats the updates under way that have an idempotency key, twice.
func (l *life) askAgain(s *kg.Store) {
	for task, e := range l.replacing {
		delete(l.replacing, task)
		l.askReplacedAgain(s, e)
	}
	for task, u := range l.flying {
		delete(l.flying, task)
		if u.meta.IdempotencyKey == "" {
			continue
		}
		there := l.tasks[task]
		for range 2 {
			r, err := s.Update(within(l.t), u.meta, apply(u.patches))
			if err != nil || r.Replayed != (there != 0) || there != 0 && r.Revision != there {
				l.t.Errorf("asking again for %s: %+v, %v; it was commit %d", task, r, err, there)
			}
			there = r.Revision
		}
	}
}

// compare compares the present and some of the past with the model.
func (l *life) compare(s *kg.Store) {
	head := s.Head().Revision
	at := []kg.Revision{head}
	for range min(3, head) {
		at = append(at, 1+kg.Revision(l.dice.Uint64N(uint64(head))))
	}
	for _, r := range at {
		if r == 0 {
			continue
		}
		want := l.model.Match(kg.View{Principal: tester, AllGraphs: true, At: r, Now: time.Now()}, kg.Pattern{})
		lines := make([]string, len(want))
		for i, st := range want {
			lines[i] = statementLine(st)
		}
		got := statements(l.t, s, r)
		slices.Sort(got)
		slices.Sort(lines)
		if diff := cmp.Diff(lines, got); diff != "" {
			l.t.Fatalf("the statements of revision %d (-want +got):\n%s", r, diff)
		}
	}
}

// subscriber resumes, as the next child would, up to the head, and compares the events of
// all lives of the process with the history.
func (l *life) subscriber(s *kg.Store) {
	from := kg.Position{Epoch: s.Epoch(), Index: kg.EndOfCommit}
	h := kgtest.History{From: from}
	want := l.model.Events(everything(), from)
	known := make(map[kg.Position]kg.Event, len(want))
	for _, e := range want {
		known[e.Position] = e
	}
	var sentOn []kg.Position
	for _, seen := range l.seen {
		p, err := s.ParsePosition(seen.position)
		if err != nil {
			l.t.Fatalf("a position that was noted: %v", err)
		}
		if seen.digest == resynced {
			sentOn, from = append(sentOn, p), p
			continue
		}
		e, ok := known[p]
		if !ok || digest(e) != seen.digest {
			l.t.Fatalf("the subscriber was told of %d.%d what is not in the log", p.Revision, p.Index)
		}
		h.Events, from = append(h.Events, e), p
	}
	l.resyncs(s, sentOn, from)
	rest, err := kgtest.Watched(within(l.t), &kgtest.Store{Store: s}, everything(), from, len(want)-len(h.Events))
	if err != nil {
		l.t.Fatalf("going on from the last position: %v", err)
	}
	l.noteRest(s, from, rest)
	h.Events = append(h.Events, rest...)
	for _, err := range []error{
		kgtest.Ordered(h), kgtest.Unique(h), kgtest.Gapless(h, l.model.Commits), kgtest.Atomic(h, l.model.Commits),
		kgtest.Filtered(h, l.model, everything()),
	} {
		if err != nil {
			l.t.Errorf("the subscriber: %v", err)
		}
	}
	l.cut = s.Head().Revision
}
