package kg_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"koine/kg"
	"koine/kg/kgtest"
)

// Clients write and read a few subjects concurrently, each of which has one value. Their
// requests and answers are recorded and must be possible for a sequential order that
// respects real time (porcupine finds one, or that there is none). Revisions are part of
// the answers: they grow in that order.

const (
	linearSubjects = 4
	linearClients  = 5
	linearOps      = 40 // of a client
	linearPatience = 60 * time.Second
)

// linearInput is a request of a client.
type linearInput struct {
	Kind     string // write, expect, key, dry, read, at
	Subject  int
	Value    string
	Expected kg.Revision // of expect
	Key      string      // of key
	At       kg.Revision // of at
}

// linearOutput is its answer.
type linearOutput struct {
	Revision kg.Revision
	Value    string // of read and at
	Refused  bool   // of expect: REVISION_CONFLICT
	Replayed bool   // of key
	Effect   bool   // of dry
}

// linearState is a subject as the model has it. It is comparable.
type linearState struct {
	history string // its values: "revision=value;" for each write, oldest first
	keys    string // "key=revision;" for each key
	seen    kg.Revision
}

func (s linearState) last() (r kg.Revision, value string) {
	return s.at(math.MaxUint64)
}

func (s linearState) at(most kg.Revision) (r kg.Revision, value string) {
	for part := range strings.SplitSeq(s.history, ";") {
		var rev kg.Revision
		text, v, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		if _, err := fmt.Sscan(text, &rev); err != nil || rev > most {
			break
		}
		r, value = rev, v
	}
	return r, value
}

func (s linearState) key(name string) (r kg.Revision, used bool) {
	_, rest, used := strings.Cut(";"+s.keys, ";"+name+"=")
	if used {
		_, err := fmt.Sscanf(rest, "%d;", &r)
		used = err == nil
	}
	return r, used
}

// write is the state after a write that made a revision.
func (s linearState) write(value string, r kg.Revision) (bool, linearState) {
	if r <= s.seen {
		return false, s
	}
	s.history += fmt.Sprintf("%d=%s;", r, value)
	s.seen = r
	return true, s
}

// linearModel is a store, a subject at a time.
var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, linearSubjects)
		for _, op := range history {
			s := op.Input.(linearInput).Subject
			parts[s] = append(parts[s], op)
		}
		return parts
	},
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		ok, next := linearStep(state.(linearState), input.(linearInput), output.(linearOutput))
		return ok, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func linearStep(s linearState, in linearInput, out linearOutput) (bool, linearState) {
	last, value := s.last()
	switch in.Kind {
	case "write":
		return s.write(in.Value, out.Revision)
	case "expect":
		if out.Refused {
			return last > in.Expected, s
		}
		if last > in.Expected {
			return false, s
		}
		return s.write(in.Value, out.Revision)
	case "key":
		if r, used := s.key(in.Key); used {
			return out.Replayed && out.Revision == r, s
		}
		s.keys += fmt.Sprintf("%s=%d;", in.Key, out.Revision)
		if out.Replayed {
			return false, s
		}
		return s.write(in.Value, out.Revision)
	case "dry":
		return out.Revision >= last && out.Effect == (value != in.Value), s
	case "read":
		ok := out.Value == value && out.Revision >= last
		s.seen = max(s.seen, out.Revision)
		return ok, s
	case "at":
		_, then := s.at(in.At)
		return out.Value == then, s
	}
	return false, s
}

// linearStore is the store of the clients; faults are broken on purpose.
type linearStore struct {
	*kg.Store
	lag, forget, ignore bool // reads, idempotency keys, expected revisions
}

func linearSubject(n int) kg.Term { return kg.IRI(fmt.Sprint("urn:linear:", n)) }

