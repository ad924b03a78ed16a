package channels_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
	"koine/kg/kgtest"
)

// Agents publish and read in a few channels concurrently, in a process that is killed
// repeatedly. Their requests and answers are recorded and must be possible for a sequential
// order that respects real time (porcupine finds one, or that there is none).

var killsFlag = flag.Int("channels.kills", defaultKills(), "how often the process of TestAcrossKills is killed")

// defaultKills is more where the store is killed often too.
func defaultKills() int {
	if os.Getenv("KOINE_KG_KILLS") != "" {
		return 12
	}
	return 4
}

const (
	killedVariable = "KOINE_CHANNELS_KILLED"
	killedChannels = 2
	killedClients  = 5
	childTime      = time.Minute
)

// asked is a request of a client to one of the channels.
type asked struct {
	Kind    string // publish, history, stream
	Channel int
	Text    string // of publish
	Key     string // of publish, "" for none
}

// answered is the answer to it.
type answered struct {
	Sequence int64
	Replayed bool
	Texts    []string // of history and stream: those of all messages from the first on
}

// killedState is a channel as the model has it: the texts of its messages, each with
// the key that it was published with. It is comparable.
type killedState string

func (s killedState) messages() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), ";")
}

var killedModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, killedChannels)
		for _, op := range history {
			i := op.Input.(asked).Channel
			parts[i] = append(parts[i], op)
		}
		return parts
	},
	Init: func() any { return killedState("") },
	Step: func(state, input, output any) (bool, any) {
		return killedStep(state.(killedState), input.(asked), output.(answered))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func killedStep(s killedState, in asked, out answered) (bool, any) {
	list := s.messages()
	switch in.Kind {
	case "publish":
		if in.Key != "" {
			if i := slices.IndexFunc(list, func(m string) bool { return strings.HasSuffix(m, "="+in.Key) }); i >= 0 {
				return out.Replayed && out.Sequence == int64(i)+1, s
			}
		}
		if out.Replayed || out.Sequence != int64(len(list))+1 {
			return false, s
		}
		return true, killedState(strings.Join(append(list, in.Text+"="+in.Key), ";"))
	case "history":
		return slices.Equal(out.Texts, texts(list)), s
	default: // a stream tells what there was when it began, at least
		return len(list) >= len(out.Texts) && slices.Equal(out.Texts, texts(list)[:len(out.Texts)]), s
	}
}

func texts(list []string) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i], _, _ = strings.Cut(m, "=")
	}
	return out
}

// event is a line of a record: a request, or an answer.
type event struct {
	Task   string
	Client int
	Asked  *asked    `json:",omitempty"`
	Told   *answered `json:",omitempty"`
}

// record turns events into operations, with the place of an event as its time.
type record struct {
	ops  []porcupine.Operation
	open map[string]int // begun and not answered, by task
	time int64
}

func (r *record) note(e event) {
	if r.open == nil {
		r.open = map[string]int{}
	}
	r.time++
	if e.Asked != nil {
		r.open[e.Task] = len(r.ops)
		r.ops = append(r.ops, porcupine.Operation{ClientId: e.Client, Input: *e.Asked, Call: r.time})
		return
	}
	op := &r.ops[r.open[e.Task]]
	op.Output, op.Return = *e.Told, r.time
	delete(r.open, e.Task)
}

// settle decides about unanswered publications: by now each was published, or never will
// be. The channels are read to the end in any case.
func (r *record) settle(published [][]string) (cut int) {
	cut = len(r.open)
	r.time++
	for _, i := range slices.Sorted(maps.Values(r.open)) {
		in := r.ops[i].Input.(asked)
		if n := slices.Index(published[in.Channel], in.Text); in.Kind == "publish" && n >= 0 && !r.made(in) {
			r.ops[i].Output, r.ops[i].Return = answered{Sequence: int64(n) + 1}, r.time
		}
	}
	r.ops = slices.DeleteFunc(r.ops, func(op porcupine.Operation) bool { return op.Output == nil })
	clear(r.open)
	for i, list := range published {
		r.time++
		r.ops = append(r.ops, porcupine.Operation{ClientId: killedClients, Input: asked{Kind: "history", Channel: i}, Output: answered{Texts: list}, Call: r.time, Return: r.time})
	}
	return cut
}

