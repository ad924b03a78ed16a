package textindex

import (
	"encoding/binary"
	"iter"
	"sort"
)

// dictionaryBlock is how many terms share their beginnings with the one before.
const dictionaryBlock = 16

// dictionary has the terms of a segment in order, with where their postings begin.
type dictionary struct {
	n      uint32
	blocks column // where each block begins in data
	data   []byte
	// offsets has where the postings of each term begin, and where the last ones end.
	offsets column
}

type dictionaryWriter struct {
	last    string
	blocks  []uint64
	data    []byte
	offsets []uint64
}

// addTerm adds a term behind the last one.
func (w *dictionaryWriter) addTerm(term string, offset uint64) {
	shared := 0
	if len(w.offsets)%dictionaryBlock == 0 {
		w.blocks = append(w.blocks, uint64(len(w.data)))
	} else {
		for shared < len(term) && shared < len(w.last) && term[shared] == w.last[shared] {
			shared++
		}
	}
	w.data = binary.AppendUvarint(w.data, uint64(shared))
	w.data = binary.AppendUvarint(w.data, uint64(len(term)-shared))
	w.data = append(w.data, term[shared:]...)
	w.offsets = append(w.offsets, offset)
	w.last = term
}

func (w *dictionaryWriter) writeTo(out *imageWriter, end uint64) {
	out.putNumber(uint64(len(w.offsets)))
	out.putColumn(newColumn(w.blocks))
	out.putBytes(w.data)
	out.putColumn(newColumn(append(w.offsets, end)))
}

func readDictionary(r *imageReader) dictionary {
	return dictionary{n: uint32(r.readNumber()), blocks: r.readColumn(), data: r.readBytes(), offsets: r.readColumn()}
}

// fromBlock yields the terms from the first of a block on, with their numbers.
func (d *dictionary) fromBlock(block uint32) iter.Seq2[uint32, string] {
	return func(yield func(uint32, string) bool) {
		if d.n == 0 {
			return
		}
		b := d.data[d.blocks.valueAt(block):]
		var term []byte
		for i := block * dictionaryBlock; i < d.n; i++ {
			var shared, n uint64
			shared, b = uvarint(b)
			n, b = uvarint(b)
			term = append(term[:shared], b[:n]...)
			b = b[n:]
			if !yield(i, string(term)) {
				return
			}
		}
	}
}

// blockOf returns the block in which a term is if the dictionary has it.
func (d *dictionary) blockOf(term string) uint32 {
	n := sort.Search(d.blocks.countValues(), func(i int) bool {
		b := d.data[d.blocks.valueAt(uint32(i)):]
		_, b = uvarint(b)
		size, b := uvarint(b)
		return string(b[:size]) > term
	})
	return uint32(max(n-1, 0))
}

// findTerm returns the number of a term.
func (d *dictionary) findTerm(term string) (uint32, bool) {
	for i, t := range d.fromBlock(d.blockOf(term)) {
		if t >= term {
			return i, t == term
		}
	}
	return 0, false
}

// startingWith yields the terms that begin with a prefix, in order.
func (d *dictionary) startingWith(prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range d.fromBlock(d.blockOf(prefix)) {
			switch {
			case len(t) >= len(prefix) && t[:len(prefix)] == prefix:
				if !yield(t) {
					return
				}
			case t > prefix:
				return
			}
		}
	}
}

// postingsOf returns the postings of a term.
func (s *segment) postingsOf(term uint32) []byte {
	return s.postings[s.terms.offsets.valueAt(term):s.terms.offsets.valueAt(term+1)]
}
