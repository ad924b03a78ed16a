//go:build unix

package a2a_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"koine/a2a"
	"koine/channels"
	"koine/graph"
	"koine/graph/transport"
	"koine/internal/httpd"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// benchServer is the measured part of `koine serve`.
type benchServer struct {
	addr    string
	store   *kg.Store
	rooms   *channels.Service
	streams *sse.Server
}

// startBench runs a server until the benchmark ends.
func startBench(b *testing.B) *benchServer {
	b.Helper()
	rooms := channels.New(channels.Options{})
	store, err := kg.Open(b.TempDir(), kg.Options{
		FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }, Governor: kg.Governor{Access: tasks.NewGuard(rooms.Guard(kg.AllowAll{})), OnSystemChange: rooms.Follow},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := rooms.Load(b.Context(), store); err != nil {
		b.Fatal(err)
	}
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		b.Fatal(err)
	}
	streams := sse.New(sse.Options{})
	engine := graph.NewEngine(graph.Deps{Store: store, Prefixes: prefixes}, graph.Options{})
	server := httpd.New(httpd.Options{Store: store, Streams: streams})
	work := tasks.New(tasks.Options{})
	endpoint := a2a.NewHandler(a2a.Deps{Store: store, Querier: engine, Channels: rooms, Tasks: work, Streams: streams, Prefixes: prefixes}, a2a.Options{})
	work.Handle(kg.System, endpoint.Self())
	if err := work.Load(b.Context(), store); err != nil {
		b.Fatal(err)
	}
	server.HandleRPC(endpoint)
	server.Handle("/graphql", httpd.GraphQL, transport.NewHandler(transport.Deps{Engine: engine, Positions: store, Streams: streams}, transport.Options{}))
	listener, err := httpd.Listen("127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	b.Cleanup(func() {
		stop()
		err := <-ended
		work.Close()
		rooms.Close()
		if err := errors.Join(err, store.Close()); err != nil {
			b.Error(err)
		}
	})
	return &benchServer{listener.Addr().String(), store, rooms, streams}
}

// startEcho runs a server that echoes a JSON body, as the baseline cost of net/http and
// encoding/json.
func startEcho(b *testing.B) (addr string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := errors.Join(json.NewDecoder(r.Body).Decode(&body), json.NewEncoder(w).Encode(body)); err != nil {
			panic(err)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
		<-ended // http.ErrServerClosed
	})
	return listener.Addr().String()
}

// post is a request as its bytes go over the wire.
func post(path, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// rawClient is a bare connection, so that the benchmark measures the server.
type rawClient struct {
	net.Conn
	in *bufio.Reader
}

func dialRaw(b *testing.B, addr string) *rawClient {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &rawClient{conn, bufio.NewReader(conn)}
}

// exchange sends a request and reads its answer, which must be a 200 with its
// length. The answer is valid until the next call.
func (c *rawClient) exchange(request []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch {
		case err != nil:
			return nil, err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return nil, fmt.Errorf("%s", line)
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len("Content-Length: "):]))); err != nil {
				return nil, err
			}
		case len(line) > len("\r\n"):
		case length < 0:
			return nil, errors.New("an answer without its length")
		default:
			return c.body(length)
		}
	}
}

func (c *rawClient) body(length int) ([]byte, error) {
	if length > c.in.Size() {
		return nil, fmt.Errorf("an answer of %d bytes", length)
	}
	body, err := c.in.Peek(length)
	if err != nil {
		return nil, err
	}
	_, err = c.in.Discard(length)
	return body, err
}

// data reads a stream up to the end of the next data line.
func (c *rawClient) data() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil || bytes.HasPrefix(line, []byte("data: ")) {
			return err
		}
	}
}
