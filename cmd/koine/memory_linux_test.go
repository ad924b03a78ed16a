package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/footprint"
	"koine/internal/slowtest"
)

var publishFor = flag.Duration("memory.for", 25*time.Second, "how long TestMemory publishes")

// The load of TestMemory.
const (
	publishers   = 64
	sampledEvery = 250 * time.Millisecond
	returnsIn    = time.Minute
)

// TestMemory publishes to the program in a process of its own, and reads its resident memory:
// it stays below a bound, and soon after the load it is at most twice that of before. Ten minutes
// as in docs/benchmarks.md:
//
//	go test ./cmd/koine -run TestMemory -memory.for 10m -timeout 30m -v
func TestMemory(t *testing.T) {
	slowtest.Long(t)
	slowtest.WithoutRace(t) // the program is not built with it, and the load is less
	binary := program(t)
	for _, row := range []struct {
		flags string
		bound int64
	}{
		{"", 400 << 20},
		{"--memory 256M", 250 << 20},
	} {
		t.Run("serve "+row.flags, func(t *testing.T) {
			s, url := startProgram(t, serveCommandLine(binary, "", row.flags)...)
			read := func() footprint.Footprint {
				f, err := footprint.Read(s.process.Process.Pid)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			time.Sleep(3 * time.Second) // the start reads the index in the background
			atRest := read()
			load := newPublishing(t, url)
			most := atRest
			for began := time.Now(); time.Since(began) < *publishFor; time.Sleep(sampledEvery) {
				f := read()
				if f.Resident > row.bound {
					t.Fatalf("after %s and %d messages %d MiB are resident, %d of them private, want less than %d", time.Since(began), load.sent.Load(), f.Resident>>20, f.Private>>20, row.bound>>20)
				}
				if f.Resident > most.Resident {
					most = f
				}
			}
			load.endPublishing(t)
			under := read()
			if load.sent.Load() < 1000 {
				t.Fatalf("only %d messages were published", load.sent.Load())
			}
			after := under
			for began := time.Now(); after.Resident > 2*atRest.Resident; time.Sleep(sampledEvery) {
				if time.Since(began) > returnsIn {
					t.Fatalf("%s after the load %d MiB are resident, want at most twice the %d of before", returnsIn, after.Resident>>20, atRest.Resident>>20)
				}
				after = read()
			}
			messages := time.Duration(load.sent.Load())
			t.Logf("%d messages, %s of processor time each; at rest %d MiB, at most %d (%d private) of the samples and %d of any moment under load, then %d; %d bytes written a message",
				messages, (under.Processor-atRest.Processor)/messages, atRest.Resident>>20, most.Resident>>20, most.Private>>20, under.Peak>>20, after.Resident>>20, (under.Written-atRest.Written)/int64(messages))
		})
	}
}

// publishing is a load of messages to one channel.
type publishing struct {
	sent    atomic.Int64
	stop    chan struct{}
	clients sync.WaitGroup
	failed  atomic.Pointer[error]
}

// newPublishing starts the publishers, each on a connection of its own.
func newPublishing(t *testing.T, url string) *publishing {
	t.Helper()
	_, text := ask(t, http.MethodPost, url+"/a2a", "bench", `{"jsonrpc":"2.0","id":1,"method":"channels/create","params":{"name":"load"}}`)
	var answer struct {
		Result struct {
			Channel struct{ ID, ChannelID string }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err, text)
	}
	channel := answer.Result.Channel.ID + answer.Result.Channel.ChannelID
	p := &publishing{stop: make(chan struct{})}
	t.Cleanup(func() { p.endPublishing(t) })
	for i := range publishers {
		p.clients.Go(func() {
			if err := p.publish(strings.TrimPrefix(url, "http://"), channel, i); err != nil {
				p.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return p
}

// endPublishing stops the publishers. It may be called again.
func (p *publishing) endPublishing(t *testing.T) {
	t.Helper()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.clients.Wait()
	if err := p.failed.Load(); err != nil {
		t.Error(*err)
	}
}

// publish sends messages, one after the other, until stop.
func (p *publishing) publish(address, channel string, client int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		select {
		case <-p.stop:
			return nil
		default:
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"type":"text","text":"%d of %d: %s"}]}}`,
			channel, n, client, strings.Repeat("I found 3 relevant papers. ", 9))
		if _, err := fmt.Fprintf(conn, "POST /a2a HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			return err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), `"sequence"`) {
			return fmt.Errorf("%s %.300s", resp.Status, text)
		}
		p.sent.Add(1)
	}
}
