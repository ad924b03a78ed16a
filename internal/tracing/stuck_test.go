package tracing_test

import (
	"context"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// stuck is an exporter whose first batch takes until free is closed.
type stuck struct {
	once          sync.Once
	entered, free chan struct{}
	mu            sync.Mutex // guards spans
	spans         int
}

func (s *stuck) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.once.Do(func() { close(s.entered) })
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans += len(spans)
	return nil
}

func (s *stuck) Shutdown(context.Context) error { return nil }
