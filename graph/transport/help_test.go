package transport_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/names"
	"koine/internal/sse"
	"koine/kg"
)

const ex = "https://example.org/"

func iri(name string) kg.Term { return kg.IRI(ex + name) }

var reader = kg.Principal{ID: "agent://reader", Method: "test"}

// bench is an engine over an empty store of its own.
type bench struct {
	t      testing.TB
	store  *kg.Store
	engine *graph.Engine
	log    *logBuffer

	returned atomic.Int32 // handlers
}

func newBench(t testing.TB, options graph.Options, configure ...func(*kg.Options)) *bench {
	t.Helper()
	log := &logBuffer{}
	o := kg.Options{ReserveBytes: 1, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range configure {
		f(&o)
	}
	store, err := kg.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	deps := graph.Deps{Store: store, Prefixes: prefixes, Names: names.NewJudge(store, names.Lenient), Logger: slog.New(slog.NewTextHandler(log, nil))}
	return &bench{t: t, store: store, engine: graph.NewEngine(deps, options), log: log}
}

// deps are those of a handler over the bench's engine.
func (b *bench) deps(streams *sse.Server) transport.Deps {
	return transport.Deps{Engine: b.engine, Positions: b.store, Streams: streams}
}

// logBuffer is the output of the engine's log.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// update makes one commit.
func (b *bench) update(patches ...kg.Patch) kg.Receipt {
	b.t.Helper()
	receipt, err := b.store.Update(context.Background(), kg.Meta{Principal: kg.Principal{ID: "agent://writer"}, Justification: "test"}, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return receipt
}

func add(s, p, o kg.Term) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: s, Predicate: p, Object: o, Graph: kg.DefaultGraph}}
}

// settle waits until the store has no watchers and no snapshots left.
func (b *bench) settle() {
	b.t.Helper()
	eventually(b.t, "nothing is left open in the store", func() bool {
		s := b.store.Stats()
		return s.Watchers == 0 && s.Snapshots == 0
	})
}

// eventually waits for a condition that becomes true soon.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.After(time.Minute); !holds(); {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

// hashOf is the SHA-256 of a document, as requests name it.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
