package kg

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// erasedCheckpoint is the checkpoint before a log whose head was cut, without what
// is erased. It is held in memory as a whole. Numbers of the dictionary keep their
// places: a term that nothing uses any more is replaced by one that says nothing.
type erasedCheckpoint struct {
	x       *eraser
	m       marker
	terms   map[uint64]Term
	numbers map[Term]uint64 // of terms; nil until it is asked for
	rows    uint64          // that were erased or altered
	records []checkpointRecord
	// touched are the statements of which an assertion was erased, with all times
	// in which they stand, oldest first.
	touched map[IDQuad][]standing
	// named are the same by the names of their graphs: what is left of a statement in one
	// generation of its graph says since when it has stood in the next.
	named map[IDQuad]bool
	// generations is the table of the checkpoint, nil where no graph was replaced.
	generations *generations
	// atCheckpoint is what was erased of what stands in graphs.
	atCheckpoint *erasedContents
	used         map[uint64]bool // numbers of terms
	counts       map[string]uint64
	last         map[[2]ID]Revision // of what is left in the checkpoint, by graph and subject
}

type checkpointRecord struct {
	kind       byte
	key, value []byte
}

// standing is a statement as it stood from one revision until another, 0 for one
// that stands.
type standing struct {
	from, to   Revision
	assertions []Assertion
}

// readErasedCheckpoint reads the newest checkpoint, which has this path and marker, and
// removes from it what x erases. The log behind it begins with first.
func readErasedCheckpoint(path string, m marker, x *eraser, first Revision) (*erasedCheckpoint, error) {
	if m.revision+1 < first {
		return nil, errLogDamaged(fmt.Errorf("it begins at %d, and the newest checkpoint is of %d", first, m.revision))
	}
	c := &erasedCheckpoint{
		x: x, m: m, terms: make(map[uint64]Term), touched: make(map[IDQuad][]standing),
		named: make(map[IDQuad]bool), used: make(map[uint64]bool), counts: make(map[string]uint64), last: make(map[[2]ID]Revision),
	}
	c.atCheckpoint = newErasedContents()
	for _, step := range []func(checkpointRecord) error{c.term, c.generation, c.find, c.take} {
		if err := eachRecord(path, step); err != nil {
			return nil, err
		}
	}
	if err := c.mergeTouched(); err != nil {
		return nil, err
	}
	c.x.atCheckpoint = c.atCheckpoint
	x.before, x.checkpoint = c.stoodSince, m.revision
	return c, nil
}

