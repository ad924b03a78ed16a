package erasure

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// ErasedCheckpoint is the checkpoint before a log whose head was trimmed, without the
// erased content. It is held in memory as a whole. Dictionary numbers stay: an unused term
// is replaced by a placeholder.
type ErasedCheckpoint struct {
	eraser  *Eraser
	marker  index.Marker
	terms   map[uint64]base.Term
	numbers map[base.Term]uint64 // of terms; nil until the first lookup
	Rows    uint64               // statements and intervals that were erased or altered
	records []CheckpointRecord
	// touched are the statements with an erased assertion, each with all intervals in
	// which it existed, oldest first.
	touched map[base.IDQuad][]interval
	// touchedNames are the same statements by the names of their graphs: the rest of a
	// statement in one generation of its graph determines Since in the next.
	touchedNames map[base.IDQuad]bool
	// generations is the table of the checkpoint, nil if no graph was replaced.
	generations *index.Generations
	// atCheckpoint counts the erased assertions of current statements.
	atCheckpoint *erasedContents
	used         map[uint64]bool // numbers of terms
	counts       map[string]uint64
	last         map[[2]base.ID]base.Revision // last change that remains in the checkpoint, by graph and subject
}

// CheckpointRecord is one record of a checkpoint.
type CheckpointRecord struct {
	kind       byte
	Key, Value []byte
}

// interval is the state of a statement from one revision until another, 0 for the current
// state.
type interval struct {
	from, to   base.Revision
	assertions []base.Assertion
}

// ReadErasedCheckpoint reads the newest checkpoint, which has this path and marker, and
// removes the content that x erases. first is the first entry of the log after it.
func ReadErasedCheckpoint(path string, m index.Marker, x *Eraser, first base.Revision) (*ErasedCheckpoint, error) {
	if m.Revision+1 < first {
		return nil, base.ErrLogDamaged(fmt.Errorf("the log begins at %d, and the newest checkpoint is of revision %d", first, m.Revision))
	}
	c := &ErasedCheckpoint{
		eraser: x, marker: m, terms: make(map[uint64]base.Term), touched: make(map[base.IDQuad][]interval),
		touchedNames: make(map[base.IDQuad]bool), used: make(map[uint64]bool), counts: make(map[string]uint64), last: make(map[[2]base.ID]base.Revision),
	}
	c.atCheckpoint = newErasedContents()
	for _, step := range []func(CheckpointRecord) error{c.readTerm, c.readGeneration, c.findTouched, c.filterRecord} {
		if err := EachRecord(path, step); err != nil {
			return nil, err
		}
	}
	if err := c.mergeTouched(); err != nil {
		return nil, err
	}
	c.eraser.atCheckpoint = c.atCheckpoint
	x.sinceBefore, x.checkpoint = c.stoodSince, m.Revision
	return c, nil
}

