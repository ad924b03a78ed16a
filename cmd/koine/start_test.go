package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/push"
	"koine/internal/proposals"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// contents is the number of objects of each kind in a store.
type contents struct {
	statements int // in one graph of their own
	channels   int
	messages   int // spread over the channels
	expired    int // messages beside those, whose content is evicted
	tasks      int // completed
	hooks      int // completed tasks beside those, with a web hook that was told
}

// fillers is how many write a store at a time: so many share a sync.
const fillers = 256

// fillStore writes a store to dir as the server would have, and closes it.
func fillStore(t testing.TB, dir string, c contents) {
	t.Helper()
	conversations := channels.New(channels.Options{})
	reviews := proposals.New(proposals.Options{})
	store, err := kg.Open(dir, kg.Options{
		ReserveBytes: 1, Governor: kg.Governor{OnSystemChange: func(c *kg.Commit) { reviews.Follow(c); conversations.Follow(c) }, Access: push.NewGuard(tasks.NewGuard(conversations.Guard(reviews.Guard(kg.AllowAll{}))))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	ann := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}}
	bot := caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}}
	if _, err := store.Load(t.Context(), kg.Meta{Principal: ann.Principal}, manyQuads(c.statements), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := conversations.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	defer conversations.Close()
	fillChannels(t, conversations, store, ann, c)
	fillTasks(t, store, ann, bot, c)
}

// manyQuads are statements about subjects with ten properties each.
func manyQuads(n int) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for i := range n {
			q := kg.Quad{
				Subject: kg.IRI(fmt.Sprintf("https://example.org/s/%d", i/10)), Predicate: kg.IRI(fmt.Sprintf("https://example.org/p/%d", i%10)),
				Object: kg.IRI(fmt.Sprintf("https://example.org/s/%d", i*7919%n)), Graph: kg.IRI("https://example.org/graph"),
			}
			if i%3 == 0 {
				q.Object = kg.String(fmt.Sprintf("value %d", i))
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}

func fillChannels(t testing.TB, s *channels.Service, store *kg.Store, ann caller.Caller, c contents) {
	by := channels.Caller{Principal: ann.Principal}
	ids := make([]channel.ID, c.channels)
	fill(t, c.channels, func(i int) error {
		made, err := s.Create(t.Context(), by, channel.Draft{Name: fmt.Sprintf("channel %d", i)})
		if err == nil {
			ids[i] = made.ID
		}
		return err
	})
	say := func(i int, expires time.Time) error {
		_, err := s.Publish(t.Context(), by, channels.Publication{
			Channel: ids[i%len(ids)], Parts: []json.RawMessage{fmt.Appendf(nil, `{"type":"text","text":"message %d"}`, i)},
			Envelope: message.Envelope{ExpiresAt: expires},
		})
		return err
	}
	fill(t, c.messages, func(i int) error { return say(i, time.Time{}) })
	fill(t, c.expired, func(i int) error { return say(i, time.Now().Add(2*time.Second)) })
	if c.expired > 0 {
		awaitNone(t, store, "channels have messages to expire", kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "expiresAt")})
	}
}

func fillTasks(t testing.TB, store *kg.Store, ann, bot caller.Caller, c contents) {
	work := tasks.New(tasks.Options{Known: func(id kg.AgentID) bool { return id == bot.Principal.ID }})
	if err := work.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	hooks := push.New(push.Options{
		Options: delivery.Options{AllowPrivate: true}, WantsFullTask: func(string) bool { return false },
		Body: func(string, *tasks.Task, *tasks.Event) ([]byte, error) { return []byte("{}"), nil },
	})
	if err := hooks.Load(t.Context(), store, work); err != nil {
		t.Fatal(err)
	}
	defer hooks.Close()
	ear := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ear.Close()
	finish := func(along func(*kg.Tx, *tasks.Task) error) error {
		sent, err := work.Send(t.Context(), ann, tasks.SendRequest{To: bot.Principal.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do it")}}, WriteAlso: along})
		if err == nil {
			_, err = work.Report(t.Context(), bot, sent.Task.ID, tasks.Report{State: tasks.Completed})
		}
		return err
	}
	fill(t, c.tasks, func(int) error { return finish(nil) })
	fill(t, c.hooks, func(int) error {
		along, err := hooks.PrepareConfig(push.Config{URL: ear.URL})
		if err != nil {
			return err
		}
		return finish(along)
	})
	for told := 0; told < c.hooks; time.Sleep(10 * time.Millisecond) {
		told = count(t, store, kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "pushDone")})
	}
}

