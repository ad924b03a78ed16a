package fanoutbench

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

// bareServer is the twin: an event is the body of POST /publish, and each stream has a
// channel and a handler that writes and flushes. It has no rights, heartbeats, bounds of
// time or positions, and stores nothing.
type bareServer struct {
	mu      sync.Mutex
	streams map[chan []byte]struct{}
}

func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.publish(w, r)
		return
	}
	events := make(chan []byte, 16)
	s.mu.Lock()
	s.streams[events] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, events)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case e := <-events:
			if _, err := w.Write(e); err != nil {
				return
			}
			flusher.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *bareServer) publish(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	block := fmt.Appendf(nil, "data: %s\n\n", body)
	s.mu.Lock()
	defer s.mu.Unlock()
	for events := range s.streams {
		events <- block
	}
}

// runBare serves until the process is killed.
func runBare() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println("listening on", listener.Addr())
		err = http.Serve(listener, &bareServer{streams: map[chan []byte]struct{}{}})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
