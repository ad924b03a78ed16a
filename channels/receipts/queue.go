package receipts

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of the commits that write receipts.
const (
	receiptPause = time.Second      // between two commits of a channel
	receiptTime  = 30 * time.Second // per commit

	// maxReceiptChanges bounds the changes of one commit, except for a single
	// acknowledgement that needs more.
	maxReceiptChanges = 4000
	maxExpiring       = 4000 // expiring messages of one acknowledgement
)

// receiptQueue batches acknowledgements, so that those of a channel share a commit.
type receiptQueue struct {
	receipts *Receipts
	store    *kg.Store
	wake     chan struct{}

	mu      sync.Mutex // guards the following
	closed  bool
	count   int
	pending map[channel.ID][]*pendingAck
	last    map[channel.ID]time.Time // last commit, while it delays the next one
}

// Receipts records and lists which messages their recipients received and read.
type Receipts struct {
	table   *access.Table
	journal *journal.Journal
	now     func() time.Time
	queue   *receiptQueue // nil before open
	most    int           // acknowledgements that may wait
}

// NewReceipts returns the receipts of the channels in the table. At most most
// acknowledgements wait to be written.
func NewReceipts(table *access.Table, j *journal.Journal, now func() time.Time, most int) *Receipts {
	return &Receipts{table: table, journal: j, now: now, most: most}
}

// Open starts writing acknowledgements, as a job of the group.
func (s *Receipts) Open(g *jobs.Group, store *kg.Store) {
	s.queue = &receiptQueue{receipts: s, store: store, wake: make(chan struct{}, 1), pending: map[channel.ID][]*pendingAck{}, last: map[channel.ID]time.Time{}}
	g.Start("write receipts", s.queue.run)
}

// close refuses further acknowledgements. The pending ones are still written.
func (r *receiptQueue) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// enqueue adds an acknowledgement to the queue. It fails if the queue is full or
// closed.
func (r *receiptQueue) enqueue(a *pendingAck) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return kg.Errorf(kg.CodeClosed, "server is shutting down")
	}
	if r.count >= r.receipts.most {
		e := kg.Errorf(kg.CodeOverloaded, "%d receipts are waiting to be written: retry later", r.count)
		e.RetryAfter = receiptPause
		return e
	}
	r.count++
	r.pending[a.Channel] = append(r.pending[a.Channel], a)
	jobs.Wake(r.wake)
	return nil
}

// run writes acknowledgements until ctx is done, and then those that are pending.
func (r *receiptQueue) run(ctx context.Context) error {
	for {
		id, list, pause, closed := r.dequeue()
		if list != nil {
			r.commitBatch(id, list)
			continue
		}
		if closed {
			return nil
		}
		if !jobs.Wait(ctx, pause, r.wake) {
			r.close()
		}
	}
}

// dequeue returns the next batch to write. If there is none, pause is the time until
// the next one, 0 if nothing is pending.
func (r *receiptQueue) dequeue() (id channel.ID, list []*pendingAck, pause time.Duration, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, at := range r.last {
		if now.Sub(at) >= receiptPause {
			delete(r.last, id)
		}
	}
	for id, all := range r.pending {
		at, held := r.last[id]
		if held && !r.closed {
			if left := at.Add(receiptPause).Sub(now); pause == 0 || left < pause {
				pause = left
			}
			continue
		}
		n := 0
		for changes := 0; n < len(all) && (n == 0 || changes+len(all[n].individual) < maxReceiptChanges); n++ {
			changes += 1 + len(all[n].individual)
		}
		list = slices.Clone(all[:n])
		if r.pending[id] = all[n:]; len(r.pending[id]) == 0 {
			delete(r.pending, id)
		}
		r.count -= n
		r.last[id] = now
		return id, list, 0, r.closed
	}
	return "", nil, pause, r.closed
}

// commitBatch writes acknowledgements of one channel in one commit and reports the
// results to their callers.
func (r *receiptQueue) commitBatch(id channel.ID, list []*pendingAck) {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTime)
	defer cancel()
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/acknowledge", Justification: "receipts"}
	err := systemgraph.Update(ctx, r.store, meta, func(tx *kg.Tx) error {
		e := r.receipts.table.Get(id)
		for _, a := range list {
			if err := a.writeReceipts(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, a := range list {
		if err != nil {
			a.lastErr = err
		}
		a.done <- a.lastErr
	}
}
