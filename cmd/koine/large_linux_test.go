package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/caller"
	"koine/internal/footprint"
	"koine/internal/memory"
	"koine/internal/social"
	"koine/kg"
)

var (
	largeStatements = flag.Int("large.statements", 300_000, "how many statements of a social network the store of BenchmarkLargeStore has; the other has a tenth, at most 1,000,000")
	largeMessages   = flag.Int("large.messages", 30_000, "how many messages the store of BenchmarkLargeStore has; the other has a tenth")
	largeHistory    = flag.Int("large.history", 30_000, "how many values BenchmarkLargeStore replaces before it removes that history")
	largeServe      = flag.String("large.serve", "", "more arguments of the servers of BenchmarkLargeStore, such as --search=off")
	largeDir        = flag.String("large.dir", "", "`directory` of the stores of BenchmarkLargeStore, which are used again if they are there")
)

// The rounds of BenchmarkLargeStore.
const (
	largeRounds   = 5
	largeReads    = 4000 // of a round
	largeChannels = 100
	probeEvery    = 5 * time.Millisecond
)

// BenchmarkLargeStore compares a large store with a smaller one, and each part with its twin, in
// turns: the start after a clean stop, point reads, a check and its memory, a backup beside
// copying the same bytes, and the longest pause of writes and reads while a week of history is
// removed, as much as a week may have, beside that of another server in the same minutes. One round is the whole.
//
//	go test ./cmd/koine -run '^$' -bench LargeStore -benchtime 1x -timeout 3h
//	… -large.statements 30000000 -large.messages 5000000 -large.history 1000000 -large.dir /var/tmp/large
func BenchmarkLargeStore(b *testing.B) {
	l := &largeStores{binary: program(b), dir: *largeDir}
	if l.dir == "" {
		l.dir = b.TempDir()
	}
	l.large = l.prepare(b, "large", *largeStatements, *largeMessages, *largeHistory)
	l.small = l.prepare(b, "small", min(*largeStatements/10, 1_000_000), *largeMessages/10, 0)
	b.ReportMetric(0, "ns/op")
	for _, part := range []struct {
		name    string
		measure func(*testing.B)
	}{{"start", l.measureStart}, {"reads", l.measureReads}, {"check", l.measureCheck}, {"backup", l.measureBackup}, {"retention", l.measureRetention}} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				part.measure(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// largeStores are the two stores of BenchmarkLargeStore.
type largeStores struct {
	binary, dir  string
	large, small largeStore
}

// largeStore is a data directory and what it holds.
type largeStore struct {
	dir        string
	statements int
}

// prepare makes a store if it is not there: statements by koine load, messages and history as the
// server writes them. A server then has it until the index of texts is complete and no table
// is left to merge.
func (l *largeStores) prepare(b *testing.B, name string, statements, messages, history int) largeStore {
	b.Helper()
	store := largeStore{dir: filepath.Join(l.dir, name), statements: statements}
	if _, err := os.Stat(filepath.Join(store.dir, "koine.json")); err == nil {
		return store
	}
	file := filepath.Join(l.dir, name+".nq")
	defer os.Remove(file)
	l.run(b, "sh", "-c", `"$0" bench generate --statements "$1" > "$2"`, l.binary, fmt.Sprint(statements), file)
	l.run(b, l.binary, "load", "--quiet", "--reserve-mib", "0", "--data", store.dir, file)
	if err := os.Remove(file); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	fillLarge(b, store, messages, history)
	b.Logf("%s: %d statements, %d messages, %d past values; messages and history took %s", name, statements, messages, history, time.Since(began).Round(time.Second))
	s, url := l.serve(b, store)
	if !strings.Contains(*largeServe, "--search=off") {
		awaitTexts(b, url)
	}
	settle(b, s)
	l.stopServer(b, s)
	return store
}

// run runs a command to its end and returns its output and what it used.
func (l *largeStores) run(b *testing.B, command ...string) (output string, took time.Duration, used *syscall.Rusage) {
	b.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(began)
	if err != nil {
		b.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out), took, cmd.ProcessState.SysUsage().(*syscall.Rusage)
}

// serve starts a server on a store.
func (l *largeStores) serve(b *testing.B, store largeStore, flags ...string) (s *server, url string) {
	b.Helper()
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", store.dir}, strings.Fields(*largeServe)...)
	cmd := exec.Command(l.binary, append(args, flags...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	s = &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	b.Cleanup(func() { cmd.Process.Kill() })
	if url, err = s.listening(out); err != nil {
		b.Fatal(err, s.log)
	}
	return s, url
}

// stopServer ends a server in order.
func (l *largeStores) stopServer(b *testing.B, s *server) {
	b.Helper()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		b.Fatal(err, s.log)
	}
}

// awaitTexts waits until the index of texts has all commits.
func awaitTexts(b *testing.B, url string) {
	b.Helper()
	for end := time.Now().Add(30 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get(url + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		if numberAfter(b, string(text), "\nkoine_search_lag_revisions ") == 0 {
			return
		}
		if time.Now().After(end) {
			b.Fatal("the index of texts does not become complete")
		}
	}
}

// fillLarge adds messages and history to a store.
func fillLarge(b *testing.B, store largeStore, messages, history int) {
	b.Helper()
	conversations := channels.New(channels.Options{})
	s, err := kg.Open(store.dir, kg.Options{
		ReserveBytes: 1,
		Governor:     kg.Governor{OnSystemChange: conversations.Follow, Access: conversations.Guard(kg.AllowAll{})},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := conversations.Load(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	ann := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}}
	by := channels.Caller{Principal: ann.Principal}
	ids := make([]channel.ID, largeChannels)
	fill(b, len(ids), func(i int) error {
		made, err := conversations.Create(b.Context(), by, channel.Draft{Name: fmt.Sprintf("channel %d", i)})
		if err == nil {
			ids[i] = made.ID
		}
		return err
	})
	text := strings.Repeat("I found 3 relevant papers. ", 9)
	fill(b, messages, func(i int) error {
		_, err := conversations.Publish(b.Context(), by, channels.Publication{
			Channel: ids[i%len(ids)], Parts: []json.RawMessage{fmt.Appendf(nil, `{"type":"text","text":"%d: %s"}`, i, text)},
		})
		return err
	})
	replaceValues(b, s, ann.Principal, history)
	conversations.Close()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// replaceValues replaces n values of a property, a hundred in a commit.
func replaceValues(b *testing.B, s *kg.Store, by kg.Principal, n int) {
	b.Helper()
	const each, subjects = 100, 50_000
	seen := kg.IRI(social.Vocabulary + "seen")
	value := func(i int) kg.Quad {
		return kg.Quad{Subject: personAt(i % subjects), Predicate: seen, Object: kg.Integer(int64(i / subjects))}
	}
	fill(b, (n+each-1)/each, func(commit int) error {
		var patches []kg.Patch
		for i := commit * each; i < min((commit+1)*each, n); i++ {
			// Added and, by a later commit, removed: one interval of the past.
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: value(i)})
		}
		_, err := s.Update(b.Context(), kg.Meta{Principal: by}, func(tx *kg.Tx) error { return applyAll(tx, patches) })
		if err != nil {
			return err
		}
		for i := range patches {
			patches[i].Op = kg.Remove
		}
		_, err = s.Update(b.Context(), kg.Meta{Principal: by}, func(tx *kg.Tx) error { return applyAll(tx, patches) })
		return err
	})
}

func applyAll(tx *kg.Tx, patches []kg.Patch) error {
	for _, p := range patches {
		if err := tx.Apply(p); err != nil {
			return err
		}
	}
	return nil
}

// personAt is an entity of the social network.
func personAt(n int) kg.Term { return kg.IRI(fmt.Sprintf("%sperson/%d", social.Namespace, n)) }

// people is how many entities of the kind person a network surely has.
func (s largeStore) people() int { return max(s.statements/100, 1) }

// largeClient asks a server over a connection of its own, one request after the other.
type largeClient struct {
	conn net.Conn
	in   *bufio.Reader
	room []byte
}

func dialLarge(b *testing.B, url string) *largeClient {
	b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &largeClient{conn: conn, in: bufio.NewReader(conn)}
}

// post sends a body and returns the answer, which is valid until the next call.
func (c *largeClient) post(path, body string) ([]byte, error) {
	if _, err := fmt.Fprintf(c.conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: ann\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	answer := bytes.NewBuffer(c.room[:0])
	_, err = answer.ReadFrom(resp.Body)
	c.room = answer.Bytes()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, c.room)
	}
	return c.room, err
}

// readPerson reads one entity.
func (c *largeClient) readPerson(n int) error {
	answer, err := c.post("/graphql", fmt.Sprintf(`{"query":"query($iri: IRI!) { entity(iri: $iri) { iri label types } }","variables":{"iri":%q}}`, personAt(n).Value()))
	if err == nil && !bytes.Contains(answer, []byte(`#Person"`)) && !bytes.Contains(answer, []byte(`Person`)) {
		err = fmt.Errorf("answer %.300s", answer)
	}
	return err
}

// measureStart starts both stores in turns, until a query is answered, and reads the largest memory
// until then.
func (l *largeStores) measureStart(b *testing.B) {
	var times [2][]time.Duration
	var peak [2]int64
	for range largeRounds {
		for i, store := range []largeStore{l.large, l.small} {
			began := time.Now()
			s, url := l.serve(b, store)
			if err := dialLarge(b, url).readPerson(0); err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			spent := processorTime(b, s)
			used, err := footprint.Read(s.process.Process.Pid)
			if err != nil {
				b.Fatal(err)
			}
			times[i], peak[i] = append(times[i], took), max(peak[i], used.Peak)
			b.Logf("%s: %s until the first answer, %s of processor time, at most %d MiB", filepath.Base(store.dir), took.Round(time.Millisecond), spent, used.Peak>>20)
			l.stopServer(b, s)
		}
	}
	b.ReportMetric(middle(times[0]).Seconds()*1000, "start-ms")
	b.ReportMetric(middle(times[1]).Seconds()*1000, "small-start-ms")
	b.ReportMetric(float64(peak[0])/(1<<20), "start-MiB")
	b.ReportMetric(float64(peak[1])/(1<<20), "small-start-MiB")
}

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// measureReads reads random entities of both stores in turns. The servers have verified their logs and
// indexes by then, which a large one takes longer for.
func (l *largeStores) measureReads(b *testing.B) {
	stores := []largeStore{l.large, l.small}
	var clients [2]*largeClient
	for i, store := range stores {
		s, url := l.serve(b, store)
		defer l.stopServer(b, s)
		time.Sleep(5 * time.Second) // they begin two seconds after the start
		settle(b, s)
		clients[i] = dialLarge(b, url)
	}
	dice := rand.New(rand.NewPCG(1, 1))
	var times [2][]time.Duration
	for round := range 2 * largeRounds {
		for i, store := range stores {
			for range largeReads {
				n := dice.IntN(store.people())
				began := time.Now()
				if err := clients[i].readPerson(n); err != nil {
					b.Fatal(err)
				}
				if round > 0 { // the first fills the caches
					times[i] = append(times[i], time.Since(began))
				}
			}
		}
	}
	large, small := middle(times[0]), middle(times[1])
	b.ReportMetric(large.Seconds()*1e6, "p50-µs")
	b.ReportMetric(small.Seconds()*1e6, "small-p50-µs")
	b.ReportMetric(float64(large)/float64(small), "ratio")
}

// measureCheck checks both stores, and reads the largest memory of the process.
func (l *largeStores) measureCheck(b *testing.B) {
	for _, store := range []largeStore{l.small, l.large} {
		var output bytes.Buffer
		cmd := exec.Command(l.binary, "check", "--quiet", "--data", store.dir)
		cmd.Stdout, cmd.Stderr = &output, &output
		began := time.Now()
		peak, err := runForPeak(cmd)
		took := time.Since(began)
		if err != nil {
			b.Fatalf("%v: %s", err, output.Bytes())
		}
		b.Logf("%s: %s, %s of processor time, %d MiB, %s", filepath.Base(store.dir), took.Round(time.Millisecond), processorOf(cmd.ProcessState.SysUsage().(*syscall.Rusage)), peak>>20, strings.TrimSpace(output.String()))
		name := strings.TrimPrefix(filepath.Base(store.dir)+"-", "large-")
		b.ReportMetric(float64(peak)/(1<<20), name+"check-MiB")
		b.ReportMetric(took.Seconds(), name+"check-s")
		if peak > memory.Default*5/4 {
			b.Errorf("%s: a check takes %d MiB", filepath.Base(store.dir), peak>>20)
		}
	}
}

func processorOf(used *syscall.Rusage) time.Duration {
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// measureBackup backs the large store up, in turns with two copies of the backup: one through the
// page cache and one past it. All are synced, and read what is in memory.
func (l *largeStores) measureBackup(b *testing.B) {
	file, twin := filepath.Join(l.dir, "large.koine"), filepath.Join(l.dir, "copy")
	defer os.Remove(file)
	defer os.Remove(twin)
	ways := [][]string{
		{l.binary, "backup", "--quiet", "--data", l.large.dir, "--output", file},
		{"dd", "bs=1M", "conv=fsync", "if=" + file, "of=" + twin},
		{"dd", "bs=4M", "oflag=direct", "conv=fsync", "if=" + file, "of=" + twin},
	}
	took := make([][]time.Duration, len(ways))
	var mebibytes float64
	for range 3 {
		os.Remove(file)
		for i, command := range ways {
			os.Remove(twin)
			_, t, used := l.run(b, command...)
			took[i] = append(took[i], t)
			if i == 0 {
				mebibytes = readWhole(b, file) / (1 << 20)
			}
			b.Logf("%s: %s, %s of processor time", strings.Join(command[:4], " "), t.Round(time.Millisecond), processorOf(used))
		}
	}
	speed := func(i int) float64 { return mebibytes / middle(took[i]).Seconds() }
	b.ReportMetric(speed(0), "MiB/s")
	b.ReportMetric(speed(1), "copy-MiB/s")
	b.ReportMetric(speed(2), "direct-copy-MiB/s")
	b.ReportMetric(speed(0)/speed(1), "ratio")
	b.ReportMetric(speed(0)/speed(2), "direct-ratio")
}

// readWhole reads a file, so that it is in memory, and returns its size.
func readWhole(b *testing.B, path string) (size float64) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	n, err := io.Copy(io.Discard, f)
	if err != nil {
		b.Fatal(err)
	}
	return float64(n)
}

// probes are the times that writes and reads took.
type probes struct {
	mu            sync.Mutex
	writes, reads []probe
}

// probe is one write or read.
type probe struct {
	began time.Time
	took  time.Duration
}

// follow does work in intervals until stop is closed, and adds the time that it reports.
func (p *probes) follow(b *testing.B, to *[]probe, stop <-chan struct{}, all *sync.WaitGroup, work func() (time.Duration, error)) {
	all.Go(func() {
		for clock := time.NewTicker(probeEvery); ; {
			select {
			case <-stop:
				clock.Stop()
				return
			case <-clock.C:
			}
			began := time.Now()
			took, err := work()
			if err != nil {
				b.Error(err)
				return
			}
			p.mu.Lock()
			*to = append(*to, probe{began, took})
			p.mu.Unlock()
		}
	})
}

// followServer writes to and reads from a server.
func (p *probes) followServer(b *testing.B, url string, people int, stop <-chan struct{}, all *sync.WaitGroup) {
	b.Helper()
	crowd := &chatCrowd{b: b, url: url, address: strings.TrimPrefix(url, "http://")}
	room := crowd.room([]string{"ann"})
	writer, reader := dialLarge(b, url), dialLarge(b, url)
	dice := rand.New(rand.NewPCG(2, 2))
	p.follow(b, &p.writes, stop, all, func() (time.Duration, error) {
		began := time.Now()
		answer, err := writer.post("/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"type":"text","text":"probe"}]}}`, room))
		if err == nil && !bytes.Contains(answer, []byte(`"sequence"`)) {
			err = fmt.Errorf("answer %.300s", answer)
		}
		return time.Since(began), err
	})
	p.follow(b, &p.reads, stop, all, func() (time.Duration, error) {
		began := time.Now()
		err := reader.readPerson(dice.IntN(people))
		return time.Since(began), err
	})
}

// followMachine probes the machine without a server: a write is one of 4 KiB with a sync, a read the
// delay of a timer.
func (p *probes) followMachine(b *testing.B, path string, stop <-chan struct{}, all *sync.WaitGroup) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close(); os.Remove(path) })
	page := make([]byte, 4<<10)
	p.follow(b, &p.writes, stop, all, func() (time.Duration, error) {
		began := time.Now()
		_, err := f.WriteAt(page, 0)
		err = errors.Join(err, f.Sync())
		return time.Since(began), err
	})
	const delay = 2 * time.Millisecond
	p.follow(b, &p.reads, stop, all, func() (time.Duration, error) {
		began := time.Now()
		time.Sleep(delay)
		return time.Since(began) - delay, nil
	})
}

// take returns the probes since the last call.
func (p *probes) take() (writes, reads []probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	writes, reads, p.writes, p.reads = p.writes, p.reads, nil, nil
	return writes, reads
}

// measureRetention removes the history of the large store while it is written and read, and does the
// same to the small store, which has none. The first minute is before the removal.
func (l *largeStores) measureRetention(b *testing.B) {
	s, url := l.serve(b, l.large, "--history", "1m") // its age makes no difference
	other, otherURL := l.serve(b, l.small)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var ours, theirs, machine probes
	ours.followServer(b, url, l.large.people(), stop, &all)
	theirs.followServer(b, otherURL, l.small.people(), stop, &all)
	machine.followMachine(b, filepath.Join(l.dir, "probe"), stop, &all)
	end := sync.OnceFunc(func() {
		close(stop)
		all.Wait()
	})
	b.Cleanup(end)
	const begins, ends = "oldest readable revision raised", "removed old history"
	report := func(part string) {
		syncs, delays := machine.take()
		b.Logf("%s, the machine: %s", part, describeProbes(syncs, delays, nil))
		for _, side := range []struct {
			name string
			of   *probes
		}{{"large", &ours}, {"beside", &theirs}} {
			writes, reads := side.of.take()
			b.Logf("%s, %s: %s", part, side.name, describeProbes(writes, reads, slices.Concat(syncs, delays)))
			if part == "during" && len(writes) > 0 && len(reads) > 0 {
				name := strings.TrimPrefix(side.name+"-", "large-")
				longest := slices.MaxFunc(slices.Concat(writes, reads), compareProbes)
				b.ReportMetric(longest.took.Seconds()*1000, name+"longest-ms")
			}
		}
	}
	await := func(text string, within time.Duration) {
		for end := time.Now().Add(within); !strings.Contains(s.log.String(), text); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) || b.Failed() {
				b.Fatalf("no line %q in %s", text, s.log)
			}
		}
	}
	await(begins, 5*time.Minute)
	report("before")
	began := time.Now()
	await(ends, 2*time.Hour)
	report("during")
	line := s.log.String()[strings.Index(s.log.String(), ends):]
	line, _, _ = strings.Cut(line, "\n")
	used, err := footprint.Read(s.process.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%s, in %s; at most %d MiB", line, time.Since(began).Round(time.Millisecond), used.Peak>>20)
	b.ReportMetric(time.Since(began).Seconds(), "retention-s")
	end()
	l.stopServer(b, s)
	l.stopServer(b, other)
}

