package wal

import (
	"crypto/sha256"
	"runtime"
	"sync"
)

// maxCheckers is how many goroutines of a frameReader check entries, on as many processors.
const maxCheckers = 4

// frameReader reads entries in order for Frames. One goroutine reads windows of the segments,
// others check and hash their entries: the hash of an entry does not need the one before. Links
// are left to the receiver.
type frameReader struct {
	log     *Log
	batches chan *frameBatch // in order; closed after the last one
	filled  chan *frameBatch // to be checked
	free    chan *frameBatch // to be filled anew
	stopped chan struct{}
	done    sync.WaitGroup
}

// frameBatch is a run of entries in one window, valid until it is free.
type frameBatch struct {
	first   uint64
	raws    [][]byte
	room    []byte        // of the window
	checked chan struct{} // receives when the fields below are set
	frames  []Frame
	err     error // of the entry after the frames: ends the run
}

// readAhead starts a reader. The caller calls stop.
func (l *Log) readAhead(from, to uint64) *frameReader {
	checkers := min(runtime.GOMAXPROCS(0), maxCheckers)
	batches := checkers + 2 // one is filled, one used
	r := &frameReader{
		log:     l,
		batches: make(chan *frameBatch, batches), // all have room for all, so that no send blocks
		filled:  make(chan *frameBatch, batches),
		free:    make(chan *frameBatch, batches),
		stopped: make(chan struct{}),
	}
	for range batches {
		r.free <- &frameBatch{checked: make(chan struct{}, 1)}
	}
	r.done.Go(func() { r.readFrom(from, to) })
	for range checkers {
		r.done.Go(r.checkBatches)
	}
	return r
}

// stop ends the goroutines and waits for them.
func (r *frameReader) stop() {
	close(r.stopped)
	r.done.Wait()
}

func (r *frameReader) readFrom(from, to uint64) {
	defer close(r.batches)
	defer close(r.filled)
	in := r.log.newOrderedReader()
	defer in.Close()
	for from <= to {
		var b *frameBatch
		select {
		case b = <-r.free:
		case <-r.stopped:
			return
		}
		from = b.fill(in, from, to)
		r.batches <- b
		r.filled <- b
	}
}

// fill reads a window of entries, or one that is not found in a window. It returns the entry to
// go on with.
func (b *frameBatch) fill(in *orderedReader, from, to uint64) uint64 {
	b.first, b.raws = from, b.raws[:0]
	in.entries = window{bytes: b.room[:0]}
	for raw := in.find(from); raw != nil; raw = in.findRead(from) {
		b.raws = append(b.raws, raw)
		if from++; from > to {
			break
		}
	}
	b.room = in.entries.bytes
	if len(b.raws) == 0 {
		b.raws = append(b.raws, nil)
		from++
	}
	return from
}

// checkBatches checks batches until the last one is read. It yields its processor after each:
// the operations of a server are before its backup.
func (r *frameReader) checkBatches() {
	for b := range r.filled {
		select {
		case <-r.stopped:
		default:
			b.check(r.log)
		}
		b.checked <- struct{}{}
		runtime.Gosched()
	}
}

// check checks and hashes the entries. Those that were not found, or are damaged, are read through
// raft-wal, which has the error.
func (b *frameBatch) check(l *Log) {
	b.frames, b.err = b.frames[:0], nil
	for i, raw := range b.raws {
		index := b.first + uint64(i)
		f, err := decodeFrame(raw)
		if err != nil || f.index != index {
			if f, err = l.readLone(index, nil); err != nil {
				b.err = err
				return
			}
		}
		b.frames = append(b.frames, Frame{f.index, f.prev, sha256.Sum256(f.raw), f.raw})
	}
}
