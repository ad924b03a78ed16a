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

	mu     sync.Mutex // guards what follows
	closed bool
	count  int
	waits  map[ChannelID][]*acknowledging
	last   map[ChannelID]time.Time // of the last commits, for as long as they hold others up
}

func (s *Service) startReceipts() {
	r := &receiptQueue{service: s, wake: make(chan struct{}, 1), waits: map[ChannelID][]*acknowledging{}, last: map[ChannelID]time.Time{}}
	s.receipts = r
	r.done.Go(r.run)
}

// close writes what waits, and ends.
func (r *receiptQueue) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.tell()
	r.done.Wait()
}

func (r *receiptQueue) tell() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *receiptQueue) add(a *acknowledging) error {
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
	r.waits[a.Channel] = append(r.waits[a.Channel], a)
	r.tell()
	return nil
}

// run writes what waits until it is closed and nothing does.
func (r *receiptQueue) run() {
	for {
		id, list, pause, closed := r.next()
		if list != nil {
			r.commit(id, list)
			continue
		}
		if closed {
			return
		}
		rest(context.Background(), pause, r.wake)
	}
}

// next takes what is to be written now; or tells when to look again, 0 for when
// something comes.
func (r *receiptQueue) next() (id ChannelID, list []*acknowledging, pause time.Duration, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, at := range r.last {
		if now.Sub(at) >= receiptPause {
			delete(r.last, id)
		}
	}
	for id, all := range r.waits {
		at, held := r.last[id]
		if held && !r.closed {
			if left := at.Add(receiptPause).Sub(now); pause == 0 || left < pause {
				pause = left
			}
			continue
		}
		n := 0
		for changes := 0; n < len(all) && (n == 0 || changes+len(all[n].single) < maxReceiptChanges); n++ {
			changes += 1 + len(all[n].single)
		}
		list = slices.Clone(all[:n])
		if r.waits[id] = all[n:]; len(r.waits[id]) == 0 {
			delete(r.waits, id)
		}
		r.count -= n
		r.last[id] = now
		return id, list, 0, r.closed
	}
	return "", nil, pause, r.closed
}

func (r *receiptQueue) commit(id ChannelID, list []*acknowledging) {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTime)
	defer cancel()
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/acknowledge", Justification: "receipts"}
	err := records.Update(ctx, r.service.store, meta, func(tx *kg.Tx) error {
		e := r.service.table.get(id)
		for _, a := range list {
			if err := a.write(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, a := range list {
		if err != nil {
			a.err = err
		}
		a.done <- a.err
	}
}
