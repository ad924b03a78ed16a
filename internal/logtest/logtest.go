// Package logtest holds the log of a test's subject.
package logtest

import (
	"bytes"
	"sync"
)

// Buffer is a bytes.Buffer for concurrent use: a test reads the log while it grows.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the log.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the log so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
