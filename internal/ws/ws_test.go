package ws_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/internal/ws"
)

var (
	errFirst = errors.New("no introduction")
	errPanic = errors.New("panic")
)

// serve starts a server whose protocol panics at "panic", admits at "hello", and echoes.
func serve(t *testing.T, first time.Duration) string {
	server := ws.NewServer(ws.Options{
		Streams: sse.New(sse.Options{}), MaxPending: 10, FirstTimeout: first, ErrFirst: errFirst, MaxFirstBytes: 10, MaxBytes: 100,
		WriteTimeout: time.Second, PingInterval: time.Minute, PongTimeout: time.Second,
		CloseReason: func(cause error) (websocket.StatusCode, string) {
			if errors.Is(cause, sse.ErrClientGone) {
				return 0, ""
			}
			return websocket.StatusPolicyViolation, cause.Error()
		},
		Panicked: func(any) error { return errPanic },
	})
	http := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := server.Accept(w, r, false)
		if err != nil || conn == nil {
			t.Error("not accepted:", err)
			return
		}
		conn.Serve(func(_ websocket.MessageType, text []byte, received *throttle.Received) error {
			defer received.Release()
			switch string(text) {
			case "panic":
				panic("on purpose")
			case "hello":
				if err := conn.Admit(caller.Caller{}); err != nil {
					return err
				}
			}
			return conn.Write(text)
		})
	}))
	t.Cleanup(http.Close)
	return http.URL
}

// TestConn proves that a client that introduces itself is served until a panic, which ends its
// connection alone, and that one that does not is told why it ends.
func TestConn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dial := func(url string) *websocket.Conn {
		conn, _, err := websocket.Dial(ctx, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		return conn
	}
	ends := func(conn *websocket.Conn, want error) {
		t.Helper()
		var told websocket.CloseError
		if _, _, err := conn.Read(ctx); !errors.As(err, &told) || told.Code != websocket.StatusPolicyViolation || told.Reason != want.Error() {
			t.Errorf("the end is %v, want %v", err, want)
		}
	}
	ends(dial(serve(t, time.Millisecond)), errFirst)

	conn := dial(serve(t, time.Minute))
	for _, text := range []string{"hello", "longer than ten bytes"} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(ctx); err != nil || string(got) != text {
			t.Fatalf("%q is answered %q: %v", text, got, err)
		}
	}
	if err := conn.Write(ctx, websocket.MessageText, []byte("panic")); err != nil {
		t.Fatal(err)
	}
	ends(conn, errPanic)
}

// Messages that a client sends before the answer to its request arrive, in order, also when they are
// longer than the buffers.
func TestEarlyMessages(t *testing.T) {
	address := strings.TrimPrefix(serve(t, time.Minute), "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	request := "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	sent := []string{"hello"}
	for i := range 20 {
		sent = append(sent, strings.Repeat(string(rune('a'+i)), 99))
	}
	for _, text := range sent {
		request += string([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range sent {
		frame := make([]byte, 2+len(text))
		if _, err := io.ReadFull(in, frame); err != nil || string(frame[2:]) != text {
			t.Fatalf("%q is answered %q: %v", text, frame, err)
		}
	}
}