// made reports whether an operation is known to have published this text: those with the
// same key have the same text, and one of them did.
func (r *record) made(in asked) bool {
	return slices.ContainsFunc(r.ops, func(op porcupine.Operation) bool {
		out, known := op.Output.(answered)
		other := op.Input.(asked)
		return known && other.Kind == "publish" && other.Channel == in.Channel && other.Text == in.Text && !out.Replayed
	})
}

// killed is a data directory with its channels open.
type killed struct {
	*channels.Service
	store *kg.Store
	ids   []channel.ID
}

// openKilled opens a directory, and creates missing channels.
func openKilled(dir string) (*killed, error) {
	k := &killed{Service: channels.New(channels.Options{})}
	var err error
	k.store, err = kg.Open(dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: k.Guard(kg.AllowAll{}), OnSystemChange: k.Follow}})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := k.Load(ctx, k.store); err != nil {
		return nil, err
	}
	list, _, err := k.List(ctx, as("ann"), channel.ListQuery{})
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		k.ids = append(k.ids, c.ID)
	}
	for len(k.ids) < killedChannels {
		c, err := k.Create(ctx, as("ann"), channel.Draft{})
		if err != nil {
			return nil, err
		}
		k.ids = append(k.ids, c.ID)
	}
	return k, nil
}

// do sends the request, and returns the answer.
func (k *killed) do(ctx context.Context, in asked) (out answered, err error) {
	id := k.ids[in.Channel]
	switch in.Kind {
	case "publish":
		receipt, err := k.Publish(ctx, as("ann"), channels.Publication{Channel: id, Parts: text("%s", in.Text), IdempotencyKey: in.Key})
		if err != nil {
			return out, err
		}
		return answered{Sequence: receipt.Message.Sequence, Replayed: receipt.Replayed}, nil
	case "history":
		out.Texts, err = k.history(ctx, id)
		return out, err
	default:
		c, err := k.Get(ctx, as("ann"), id)
		if err != nil {
			return out, err
		}
		out.Texts, err = k.streamed(ctx, id, c.Messages)
		return out, err
	}
}

// history reads all messages in their present state: the pages go from the newest back, so
// that they are of one moment.
func (k *killed) history(ctx context.Context, id channel.ID) (list []string, err error) {
	var expect int64
	for q := (channels.HistoryQuery{PageSize: 37, Descending: true}); ; {
		page, next, err := k.History(ctx, as("ann"), id, q)
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if expect != 0 && m.Sequence != expect {
				return nil, fmt.Errorf("history has %d where %d comes next", m.Sequence, expect)
			}
			expect = m.Sequence - 1
			list = append(list, textOf(m))
		}
		if q.PageToken = next; next == "" {
			slices.Reverse(list)
			return list, nil
		}
	}
}

// streamed reads the first n messages from a stream.
func (k *killed) streamed(ctx context.Context, id channel.ID, n int64) (list []string, err error) {
	stream, err := k.Stream(ctx, as("ann"), id, new(int64))
	if err != nil || n == 0 {
		return nil, err
	}
	defer stream.Close()
	for m, err := range stream.Messages() {
		if err != nil {
			return nil, err
		}
		if m.Sequence != int64(len(list))+1 {
			return nil, fmt.Errorf("a stream tells %d behind %d", m.Sequence, len(list))
		}
		if list = append(list, textOf(m)); m.Sequence == n {
			break
		}
	}
	return list, nil
}

func textOf(m *message.Message) string {
	var part struct{ Text string }
	if err := json.Unmarshal(m.Parts[0], &part); err != nil {
		return err.Error()
	}
	return part.Text
}

// logged lists the messages of a channel in the order of the log.
func (k *killed) logged(ctx context.Context, id channel.ID) (list []string, err error) {
	for rev := kg.Revision(1); rev <= k.store.Head().Revision; rev++ {
		c, err := k.store.Commit(ctx, kg.SystemPrincipal(), rev)
		if err != nil {
			return nil, err
		}
		for i := range c.Changes {
			q := &c.Changes[i].Quad
			if q.Graph != id.MessagesGraph() || q.Predicate != kg.Sequence {
				continue
			}
			if want := kg.Integer(int64(len(list)) + 1); q.Object != want {
				return nil, fmt.Errorf("the log numbers %s where %s comes next", q.Object, want)
			}
			list = append(list, c.MessageID)
		}
	}
	return list, nil
}