func (s linearStore) do(ctx context.Context, task string, in linearInput) (out linearOutput, err error) {
	switch in.Kind {
	case "read":
		return s.read(ctx, in.Subject, 0)
	case "at":
		return s.read(ctx, in.Subject, in.At)
	}
	meta := kg.Meta{Principal: tester, TaskID: task, DryRun: in.Kind == "dry"}
	if in.Kind == "expect" && !s.ignore {
		meta.ExpectedRevision, meta.HasExpected = in.Expected, true
	}
	if in.Kind == "key" && !s.forget {
		meta.IdempotencyKey = in.Key
		copy(meta.ContentHash[:], in.Key)
	}
	quad := kg.Quad{Subject: linearSubject(in.Subject), Predicate: kg.IRI("urn:value"), Object: kg.String(in.Value)}
	r, err := s.Update(ctx, meta, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Replace, Quad: quad}) })
	if kg.CodeOf(err) == kg.CodeRevisionConflict {
		return linearOutput{Refused: true}, nil
	}
	return linearOutput{Revision: r.Revision, Replayed: r.Replayed, Effect: r.Affected > 0}, err
}

func (s linearStore) read(ctx context.Context, subject int, at kg.Revision) (out linearOutput, err error) {
	if head := s.Head().Revision; s.lag && at == 0 && head > 3 {
		at = head - 3
	}
	snap, err := s.View(ctx, kg.View{Principal: tester, At: at})
	if err != nil {
		return out, err
	}
	defer snap.Close()
	out.Revision = snap.Revision()
	for st, err := range snap.Match(kg.Pattern{Subject: linearSubject(subject)}) {
		if err != nil {
			return out, err
		}
		out.Value += st.Quad.Object.Value()
	}
	return out, nil
}

// linearClient sends one request after the other.
type linearClient struct {
	*rand.Rand
	name string
	n    int
	seen kg.Revision // the newest revision that it was told of
	keys []linearInput
}

func (c *linearClient) next() linearInput {
	c.n++
	in := linearInput{Subject: c.IntN(linearSubjects), Value: fmt.Sprintf("%s.%d", c.name, c.n)}
	switch n := c.IntN(20); {
	case n < 5:
		in.Kind = "write"
	case n < 8:
		in.Kind, in.Expected = "expect", c.seen
	case n < 11 && c.IntN(2) == 0 && len(c.keys) > 0: // the same again
		return c.keys[c.IntN(len(c.keys))]
	case n < 11:
		in.Kind, in.Key = "key", in.Value
		c.keys = append(c.keys, in)
	case n < 12:
		in.Kind = "dry"
	case n < 15 && c.seen > 0:
		in.Kind, in.At = "at", 1+kg.Revision(c.Uint64N(uint64(c.seen)))
	default:
		in.Kind = "read"
	}
	return in
}

func (c *linearClient) told(out linearOutput) { c.seen = max(c.seen, out.Revision) }

// linearEvent is a line of a record: a request, or an answer.
type linearEvent struct {
	Task   string
	Client int
	Input  *linearInput  `json:",omitempty"`
	Output *linearOutput `json:",omitempty"`
}

// linearRecord turns events into operations, with the place of an event as its time.
type linearRecord struct {
	mu   sync.Mutex
	ops  []porcupine.Operation
	open map[string]int // begun and not answered, by task
	time int64
}

func (r *linearRecord) note(e linearEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[string]int)
	}
	r.time++
	if e.Input != nil {
		r.open[e.Task] = len(r.ops)
		r.ops = append(r.ops, porcupine.Operation{ClientId: e.Client, Input: *e.Input, Call: r.time})
		return
	}
	op := &r.ops[r.open[e.Task]]
	op.Output, op.Return = *e.Output, r.time
	delete(r.open, e.Task)
}

// settle decides about unanswered requests: by now each is in the log, or never will be.
func (r *linearRecord) settle(t *testing.T, s *kg.Store, from kg.Revision) (head kg.Revision) {
	t.Helper()
	head = s.Head().Revision
	r.time++
	for rev := from + 1; rev <= head; rev++ {
		c, err := s.Commit(within(t), tester, rev)
		if err != nil {
			t.Fatal(err)
		}
		if i, open := r.open[c.TaskID]; open {
			r.ops[i].Output, r.ops[i].Return = linearOutput{Revision: rev, Effect: true}, r.time
			delete(r.open, c.TaskID)
		}
	}
	r.ops = slices.DeleteFunc(r.ops, func(op porcupine.Operation) bool { return op.Output == nil })
	clear(r.open)
	return head
}