// eachRecord calls fn for the records of a checkpoint that was verified.
func eachRecord(path string, fn func(checkpointRecord) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(f, 1<<20)
	if _, err := readCheckpointHead(r); err != nil {
		return err
	}
	var failed error
	err = readRecords(r, func(kind byte, key, value []byte) bool {
		failed = fn(checkpointRecord{kind, key, value})
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// term notes a term of the dictionary.
func (c *erasedCheckpoint) term(r checkpointRecord) error {
	if r.kind != 'T' {
		return nil
	}
	n, ok := keys.ParseNumber(append(keys.NumberPrefix(), r.key...))
	t, err := parseTerm(r.value)
	if !ok || err != nil {
		return errors.Join(codec.ErrMalformed, err)
	}
	c.terms[n] = t
	return nil
}

func (c *erasedCheckpoint) agent(n uint64) (AgentID, error) {
	t, ok := c.terms[n]
	if !ok {
		return "", codec.ErrMalformed
	}
	return AgentID(t.value), nil
}

func (c *erasedCheckpoint) quad(ids IDQuad) (q Quad, err error) {
	ids.Graph = c.generations.name(ids.Graph)
	for _, part := range quadParts(&q, &ids) {
		if !part.id.IsNumbered() {
			if *part.term, err = inlineTerm(*part.id); err != nil {
				return q, err
			}
			continue
		}
		t, ok := c.terms[part.id.Number()]
		if !ok {
			return q, codec.ErrMalformed
		}
		*part.term = t
	}
	return q, nil
}

// row reads a statement or an interval of the past; ok is false for other records.
func (c *erasedCheckpoint) row(r checkpointRecord) (ids IDQuad, at standing, ok bool, err error) {
	switch r.kind {
	case 'S':
		ids, ok = keys.SPOG.Parse(append([]byte{byte(keys.SPOG)}, r.key...))
	case 'P':
		whole := append([]byte{byte(keys.SPOG.Past())}, r.key...)
		if ids, ok = keys.SPOG.Past().Parse(whole); ok {
			from, to, _ := keys.Interval(whole)
			at.from, at.to = Revision(from), Revision(to)
		}
	default:
		return ids, at, false, nil
	}
	if !ok {
		return ids, at, false, codec.ErrMalformed
	}
	st, err := parseState(r.value, c.agent)
	at.from, at.assertions = st.since, st.assertions
	return ids, at, true, err
}

// find notes the statements of which an assertion is erased.
func (c *erasedCheckpoint) find(r checkpointRecord) error {
	ids, at, ok, err := c.row(r)
	if !ok || err != nil || c.x.options.Source == "" {
		return err
	}
	q, err := c.quad(ids)
	if err != nil || !c.x.options.covers(&q) {
		return err
	}
	if len(withoutSource(at.assertions, c.x.options.Source)) < len(at.assertions) {
		c.named[c.byName(ids)] = true
	}
	return nil
}

// take keeps a record, alters it, or leaves it out.
func (c *erasedCheckpoint) take(r checkpointRecord) error {
	ids, at, ok, err := c.row(r)
	if err != nil {
		return err
	}
	if !ok {
		if r.kind != 'T' { // written at the end
			c.records = append(c.records, checkpointRecord{r.kind, slices.Clone(r.key), slices.Clone(r.value)})
		}
		return nil
	}
	if c.named[c.byName(ids)] {
		c.touched[ids] = append(c.touched[ids], at)
		return nil
	}
	q, err := c.quad(ids)
	if err != nil {
		return err
	}
	if c.x.options.Source == "" && c.x.options.covers(&q) {
		c.rows++
		c.x.pairs[[2]Term{q.Graph, q.Subject}] = true
		c.note(ids, &q, at, standing{})
		return nil
	}
	return c.keep(ids, at)
}

// keep adds the record of a statement, or of an interval of its past, and notes
// what it uses.
func (c *erasedCheckpoint) keep(ids IDQuad, at standing) error {
	pair := [2]ID{ids.Graph, ids.Subject}
	c.last[pair] = max(c.last[pair], at.from, at.to)
	numbers := make(map[AgentID]uint64)
	for _, a := range at.assertions {
		n, ok := c.number(agentTerm(a.Source))
		if !ok {
			return codec.ErrMalformed
		}
		numbers[a.Source] = n
		c.used[n] = true
	}
	value := appendState(nil, state{at.from, at.assertions}, func(a AgentID) uint64 { return numbers[a] })
	for _, id := range [...]ID{ids.Subject, ids.Predicate, ids.Object, ids.Graph} {
		if id.IsNumbered() {
			c.used[id.Number()] = true
		}
	}
	if at.to != 0 {
		key := keys.SPOG.AppendPast(nil, ids, uint64(at.from), uint64(at.to))
		c.records = append(c.records, checkpointRecord{'P', key[1:], value})
		return nil
	}
	c.records = append(c.records, checkpointRecord{'S', keys.SPOG.Append(nil, ids)[1:], value})
	q, err := c.quad(ids)
	c.counts[string(keys.Predicate(ids.Graph, ids.Predicate))]++
	if q.Predicate.value == RDFType {
		c.counts[string(keys.Class(ids.Graph, ids.Object))]++
	}
	return err
}

// number is that of a term.
func (c *erasedCheckpoint) number(t Term) (uint64, bool) {
	if c.numbers == nil {
		c.numbers = make(map[Term]uint64, len(c.terms))
		for n, t := range c.terms {
			c.numbers[t] = n
		}
	}
	n, ok := c.numbers[t]
	return n, ok
}

// mergeTouched takes the assertions out and joins what then says the same.
func (c *erasedCheckpoint) mergeTouched() error {
	for _, ids := range c.inOrder() {
		list := c.touched[ids]
		q, err := c.quad(ids)
		if err != nil {
			return err
		}
		c.x.pairs[[2]Term{q.Graph, q.Subject}] = true
		slices.SortFunc(list, func(a, b standing) int { return int(int64(a.from) - int64(b.from)) })
		var out []standing
		for _, at := range list {
			c.rows++
			at.assertions = withoutSource(at.assertions, c.x.options.Source)
			if n := len(out); n > 0 && out[n-1].to == at.from && equalAssertions(out[n-1].assertions, at.assertions) {
				out[n-1].to = at.to
				continue
			}
			out = append(out, at)
		}
		out = slices.DeleteFunc(out, func(at standing) bool { return len(at.assertions) == 0 })
		c.follow(ids, out)
		c.touched[ids] = out
		c.noteTouched(ids, &q, list, out)
		for _, at := range out {
			if err := c.keep(ids, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// stoodSince is since when a statement stood as it did before a revision.
func (c *erasedCheckpoint) stoodSince(q Quad, at Revision) (Revision, bool) {
	var ids IDQuad
	for _, part := range quadParts(&q, &ids) {
		if id, inline := inlineID(*part.term); inline {
			*part.id = id
		} else if n, ok := c.number(*part.term); ok {
			*part.id = keys.Numbered(tagOf(*part.term), n)
		} else {
			return 0, false
		}
	}
	graph, found := c.generations.idAt(ids.Graph, at-1)
	if ids.Graph = graph; !found {
		return 0, false
	}
	st, found := c.stood(ids, at)
	return st.from, found
}

// finish brings what follows from the statements into line with them.
func (c *erasedCheckpoint) finish() error {
	kinds := make(map[string]bool)
	kept := c.records[:0]
	for _, r := range c.records {
		switch r.kind {
		case 'C', 'D':
			prefix := byte(keys.PrefixPredicate)
			if r.kind == 'D' {
				prefix = keys.PrefixClass
			}
			t, err := parseTally(r.value)
			if err != nil {
				return err
			}
			was := t.count
			graph, _, _ := keys.ParsePair(append([]byte{prefix}, r.key...))
			// What is being removed from the index is found by its counts.
			if t.count = c.counts[string([]byte{prefix})+string(r.key)]; t.count == 0 && was > 0 && c.generations.kept(graph) {
				continue
			}
			c.use(append([]byte{prefix}, r.key...))
			r.value = t.encode()
		case backedRecord:
			continue // counted when it is read
		case 'G', 'H':
			continue // made of the terms below
		}
		kept = append(kept, r)
	}
	c.records = kept
	for n, t := range c.terms {
		if !c.used[n] {
			t = erasedTerm(t, n)
		}
		c.records = append(c.records, checkpointRecord{'T', keys.Number(n)[1:], appendTerm(nil, t)})
		if key := literalKindKey(t); key != nil {
			kinds[string(key)] = true
		}
	}
	for key := range kinds {
		kind := byte('G')
		if key[0] == keys.DatatypePrefix()[0] {
			kind = 'H'
		}
		c.records = append(c.records, checkpointRecord{kind, []byte(key[1:]), []byte{}})
	}
	return nil
}

// use notes the terms of a pair of ids.
func (c *erasedCheckpoint) use(key []byte) {
	a, b, _ := keys.ParsePair(key)
	for _, id := range [...]ID{a, b} {
		if id.IsNumbered() {
			c.used[id.Number()] = true
		}
	}
}

// lastChanges brings the last change of each subject of which something was erased
// into line with what is left, in the checkpoint and in the log up to it.
func (c *erasedCheckpoint) lastChanges() error {
	kept := c.records[:0]
	for _, r := range c.records {
		if r.kind == 'L' {
			graph, subject, ok := keys.ParsePair(append(keys.LastPrefix(), r.key...))
			if !ok {
				return codec.ErrMalformed
			}
			q, err := c.quad(IDQuad{Subject: subject, Predicate: subject, Object: subject, Graph: graph})
			if err != nil {
				return err
			}
			if pair := [2]Term{q.Graph, q.Subject}; c.x.pairs[pair] {
				last := max(c.x.last[pair], c.last[[2]ID{graph, subject}])
				if last == 0 {
					continue
				}
				r.value = binary.AppendUvarint(nil, uint64(last))
			}
			c.use(append(keys.LastPrefix(), r.key...))
		}
		kept = append(kept, r)
	}
	c.records = kept
	return nil
}

// erasedTerm takes the place of a term that nothing uses, under its number.
func erasedTerm(was Term, n uint64) Term {
	name := fmt.Sprintf("urn:koine:erased:%d", n)
	switch was.kind {
	case KindIRI:
		return IRI(name)
	case KindBlank:
		return Blank(name)
	}
	return String(name)
}

// write writes the checkpoint as one of another epoch, before a log of which it
// has an entry.
func (c *erasedCheckpoint) write(dir string, epoch Epoch, log *wal.Log) (err error) {
	if err := errors.Join(c.lastChanges(), c.finish(), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	m := c.m
	m.epoch = epoch
	if m.hash, err = log.Hash(uint64(m.revision)); err != nil {
		return err
	}
	return writeSummed(checkpointPath(dir, m.revision), func(out io.Writer) error {
		head := append([]byte(checkpointMagic), checkpointVersion)
		if _, err := out.Write(codec.AppendBytes(head, m.encode())); err != nil {
			return err
		}
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		w := &checkpointWriter{z: z}
		for _, r := range c.records {
			if err := w.record(r.kind, r.key, r.value); err != nil {
				return err
			}
			w.records++
		}
		return errors.Join(w.record('E', binary.AppendUvarint(nil, w.records), nil), z.Close())
	})
}
