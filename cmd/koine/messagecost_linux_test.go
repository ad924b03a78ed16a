package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/footprint"
)

var (
	costlyMessages = flag.Int("messages", 100_000, "how many messages BenchmarkMessages counts in a round, after a fifth as many")
	costBeside     = flag.String("messages.beside", "", "another build of the `program`, measured by BenchmarkMessages in turns with this one")
	costProfile    = flag.String("messages.profile", "", "`directory` for a profile of processor time and one of the heap of each round of BenchmarkMessages; taking them costs time itself")
)

// BenchmarkMessages publishes messages over HTTP to the program in a process of its own, and
// reports for each the processor time of the program, the bytes that it wrote to the volume
// and those that it keeps. A round is long enough that the index in memory is written out and compacted
// as often as it is filled; it ends when the program is at rest, so that bytes written later
// count too. The clients are bare connections. The resident memory is the largest of the round, and that at its end.
//
//	go test ./cmd/koine -run '^$' -bench BenchmarkMessages -benchtime 3x
//	… -messages.beside /path/to/another/koine
func BenchmarkMessages(b *testing.B) {
	sides := []string{program(b)}
	if *costBeside != "" {
		sides = append(sides, *costBeside)
	}
	for _, channels := range []int{1, 128} {
		for _, publishers := range []int{16, 128} {
			b.Run(fmt.Sprintf("channels=%d/publishers=%d", channels, publishers), func(b *testing.B) {
				costs := make([][]messageCost, len(sides))
				for round := range b.N {
					for i := range sides {
						i = (i + round) % len(sides)
						costs[i] = append(costs[i], costOfMessages(b, sides[i], channels, publishers, *costlyMessages))
					}
				}
				b.ReportMetric(0, "ns/op")
				for i, prefix := range []string{"", "beside-"}[:len(sides)] {
					reportMessages(b, prefix, costs[i])
				}
				if len(sides) > 1 {
					ratios := make([]float64, b.N)
					for i := range ratios {
						ratios[i] = costs[0][i].processor / costs[1][i].processor
					}
					slices.Sort(ratios)
					b.ReportMetric(ratios[len(ratios)/2], "ratio")
				}
			})
		}
	}
}

// messageCost is the cost of a message for the program, in the mean of a round.
type messageCost struct {
	processor     float64 // µs
	perSecond     float64
	written, kept float64 // bytes
	most, after   float64 // MiB of resident memory
}