func (r *linearRecord) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(linearModel, r.ops, linearPatience)
}

// linearRun has clients work on a store at the same time.
func linearRun(s linearStore, name string, seed uint64, ops int, note func(linearEvent)) error {
	failed := make(chan error, linearClients)
	var wg sync.WaitGroup
	for i := range linearClients {
		wg.Go(func() {
			c := &linearClient{Rand: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprintf("%s.%d", name, i)}
			for range ops {
				in, task := c.next(), fmt.Sprintf("%s.%d/%d", name, i, c.n)
				note(linearEvent{Task: task, Client: i, Input: &in})
				out, err := s.do(context.Background(), task, in)
				if err != nil {
					failed <- fmt.Errorf("%+v: %w", in, err)
					return
				}
				c.told(out)
				note(linearEvent{Task: task, Client: i, Output: &out})
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]linearStore{
		"the store":                  {},
		"reads that lag":             {lag: true},
		"keys that are forgotten":    {forget: true},
		"expectations not looked at": {ignore: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			s.Store = openStore(t, t.TempDir(), killOptions())
			var r linearRecord
			if err := linearRun(s, "c", seed, linearOps, r.note); err != nil {
				t.Fatal(err)
			}
			want := porcupine.Ok
			if s.lag || s.forget || s.ignore {
				want = porcupine.Illegal
			}
			if got := r.check(); got != want {
				t.Errorf("%d operations: %s, want %s", len(r.ops), got, want)
			}
		})
	}
}

// The same with kills of the process in between, and with the requests that they interrupt.
func TestLinearizableAcrossKills(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(rand.Uint64(), 3))
	for done := 0; done < *kills && !t.Failed(); done += killsOfOneLife {
		linearLife(t, dice, min(killsOfOneLife, *kills-done))
	}
}

// linearLife is one data directory.
func linearLife(t *testing.T, dice *rand.Rand, kills int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	var r linearRecord
	head, cut := kg.Revision(0), 0
	for i := range kills {
		linearChild(t, dir, fmt.Sprint("k", i), dice.Uint64(), 20+dice.IntN(120), &r)
		cut += len(r.open)
		s := openStore(t, dir, killOptions())
		mustCheck(t, s)
		head = r.settle(t, s, head)
		mustClose(t, s)
	}
	if got := r.check(); got != porcupine.Ok {
		t.Errorf("%d operations, %d of them under way at a kill: %s", len(r.ops), cut, got)
	}
	t.Logf("%d operations, %d of them under way at a kill", len(r.ops), cut)
}

// linearChild has a child process work until it has printed a number of lines.
func linearChild(t *testing.T, dir, name string, seed uint64, lines int, r *linearRecord) {
	t.Helper()
	text, err := json.Marshal(job{Dir: dir, Name: name, Seed: seed, Linear: true})
	if err != nil {
		t.Fatal(err)
	}
	err = kgtest.Child(childTime, func(line []byte) (bool, error) {
		var e linearEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return false, fmt.Errorf("child %s says %q", name, line)
		}
		r.note(e)
		lines--
		return lines == 0, nil
	}, childVariable+"="+string(text))
	if err != nil {
		t.Fatal(err)
	}
}

// beLinear is the child: it prints each request before it is made, and each answer after
// it.
func beLinear(j job) {
	s, err := kg.Open(j.Dir, killOptions())
	must(err)
	must(linearRun(linearStore{Store: s}, j.Name, j.Seed, math.MaxInt, func(e linearEvent) {
		text, err := json.Marshal(e)
		must(err)
		say(string(text))
	}))
}