// fill calls work for 0 … n-1 from many goroutines.
func fill(t testing.TB, n int, work func(i int) error) {
	t.Helper()
	next, ctx := make(chan int), t.Context()
	var wg sync.WaitGroup
	for range fillers {
		wg.Go(func() {
			for i := range next {
				err := work(i)
				for kg.CodeOf(err) == kg.CodeOverloaded { // the volume is slow
					time.Sleep(100 * time.Millisecond)
					err = work(i)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if t.Failed() || ctx.Err() != nil {
		t.FailNow()
	}
}

func count(t testing.TB, store *kg.Store, p kg.Pattern) int {
	t.Helper()
	snapshot, err := store.View(context.Background(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	n, err := snapshot.Count(p)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func awaitNone(t testing.TB, store *kg.Store, what string, p kg.Pattern) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); count(t, store, p) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s", what)
		}
	}
}

// The part of the index that the server reads before its first answer, and right after it,
// does not grow with messages, tasks, web hooks, statements and commits that are not needed
// in memory.
func TestStartReadsWhatItKeeps(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	few := contents{statements: 500, channels: 10, messages: 100, expired: 10, tasks: 20, hooks: 5}
	many := contents{statements: 5000, channels: 10, messages: 1000, expired: 100, tasks: 200, hooks: 50}
	read := func(c contents) int {
		dir := t.TempDir()
		fillStore(t, dir, c)
		start := func() int {
			s, url := startServerOn(t, dir)
			defer func() {
				if err := s.process.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
				<-s.ended
			}()
			return settledKeysRead(t, url)
		}
		first := start() // builds the index of texts, from all statements
		again := start()
		t.Logf("%d keys, and %d to start again", first, again)
		return again
	}
	base, more := read(few), read(many)
	t.Logf("%d keys, and %d with ten times as much", base, more)
	if more > base+base/10 {
		t.Errorf("a start reads %d keys of the index, and %d with ten times as much in the store", base, more)
	}
}

// settledKeysRead is how many keys the server has read once it reads no more.
func settledKeysRead(t *testing.T, url string) (n int) {
	t.Helper()
	for same := 0; same < 5; time.Sleep(100 * time.Millisecond) {
		response := get(t, url+"/metrics")
		raw, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		found := keysRead.FindSubmatch(raw)
		if found == nil {
			t.Fatalf("no number of keys in %s", raw)
		}
		now, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if same++; int(now) != n {
			n, same = int(now), 0
		}
	}
	return n
}

var keysRead = regexp.MustCompile(`(?m)^koine_store_index_keys_read_total (\S+)$`)

var (
	startStore    = flag.String("start.store", "", "where BenchmarkStart has its store, which it fills if it is not there; a temporary one by default")
	startContents = flag.Int("start.messages", 100_000, "how many messages BenchmarkStart fills a store with; statements are five times as many")
)

// BenchmarkStart starts the server on a store that was closed in order, until it is ready,
// and reports its memory at that moment.
func BenchmarkStart(b *testing.B) {
	dir := *startStore
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(dir + "/koine.json"); err != nil {
		n := *startContents
		fillStore(b, dir, contents{statements: 5 * n, channels: min(n, 3000), messages: n, tasks: n / 10})
	}
	for b.Loop() {
		cmd := exec.Command("koine", "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", dir)
		out, err := cmd.StderrPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		s := &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
		url, err := s.listening(out)
		if err != nil {
			b.Fatal(err, s.log)
		}
		response, err := http.Get(url + "/readyz")
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		response.Body.Close()
		b.StopTimer()
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
			if peak := peakMemory.FindSubmatch(status); peak != nil {
				kib, _ := strconv.Atoi(string(peak[1]))
				b.ReportMetric(float64(kib)/1024, "peak-MiB")
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		<-s.ended
		b.StartTimer()
	}
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