// reportMessages reports the median of each measure, and the processor time of all rounds.
func reportMessages(b *testing.B, prefix string, costs []messageCost) {
	b.Helper()
	median := func(of func(messageCost) float64) float64 {
		all := make([]float64, len(costs))
		for i, c := range costs {
			all[i] = of(c)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for _, c := range costs {
		b.Logf("%s%.1f µs, %.0f messages/s, %.0f bytes written and %.0f kept, %.0f MiB and %.0f after", prefix, c.processor, c.perSecond, c.written, c.kept, c.most, c.after)
	}
	b.ReportMetric(median(func(c messageCost) float64 { return c.processor }), prefix+"cpu-µs")
	b.ReportMetric(median(func(c messageCost) float64 { return c.perSecond }), prefix+"messages/s")
	b.ReportMetric(median(func(c messageCost) float64 { return c.written / c.kept }), prefix+"written/kept")
	b.ReportMetric(median(func(c messageCost) float64 { return c.kept }), prefix+"kept-B")
	b.ReportMetric(median(func(c messageCost) float64 { return c.most }), prefix+"MiB")
}

func costOfMessages(b *testing.B, binary string, channels, publishers, n int) (cost messageCost) {
	b.Helper()
	var arguments []string
	if *costProfile != "" {
		arguments = []string{"--debug-listen", "127.0.0.1:0"}
	}
	s, url := startProgram(b, serveCommandLine(binary, "", arguments...)...)
	crowd := &chatCrowd{b: b, url: url, address: strings.TrimPrefix(url, "http://")}
	ids := make([]string, channels)
	for i := range ids {
		ids[i] = crowd.room([]string{"ann"})
	}
	clients := make([]*dialectClient, publishers)
	for i := range clients {
		conn := crowd.dial("")
		clients[i] = &dialectClient{conn: conn, in: bufio.NewReader(conn)}
	}
	words := strings.Repeat("words of it ", 20)
	send := func(from, to int) {
		var next atomic.Int64
		next.Store(int64(from))
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() {
				var request []byte
				for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"type":"text","text":"message %d: %s"}]}}`, ids[i%channels], i, words)
					request = fmt.Appendf(request[:0], "POST /a2a HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: ann\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					_, err := c.conn.Write(request)
					if err == nil {
						err = c.awaitResult()
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if b.Failed() {
			b.FailNow()
		}
	}
	warm := n / 5
	send(0, warm)
	settle(b, s)
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var high int64
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-stop:
				most <- high
				return
			case <-tick.C:
				high = max(high, residentNow(b, s))
			}
		}
	}()
	kept, written, spent, began := keptBytes(b, crowd), writtenBytes(b, s), cpuTime(b, s), time.Now()
	profiled := profileMessages(b, s, fmt.Sprintf("%d-%d-%d", channels, publishers, began.Unix()))
	send(warm, warm+n)
	took := time.Since(began)
	profiled()
	settle(b, s)
	each := func(of int64) float64 { return float64(of) / float64(n) }
	cost.processor = each(int64(cpuTime(b, s)-spent)) / 1000
	cost.perSecond = float64(n) / took.Seconds()
	cost.written, cost.kept = each(writtenBytes(b, s)-written), each(keptBytes(b, crowd)-kept)
	close(stop)
	cost.most, cost.after = float64(<-most)/(1<<20), float64(residentNow(b, s))/(1<<20)
	for _, c := range clients {
		c.conn.Close()
	}
	if err := s.process.Process.Kill(); err != nil {
		b.Fatal(err)
	}
	<-s.ended
	return cost
}

// profileMessages begins a profile of the program if one is asked for, and returns a function that
// waits until it is written.
func profileMessages(b *testing.B, s *server, name string) (wait func()) {
	b.Helper()
	if *costProfile == "" {
		return func() {}
	}
	found := regexp.MustCompile(`debug pages.*url=(\S+)`).FindStringSubmatch(s.log.String())
	if found == nil {
		b.Fatal("no debug pages in", s.log)
	}
	save := func(page, kind string) {
		resp, err := http.Get(found[1] + "debug/pprof/" + page)
		if err != nil {
			b.Error(err)
			return
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(*costProfile, name+"."+kind), raw, 0o666)
		}
		if err != nil {
			b.Error(err)
		}
	}
	var all sync.WaitGroup
	all.Go(func() { save("profile?seconds=15", "cpu") })
	return func() {
		save("heap", "heap")
		all.Wait()
	}
}

// awaitResult reads a response with a Content-Length, with as little work as possible.
func (c *dialectClient) awaitResult() error {
	length, status := -1, ""
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if status == "" {
			status = string(line)
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); string(name) == "Content-Length" {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 || !strings.HasPrefix(status, "HTTP/1.1 200") {
		return fmt.Errorf("%s, %d bytes", status, length)
	}
	body, err := c.in.Peek(min(length, c.in.Size()))
	if err == nil && !bytes.Contains(body, []byte(`"sequence":`)) {
		err = fmt.Errorf("answer %.300s", body)
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, c.in, int64(length))
	}
	return err
}

// writtenBytes returns the bytes that the server gave to the volume.
func writtenBytes(b *testing.B, s *server) int64 {
	b.Helper()
	used, err := footprint.Read(s.process.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	return used.Written
}

// keptBytes returns the used bytes of the log, the index and the index of texts.
func keptBytes(b *testing.B, c *chatCrowd) (sum int64) {
	b.Helper()
	resp, err := http.Get(c.url + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"koine_store_log_bytes", "koine_store_index_bytes", "koine_search_index_bytes"} {
		sum += numberAfter(b, string(text), "\n"+name+" ")
	}
	return sum
}

// numberAfter returns the number behind a name in a text of lines.
func numberAfter(b *testing.B, text, name string) int64 {
	b.Helper()
	_, rest, found := strings.Cut(text, name)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		b.Fatal(name, err)
	}
	return int64(n)
}