// run has clients work at the same time, until they have done so much each.
func (k *killed) run(name string, seed uint64, ops int, note func(event)) error {
	failed := make(chan error, killedClients)
	var wg sync.WaitGroup
	for i := range killedClients {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range ops {
				task := fmt.Sprintf("%s.%d/%d", name, i, n)
				in := asked{Kind: "publish", Channel: dice.IntN(killedChannels), Text: task}
				switch d := dice.IntN(12); {
				case d < 2:
					in.Kind = "history"
				case d < 4:
					in.Kind = "stream"
				case d < 8: // several clients use the same keys, for the same message
					in.Key = fmt.Sprintf("%s-%d", name, dice.IntN(20))
					in.Text = in.Key
				}
				note(event{Task: task, Client: i, Asked: &in})
				out, err := k.do(context.Background(), in)
				if err != nil {
					failed <- fmt.Errorf("%+v: %w", in, err)
					return
				}
				note(event{Task: task, Client: i, Told: &out})
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir, name := os.Getenv(killedVariable), os.Getenv(killedVariable+"_NAME"); dir != "" {
		if name == workersName {
			beWorking(dir)
		}
		beKilled(dir, name)
	}
	os.Exit(m.Run())
}

// beKilled works until the process is killed. It prints each request before it is sent, and
// each answer after it.
func beKilled(dir, name string) {
	k, err := openKilled(dir)
	if err == nil {
		err = k.run(name, rand.Uint64(), math.MaxInt, func(e event) {
			line, err := json.Marshal(e)
			if err == nil {
				_, err = os.Stdout.Write(append(line, '\n'))
			}
			if err != nil {
				os.Exit(1)
			}
		})
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func TestAcrossKills(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var r record
	cut := 0
	for i := range *killsFlag {
		killOne(t, dir, fmt.Sprint("k", i), 40+rand.IntN(160), &r)
		k, err := openKilled(dir)
		if err != nil {
			t.Fatal(err)
		}
		var published [][]string
		for _, id := range k.ids {
			list, err := k.agree(within(t), id)
			if err != nil {
				t.Fatal(err)
			}
			published = append(published, list)
		}
		cut += r.settle(published)
		if err := k.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := porcupine.CheckOperationsTimeout(killedModel, r.ops, childTime); got != porcupine.Ok {
		t.Errorf("%d operations, %d of them under way at a kill: %s", len(r.ops), cut, got)
	}
	t.Logf("%d operations, %d of them under way at a kill", len(r.ops), cut)
}

// agree gives the texts of a channel, which history and a stream have alike, and in
// the order of the log.
func (k *killed) agree(ctx context.Context, id channel.ID) ([]string, error) {
	list, err := k.history(ctx, id)
	if err != nil {
		return nil, err
	}
	streamed, err := k.streamed(ctx, id, int64(len(list)))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(list, streamed) {
		return nil, errors.New("history and stream differ")
	}
	logged, err := k.logged(ctx, id)
	if err != nil {
		return nil, err
	}
	page, _, err := k.History(ctx, as("ann"), id, channels.HistoryQuery{PageSize: channels.MaxPage})
	if err != nil {
		return nil, err
	}
	for i, m := range page {
		if len(logged) != len(list) || logged[i] != string(m.ID) {
			return nil, errors.New("history and log differ")
		}
	}
	return list, nil
}

// killOne has a child process work until it has printed a number of lines.
func killOne(t *testing.T, dir, name string, lines int, r *record) {
	t.Helper()
	err := kgtest.Child(childTime, func(line []byte) (bool, error) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return false, fmt.Errorf("child %s says %q", name, line)
		}
		r.note(e)
		lines--
		return lines == 0, nil
	}, killedVariable+"="+dir, killedVariable+"_NAME="+name)
	if err != nil {
		t.Fatal(err)
	}
}
