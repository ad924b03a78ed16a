package channels

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Bounds of the commits that receipts are written in.
const (
	receiptPause = time.Second      // between two of a channel's
	receiptTime  = 30 * time.Second // of one

	// maxReceiptChanges is how many changes one commit makes at most, but for one
	// acknowledgement that needs more.
	maxReceiptChanges = 4000
)

// receiptQueue gathers acknowledgements, so that those of a channel share a commit.
type receiptQueue struct {
	service *Service
	done    sync.WaitGroup
	wake    chan struct{}

	mu      sync.Mutex // guards what follows
	closed  bool
	count   int
	pending map[ChannelID][]*pendingAck
	last    map[ChannelID]time.Time // of the last commits, for as long as they hold others up
}

func (s *Service) startReceipts() {
	r := &receiptQueue{service: s, wake: make(chan struct{}, 1), pending: map[ChannelID][]*pendingAck{}, last: map[ChannelID]time.Time{}}
	s.receipts = r
	r.done.Go(r.run)
}

// close writes what waits, and ends.
func (r *receiptQueue) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.signalWake()
	r.done.Wait()
}

func (r *receiptQueue) signalWake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *receiptQueue) enqueue(a *pendingAck) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return kg.Errorf(kg.CodeClosed, "the server is going down")
	}
	if r.count >= r.service.options.MaxReceipts {
		e := kg.Errorf(kg.CodeOverloaded, "%d receipts wait to be written already", r.count)
		e.RetryAfter = receiptPause
		return e
	}
	r.count++
	r.pending[a.Channel] = append(r.pending[a.Channel], a)
	r.signalWake()
	return nil
}

// run writes what waits until it is closed and nothing does.
func (r *receiptQueue) run() {
	for {
		id, list, pause, closed := r.dequeue()
		if list != nil {
			r.commitBatch(id, list)
			continue
		}
		if closed {
			return
		}
		waitOrWake(context.Background(), pause, r.wake)
	}
}

// dequeue takes what is to be written now; or tells when to look again, 0 for when
// something comes.
func (r *receiptQueue) dequeue() (id ChannelID, list []*pendingAck, pause time.Duration, closed bool) {
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

func (r *receiptQueue) commitBatch(id ChannelID, list []*pendingAck) {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTime)
	defer cancel()
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/acknowledge", Justification: "receipts"}
	err := records.Update(ctx, r.service.store, meta, func(tx *kg.Tx) error {
		e := r.service.table.get(id)
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