// longPause is how long a probe takes that is listed.
const longPause = 50 * time.Millisecond

func compareProbes(a, b probe) int { return cmp.Compare(a.took, b.took) }

// describeProbes describes writes and reads, and tells of each long one how long the longest probe
// of the machine took at that time.
func describeProbes(writes, reads, machine []probe) string {
	var parts []string
	for _, of := range []struct {
		what   string
		probes []probe
	}{{"writes", writes}, {"reads", reads}} {
		n := len(of.probes)
		if n == 0 {
			continue
		}
		sorted := slices.SortedFunc(slices.Values(of.probes), compareProbes)
		var long []string
		for _, p := range sorted {
			if p.took < longPause {
				continue
			}
			var beside time.Duration
			for _, m := range machine {
				if m.began.Before(p.began.Add(p.took)) && p.began.Before(m.began.Add(m.took)) {
					beside = max(beside, m.took)
				}
			}
			long = append(long, fmt.Sprintf("%s at %s (machine %s)", p.took.Round(time.Millisecond), p.began.Format("04:05.00"), beside.Round(time.Millisecond)))
		}
		parts = append(parts, fmt.Sprintf("%d %s, p50 %s, p99 %s, longest %s, %d of %s and more %v", n, of.what,
			sorted[n/2].took.Round(10*time.Microsecond), sorted[n*99/100].took.Round(10*time.Microsecond), sorted[n-1].took.Round(10*time.Microsecond), len(long), longPause, long))
	}
	return strings.Join(parts, "; ")
}
