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
	n       uint32
	blocks  column // where each block begins in data
	data    []byte
	offsets column // where the postings of each term begin
}

type dictionaryWriter struct {
	dictionary
	last []byte
}

// addTerm adds a term behind the last one.
func (w *dictionaryWriter) addTerm(term []byte, offset uint64) {
	shared := 0
	if w.n%dictionaryBlock == 0 {
		w.blocks.appendValue(uint64(len(w.data)))
	} else {
		for shared < len(term) && shared < len(w.last) && term[shared] == w.last[shared] {
			shared++
		}
	}
	w.data = binary.AppendUvarint(w.data, uint64(shared))
	w.data = binary.AppendUvarint(w.data, uint64(len(term)-shared))
	w.data = append(w.data, term[shared:]...)
	w.offsets.appendValue(offset)
	w.n++
	w.last = append(w.last[:0], term...)
}

func (w *dictionaryWriter) writeTo(out *imageWriter) {
	out.putNumber(uint64(w.n))
	out.putColumn(w.blocks)
	out.putBytes(w.data)
	out.putColumn(w.offsets)
}

func readDictionary(r *imageReader) dictionary {
	return dictionary{n: uint32(r.readNumber()), blocks: r.readColumn(), data: r.readBytes(), offsets: r.readColumn()}
}

// termCursor walks the terms of a dictionary in order.
type termCursor struct {
	d      *dictionary
	number uint32 // of the current term; d.n at the end
	term   []byte // valid until the next step
	rest   []byte
}

// fromBlock returns a cursor at the first term of a block.
func (d *dictionary) fromBlock(block uint32) *termCursor {
	c := &termCursor{d: d, number: block*dictionaryBlock - 1}
	if d.n > 0 {
		c.rest = d.data[d.blocks.valueAt(block):]
	}
	c.nextTerm()
	return c
}

func (c *termCursor) atEnd() bool { return c.number >= c.d.n }

func (c *termCursor) nextTerm() {
	if c.number++; c.atEnd() {
		return
	}
	shared, b := uvarint(c.rest)
	n, b := uvarint(b)
	c.term, c.rest = append(c.term[:shared], b[:n]...), b[n:]
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
	c := d.fromBlock(d.blockOf(term))
	for !c.atEnd() && string(c.term) < term {
		c.nextTerm()
	}
	return c.number, !c.atEnd() && string(c.term) == term
}

// startingWith yields the terms that begin with a prefix, in order.
func (d *dictionary) startingWith(prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for c := d.fromBlock(d.blockOf(prefix)); !c.atEnd(); c.nextTerm() {
			switch {
			case len(c.term) >= len(prefix) && string(c.term[:len(prefix)]) == prefix:
				if !yield(string(c.term)) {
					return
				}
			case string(c.term) > prefix:
				return
			}
		}
	}
}

// postingsOf returns the postings of a term, and what follows.
func (s *segment) postingsOf(term uint32) []byte {
	return s.postings[s.terms.offsets.valueAt(term):]
}