// EachRecord calls fn for the records of a verified checkpoint and stops at its first
// error.
func EachRecord(path string, fn func(CheckpointRecord) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(f, 1<<20)
	if _, err := archive.ReadCheckpointHead(r); err != nil {
		return err
	}
	var failed error
	err = archive.ReadRecords(r, func(kind byte, key, value []byte) bool {
		failed = fn(CheckpointRecord{kind, key, value})
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// readTerm adds a term of the dictionary.
func (c *ErasedCheckpoint) readTerm(r CheckpointRecord) error {
	if r.kind != 'T' {
		return nil
	}
	n, ok := keys.ParseNumber(append(keys.NumberPrefix(), r.Key...))
	t, err := base.ParseTerm(r.Value)
	if !ok || err != nil {
		return errors.Join(codec.ErrMalformed, err)
	}
	c.terms[n] = t
	return nil
}

func (c *ErasedCheckpoint) agentByNumber(n uint64) (base.AgentID, error) {
	t, ok := c.terms[n]
	if !ok {
		return "", codec.ErrMalformed
	}
	return base.AgentID(t.Value()), nil
}

func (c *ErasedCheckpoint) quadOf(ids base.IDQuad) (q base.Quad, err error) {
	ids.Graph = c.generations.NameID(ids.Graph)
	for _, part := range base.QuadParts(&q, &ids) {
		if !part.ID.IsNumbered() {
			if *part.Term, err = base.InlineTerm(*part.ID); err != nil {
				return q, err
			}
			continue
		}
		t, ok := c.terms[part.ID.Number()]
		if !ok {
			return q, codec.ErrMalformed
		}
		*part.Term = t
	}
	return q, nil
}

// parseRow parses a statement or an interval of the past; ok is false for other records.
func (c *ErasedCheckpoint) parseRow(r CheckpointRecord) (ids base.IDQuad, at interval, ok bool, err error) {
	switch r.kind {
	case 'S':
		ids, ok = keys.SPOG.Parse(append([]byte{byte(keys.SPOG)}, r.Key...))
	case 'P':
		whole := append([]byte{byte(keys.SPOG.Past())}, r.Key...)
		if ids, ok = keys.SPOG.Past().Parse(whole); ok {
			from, to, _ := keys.Interval(whole)
			at.from, at.to = base.Revision(from), base.Revision(to)
		}
	default:
		return ids, at, false, nil
	}
	if !ok {
		return ids, at, false, codec.ErrMalformed
	}
	st, err := base.ParseState(r.Value, c.agentByNumber)
	at.from, at.assertions = st.Since, st.Assertions
	return ids, at, true, err
}

// findTouched collects the statements with an erased assertion.
func (c *ErasedCheckpoint) findTouched(r CheckpointRecord) error {
	ids, at, ok, err := c.parseRow(r)
	if !ok || err != nil || c.eraser.options.Source == "" {
		return err
	}
	q, err := c.quadOf(ids)
	if err != nil || !c.eraser.options.matches(&q) {
		return err
	}
	if len(base.WithoutSource(at.assertions, c.eraser.options.Source)) < len(at.assertions) {
		c.touchedNames[c.byName(ids)] = true
	}
	return nil
}

// filterRecord keeps, alters or drops a record.
func (c *ErasedCheckpoint) filterRecord(r CheckpointRecord) error {
	ids, at, ok, err := c.parseRow(r)
	if err != nil {
		return err
	}
	if !ok {
		if r.kind != 'T' { // written at the end
			c.records = append(c.records, CheckpointRecord{r.kind, slices.Clone(r.Key), slices.Clone(r.Value)})
		}
		return nil
	}
	if c.touchedNames[c.byName(ids)] {
		c.touched[ids] = append(c.touched[ids], at)
		return nil
	}
	q, err := c.quadOf(ids)
	if err != nil {
		return err
	}
	if c.eraser.options.Source == "" && c.eraser.options.matches(&q) {
		c.Rows++
		c.eraser.pairs[[2]base.Term{q.Graph, q.Subject}] = true
		c.countErased(ids, &q, at, interval{})
		return nil
	}
	return c.keepRow(ids, at)
}

// keepRow adds the record of a statement or an interval, and marks the terms that it uses.
func (c *ErasedCheckpoint) keepRow(ids base.IDQuad, at interval) error {
	pair := [2]base.ID{ids.Graph, ids.Subject}
	c.last[pair] = max(c.last[pair], at.from, at.to)
	numbers := make(map[base.AgentID]uint64)
	for _, a := range at.assertions {
		n, ok := c.numberOf(base.AgentTerm(a.Source))
		if !ok {
			return codec.ErrMalformed
		}
		numbers[a.Source] = n
		c.used[n] = true
	}
	value := base.AppendState(nil, base.State{Since: at.from, Assertions: at.assertions}, func(a base.AgentID) uint64 { return numbers[a] })
	for _, id := range [...]base.ID{ids.Subject, ids.Predicate, ids.Object, ids.Graph} {
		if id.IsNumbered() {
			c.used[id.Number()] = true
		}
	}
	if at.to != 0 {
		key := keys.SPOG.AppendPast(nil, ids, uint64(at.from), uint64(at.to))
		c.records = append(c.records, CheckpointRecord{'P', key[1:], value})
		return nil
	}
	c.records = append(c.records, CheckpointRecord{'S', keys.SPOG.Append(nil, ids)[1:], value})
	q, err := c.quadOf(ids)
	c.counts[string(keys.Predicate(ids.Graph, ids.Predicate))]++
	if q.Predicate.Value() == base.RDFType {
		c.counts[string(keys.Class(ids.Graph, ids.Object))]++
	}
	return err
}

// numberOf returns the number of a term.
func (c *ErasedCheckpoint) numberOf(t base.Term) (uint64, bool) {
	if c.numbers == nil {
		c.numbers = make(map[base.Term]uint64, len(c.terms))
		for n, t := range c.terms {
			c.numbers[t] = n
		}
	}
	n, ok := c.numbers[t]
	return n, ok
}

// mergeTouched removes the erased assertions and joins adjacent intervals that are then
// equal.
func (c *ErasedCheckpoint) mergeTouched() error {
	for _, ids := range c.touchedInOrder() {
		list := c.touched[ids]
		q, err := c.quadOf(ids)
		if err != nil {
			return err
		}
		c.eraser.pairs[[2]base.Term{q.Graph, q.Subject}] = true
		slices.SortFunc(list, func(a, b interval) int { return int(int64(a.from) - int64(b.from)) })
		var out []interval
		for _, at := range list {
			c.Rows++
			at.assertions = base.WithoutSource(at.assertions, c.eraser.options.Source)
			if n := len(out); n > 0 && out[n-1].to == at.from && base.EqualAssertions(out[n-1].assertions, at.assertions) {
				out[n-1].to = at.to
				continue
			}
			out = append(out, at)
		}
		out = slices.DeleteFunc(out, func(at interval) bool { return len(at.assertions) == 0 })
		c.alignSince(ids, out)
		c.touched[ids] = out
		c.countTouched(ids, &q, list, out)
		for _, at := range out {
			if err := c.keepRow(ids, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// stoodSince returns the revision from which on a statement had the state that it had
// before the revision at.
func (c *ErasedCheckpoint) stoodSince(q base.Quad, at base.Revision) (base.Revision, bool) {
	var ids base.IDQuad
	for _, part := range base.QuadParts(&q, &ids) {
		if id, inline := base.InlineID(*part.Term); inline {
			*part.ID = id
		} else if n, ok := c.numberOf(*part.Term); ok {
			*part.ID = keys.Numbered(base.TagOf(*part.Term), n)
		} else {
			return 0, false
		}
	}
	graph, found := c.generations.IDAt(ids.Graph, at-1)
	if ids.Graph = graph; !found {
		return 0, false
	}
	st, found := c.intervalBefore(ids, at)
	return st.from, found
}

// finishRecords updates the records that depend on the statements.
func (c *ErasedCheckpoint) finishRecords() error {
	kinds := make(map[string]bool)
	kept := c.records[:0]
	for _, r := range c.records {
		switch r.kind {
		case 'C', 'D':
			prefix := byte(keys.PrefixPredicate)
			if r.kind == 'D' {
				prefix = keys.PrefixClass
			}
			t, err := index.ParseTally(r.Value)
			if err != nil {
				return err
			}
			was := t.Count
			graph, _, _ := keys.ParsePair(append([]byte{prefix}, r.Key...))
			// The removal of cleared generations finds their keys by the counts.
			if t.Count = c.counts[string([]byte{prefix})+string(r.Key)]; t.Count == 0 && was > 0 && c.generations.IsKept(graph) {
				continue
			}
			c.markUsed(append([]byte{prefix}, r.Key...))
			r.Value = t.Encode()
		case archive.SourceCountRecord:
			continue // counted when it is read
		case 'G', 'H':
			continue // rebuilt from the terms below
		}
		kept = append(kept, r)
	}
	c.records = kept
	for n, t := range c.terms {
		if !c.used[n] {
			t = erasedTerm(t, n)
		}
		c.records = append(c.records, CheckpointRecord{'T', keys.Number(n)[1:], base.AppendTerm(nil, t)})
		if key := index.LiteralKindKey(t); key != nil {
			kinds[string(key)] = true
		}
	}
	for key := range kinds {
		kind := byte('G')
		if key[0] == keys.DatatypePrefix()[0] {
			kind = 'H'
		}
		c.records = append(c.records, CheckpointRecord{kind, []byte(key[1:]), []byte{}})
	}
	return nil
}

// markUsed marks the terms of a pair of ids as used.
func (c *ErasedCheckpoint) markUsed(key []byte) {
	a, b, _ := keys.ParsePair(key)
	for _, id := range [...]base.ID{a, b} {
		if id.IsNumbered() {
			c.used[id.Number()] = true
		}
	}
}

// lastChanges updates the last change of each subject with erased content to the last one
// that remains, in the checkpoint or in the log up to it.
func (c *ErasedCheckpoint) lastChanges() error {
	kept := c.records[:0]
	for _, r := range c.records {
		if r.kind == 'L' {
			graph, subject, ok := keys.ParsePair(append(keys.LastPrefix(), r.Key...))
			if !ok {
				return codec.ErrMalformed
			}
			q, err := c.quadOf(base.IDQuad{Subject: subject, Predicate: subject, Object: subject, Graph: graph})
			if err != nil {
				return err
			}
			if pair := [2]base.Term{q.Graph, q.Subject}; c.eraser.pairs[pair] {
				last := max(c.eraser.last[pair], c.last[[2]base.ID{graph, subject}])
				if last == 0 {
					continue
				}
				r.Value = binary.AppendUvarint(nil, uint64(last))
			}
			c.markUsed(append(keys.LastPrefix(), r.Key...))
		}
		kept = append(kept, r)
	}
	c.records = kept
	return nil
}

// erasedTerm returns the placeholder for an unused term with a number.
func erasedTerm(was base.Term, n uint64) base.Term {
	name := fmt.Sprintf("urn:koine:erased:%d", n)
	switch was.Kind() {
	case base.KindIRI:
		return base.IRI(name)
	case base.KindBlank:
		return base.Blank(name)
	}
	return base.String(name)
}

// Write writes the checkpoint with another epoch. log must have the entry of the
// checkpoint's revision.
func (c *ErasedCheckpoint) Write(dir string, epoch base.Epoch, log *wal.Log) (err error) {
	if err := errors.Join(c.lastChanges(), c.finishRecords(), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	m := c.marker
	m.Epoch = epoch
	if m.Hash, err = log.Hash(uint64(m.Revision)); err != nil {
		return err
	}
	return archive.WriteSummed(archive.CheckpointPath(dir, m.Revision), func(out io.Writer) error {
		head := append([]byte(archive.CheckpointMagic), archive.CheckpointVersion)
		if _, err := out.Write(codec.AppendBytes(head, m.EncodeHead())); err != nil {
			return err
		}
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		w := &archive.CheckpointWriter{Out: z}
		for _, r := range c.records {
			if err := w.WriteRecord(r.kind, r.Key, r.Value); err != nil {
				return err
			}
			w.Records++
		}
		return errors.Join(w.WriteRecord('E', binary.AppendUvarint(nil, w.Records), nil), z.Close())
	})
}
