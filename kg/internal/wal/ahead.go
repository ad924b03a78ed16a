package wal

import "sync"

// batchBytes ends a batch of a frameReader, aheadBatches is how many it has: one is used while
// the next is read.
const (
	batchBytes   = windowBytes
	aheadBatches = 3
)

// frameReader reads entries in order, with their payloads, on a goroutine of its own, so that
// hashing is beside reading. It checks everything but the links.
type frameReader struct {
	batches chan *frameBatch // closed after the last one
	free    chan *frameBatch // to be filled anew
	stopped chan struct{}
	done    sync.WaitGroup
}

// frameBatch is a run of entries, valid until it is free.
type frameBatch struct {
	frames []frame
	room   []byte
	err    error // ends the run
	failed uint64
}

// readAhead starts a reader. The caller calls stop.
func (l *Log) readAhead(from, to uint64) *frameReader {
	r := &frameReader{batches: make(chan *frameBatch, aheadBatches), free: make(chan *frameBatch, aheadBatches), stopped: make(chan struct{})}
	for range aheadBatches {
		r.free <- &frameBatch{}
	}
	r.done.Go(func() { r.readFrom(l, from, to) })
	return r
}

// stop ends the reader and waits for it.
func (r *frameReader) stop() {
	close(r.stopped)
	r.done.Wait()
}

func (r *frameReader) readFrom(l *Log, from, to uint64) {
	defer close(r.batches)
	in := l.newOrderedReader()
	defer in.Close()
	var payload []byte
	for from <= to {
		var b *frameBatch
		select {
		case b = <-r.free:
		case <-r.stopped:
			return
		}
		from, payload = b.fill(in, from, to, payload)
		r.batches <- b // has room for all batches
		if b.err != nil {
			return
		}
	}
}

// fill reads entries until there are batchBytes of them. It returns the entry to go on with.
func (b *frameBatch) fill(in *orderedReader, from, to uint64, payload []byte) (uint64, []byte) {
	if b.frames = b.frames[:0]; cap(b.room) == 0 {
		b.room = make([]byte, batchBytes)
	}
	for used := 0; from <= to && used < batchBytes; from++ {
		// A longer entry is not in the room, which keeps its size.
		f, err := in.readLone(from, b.room[used:used:batchBytes])
		if err == nil {
			payload, err = f.unpackInto(payload)
		}
		if err != nil {
			b.err, b.failed = err, from
			break
		}
		b.frames = append(b.frames, f)
		used += len(f.raw)
	}
	return from, payload
}
