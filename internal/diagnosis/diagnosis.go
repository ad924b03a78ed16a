// Package diagnosis shows the operator the work of a server: the slowest operations of the
// last hour with their plans, the waits of updates, the use of memory, and profiles.
//
// A Recorder takes the reports of other packages. It keeps no value of a caller: documents are
// kept without their texts and numbers, plans without their terms. Its handler has no access
// control, so it belongs to a listener on a loopback address (Listen). It answers only requests
// that name one too: a page of another site could otherwise read it through a name of its own
// that leads to this machine.
package diagnosis

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"koine/kg"
)

// Recorder keeps the reports of a server. Its methods are safe for concurrent use.
type Recorder struct {
	slow  slowest
	began time.Time

	mu    sync.Mutex // guards the rest
	waits [len(stageNames)]wait
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// NoteOperation records an operation that ends now. document is a GraphQL document or "", and
// plan returns the steps of its plan; it is called if the operation is kept.
func (r *Recorder) NoteOperation(o Slow, plan func() []string) {
	now := time.Now()
	if !r.slow.wants(now, o.Took) {
		return
	}
	o.Began = now.Add(-o.Took)
	o.Document = shapeOf(o.Document)
	if plan != nil {
		o.Plan = plan()
	}
	r.slow.keepOperation(now, o)
}

// methodNotFound is the code of JSON-RPC for a method that does not exist.
const methodNotFound = -32601

// NoteCall records a call of JSON-RPC that ends now.
func (r *Recorder) NoteCall(method string, code int, took time.Duration) {
	if code == methodNotFound { // the method is a text of the caller
		method = hidden
	}
	r.NoteOperation(Slow{Kind: method, Took: took, Failed: code != 0}, nil)
}

// The stages of an update in order, and judging, which is part of executing.
const (
	queueStage = iota
	executeStage
	appendStage
	applyStage
	judgeStage
)

var stageNames = [...]string{"queue", "execute", "append and sync the log", "apply to the index", "judge by shapes and rules"}

// wait is the time that updates spent in a stage.
type wait struct {
	count   int64
	sum     time.Duration
	longest time.Duration
}

func (w *wait) add(d time.Duration) {
	w.count++
	w.sum += d
	w.longest = max(w.longest, d)
}

// NoteStages records the stages of an acknowledged update (kg.Governor.Stages).
func (r *Recorder) NoteStages(_ context.Context, s kg.Stages) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits[queueStage].add(s.Taken.Sub(s.Queued))
	r.waits[executeStage].add(s.Executed.Sub(s.Taken))
	r.waits[appendStage].add(s.Appended.Sub(s.Executed))
	r.waits[applyStage].add(s.Applied.Sub(s.Appended))
}

// TimeVerifier returns a verifier that records its time, nil for nil.
func (r *Recorder) TimeVerifier(v kg.Verifier) kg.Verifier {
	if v == nil {
		return nil
	}
	return timed{r, v}
}

type timed struct {
	recorder *Recorder
	kg.Verifier
}

// Idle reports whether the verifier has no rules.
func (v timed) Idle() bool {
	i, ok := v.Verifier.(kg.Idler)
	return ok && i.Idle()
}

// Verify calls the verifier.
func (v timed) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	began := time.Now()
	verdict, err := v.Verifier.Verify(ctx, j)
	took := time.Since(began)
	v.recorder.mu.Lock()
	defer v.recorder.mu.Unlock()
	v.recorder.waits[judgeStage].add(took)
	return verdict, err
}

// Listen listens on a loopback address. Any other is refused.
func Listen(address string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: profiles are for this machine only; give an address such as 127.0.0.1:6060", address)
	}
	return net.ListenTCP("tcp", tcp)
}
