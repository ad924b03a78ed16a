package kg

import (
	"encoding/binary"
	"time"

	"koine/kg/internal/codec"
)

// A log entry is a commit in bytes: self-contained (terms are spelled out,
// interned within the entry) and versioned. It names no ids and no keys, so the
// same bytes mean the same to a replica with another index.
//
//	version(1)
//	time(varint, ms)  principal  actor  justification  task  session  message
//	idempotency key   content hash(32, only with a key)
//	from version 2 on: proposal, held(1), what it was held for
//	number of terms, each: length, term record
//	number of agents, each: length, id
//	number of changes, each:
//	  op(1)  subject predicate object graph (term indexes)
//	  Add:    assertion                 Remove: which of Before (0 = all, i+1)
//	  number of Before, each an assertion; since, if there are any
//	  link: 0, or 1 + index of the change that replaces it (Remove);
//	        number of replaced, each its index (Add)
//	from version 3 on: what became of a generation of a graph(1), its graph (term
//	index), its first revision, and
//	  written:  number of statements, each: subject predicate object (term indexes),
//	            since, number of assertions, each an assertion
//	  replaced: flags(1), statements, added, removed, with a flag before; number of
//	            sources, each the index of its agent and by how much what it backs
//	            changed (varint)
//	  given up: nothing
//
// An assertion is the index of its agent and what appendAssertion writes.
//
// A commit that has nothing to do with a proposal is written in version 1, one that has
// nothing to do with a generation in version 2 at most. In version 3 the proposal may be
// empty.
const (
	entryVersion           = 1
	entryVersionProposal   = 2
	entryVersionGeneration = 3
)

// What becomes of a generation in an entry.
const (
	entryWritten  = 1
	entryReplaced = 2
	entryGivenUp  = 3
)

// Flags of a replacement in an entry: that the graph was deleted, that the counts may be
// told, and that the graph begins anew.
const (
	replacedDeleted = 1 << 0
	replacedCounted = 1 << 1
	replacedAnew    = 1 << 2
)

// entryWriter encodes commits, one after the other.
type entryWriter struct {
	terms   map[Term]uint64
	agents  map[AgentID]uint64
	termBuf []byte
	agntBuf []byte
	body    []byte
	record  []byte // of the term at hand
	entry   []byte
	// subject and graph are those of the change before: most are about the same.
	subject, graph numberedInEntry
}

type numberedInEntry struct {
	term   Term
	number uint64
}

func newEntryWriter() *entryWriter {
	return &entryWriter{terms: make(map[Term]uint64), agents: make(map[AgentID]uint64)}
}

// maxEntryKept is the size of an entry up to which its writer keeps what it was
// made in.
const maxEntryKept = 256 << 10

// write encodes a commit. What it gives is valid until the next call.
func (w *entryWriter) write(c *Commit) []byte {
	if cap(w.entry)+cap(w.body) > maxEntryKept {
		*w = *newEntryWriter()
	}
	clear(w.terms)
	clear(w.agents)
	w.termBuf, w.agntBuf, w.body = w.termBuf[:0], w.agntBuf[:0], w.body[:0]
	w.subject, w.graph = numberedInEntry{}, numberedInEntry{}
	w.entry = w.append(w.entry[:0], c)
	return w.entry
}

func (w *entryWriter) term(t Term) uint64 {
	i, ok := w.terms[t]
	if !ok {
		i = uint64(len(w.terms))
		w.terms[t] = i
		w.record = appendTerm(w.record[:0], t)
		w.termBuf = codec.AppendBytes(w.termBuf, w.record)
	}
	return i
}

// same is term of one that is often the same as the last.
func (w *entryWriter) same(last *numberedInEntry, t Term) uint64 {
	if last.term != t {
		*last = numberedInEntry{t, w.term(t)}
	}
	return last.number
}

func (w *entryWriter) assertion(a *Assertion) {
	w.body = binary.AppendUvarint(w.body, w.agent(a.Source))
	w.body = appendAssertion(w.body, *a)
}

func (w *entryWriter) agent(a AgentID) uint64 {
	i, ok := w.agents[a]
	if !ok {
		i = uint64(len(w.agents))
		w.agents[a] = i
		w.agntBuf = codec.AppendString(w.agntBuf, string(a))
	}
	return i
}

func (w *entryWriter) change(c *Change) {
	w.body = append(w.body, byte(c.Op))
	w.body = binary.AppendUvarint(w.body, w.same(&w.subject, c.Quad.Subject))
	w.body = binary.AppendUvarint(w.body, w.term(c.Quad.Predicate))
	w.body = binary.AppendUvarint(w.body, w.term(c.Quad.Object))
	w.body = binary.AppendUvarint(w.body, w.same(&w.graph, c.Quad.Graph))
	if c.Op == Add {
		w.assertion(&c.Assertion)
	} else {
		w.body = binary.AppendUvarint(w.body, withdrawn(c))
	}
	w.body = binary.AppendUvarint(w.body, uint64(len(c.Before)))
	for i := range c.Before {
		w.assertion(&c.Before[i])
	}
	if len(c.Before) > 0 {
		w.body = binary.AppendUvarint(w.body, uint64(c.Since))
	}
	if c.Op == Remove {
		w.body = binary.AppendUvarint(w.body, uint64(c.ReplacedBy+1))
		return
	}
	w.body = binary.AppendUvarint(w.body, uint64(len(c.Replaces)))
	for _, i := range c.Replaces {
		w.body = binary.AppendUvarint(w.body, uint64(i))
	}
}

// withdrawn says which assertion a removal takes away: 0 for all of them, else
// its place in Before counted from 1.
func withdrawn(c *Change) uint64 {
	if len(c.After) == 0 {
		return 0
	}
	for i, a := range c.Before {
		if a.Source == c.Assertion.Source {
			return uint64(i + 1)
		}
	}
	return 0
}

// appendEntry encodes a commit.
func appendEntry(dst []byte, c *Commit) []byte { return newEntryWriter().append(dst, c) }

func (w *entryWriter) append(dst []byte, c *Commit) []byte {
	for i := range c.Changes {
		w.change(&c.Changes[i])
	}
	version := byte(entryVersion)
	switch {
	case c.Replaced != nil || c.Written != nil:
		version = entryVersionGeneration
		w.generation(c)
	case c.ProposalID != "":
		version = entryVersionProposal
	}
	dst = append(dst, version)
	dst = binary.AppendVarint(dst, c.Time.UnixMilli())
	for _, s := range [...]string{string(c.Principal), string(c.Actor), c.Justification, c.TaskID, c.SessionID, c.MessageID, c.IdempotencyKey} {
		dst = codec.AppendString(dst, s)
	}
	if c.IdempotencyKey != "" {
		dst = append(dst, c.ContentHash[:]...)
	}
	if version >= entryVersionProposal {
		held := byte(0)
		if c.Held {
			held = 1
		}
		dst = codec.AppendString(dst, c.ProposalID)
		dst = codec.AppendString(append(dst, held), c.HeldFor)
	}
	dst = binary.AppendUvarint(dst, uint64(len(w.terms)))
	dst = append(dst, w.termBuf...)
	dst = binary.AppendUvarint(dst, uint64(len(w.agents)))
	dst = append(dst, w.agntBuf...)
	dst = binary.AppendUvarint(dst, uint64(len(c.Changes)))
	return append(dst, w.body...)
}

// generation writes what the commit did to a generation.
func (w *entryWriter) generation(c *Commit) {
	if r := c.Replaced; r != nil {
		w.generationHead(entryReplaced, r.Graph, r.Began)
		flags := byte(0)
		counts := []uint64{r.Statements, r.Added, r.Removed}
		if r.Deleted {
			flags |= replacedDeleted
		}
		if r.Anew {
			flags |= replacedAnew
		}
		if !r.Uncounted {
			flags, counts = flags|replacedCounted, append(counts, r.Before)
		}
		w.body = append(w.body, flags)
		for _, n := range append(counts, uint64(len(r.Sources))) {
			w.body = binary.AppendUvarint(w.body, n)
		}
		for _, s := range r.Sources {
			w.body = binary.AppendVarint(binary.AppendUvarint(w.body, w.agent(s.source)), s.by)
		}
		return
	}
	g := c.Written
	if g.givenUp {
		w.generationHead(entryGivenUp, g.graph, g.began)
		return
	}
	w.generationHead(entryWritten, g.graph, g.began)
	w.body = binary.AppendUvarint(w.body, uint64(len(g.statements)))
	for i := range g.statements {
		s := &g.statements[i]
		w.body = binary.AppendUvarint(w.body, w.same(&w.subject, s.subject))
		w.body = binary.AppendUvarint(w.body, w.term(s.predicate))
		w.body = binary.AppendUvarint(w.body, w.term(s.object))
		w.body = binary.AppendUvarint(w.body, uint64(s.since))
		w.body = binary.AppendUvarint(w.body, uint64(len(s.assertions)))
		for j := range s.assertions {
			w.assertion(&s.assertions[j])
		}
	}
}

func (w *entryWriter) generationHead(kind byte, graph Term, began Revision) {
	w.body = append(w.body, kind)
	w.body = binary.AppendUvarint(w.body, w.term(graph))
	w.body = binary.AppendUvarint(w.body, uint64(began))
}

// entryAtMost is more than the bytes that changes take in an entry: nearly always so
// far below what one may have that it need not be made to know.
func entryAtMost(changes []Change) (n int) {
	const perEntry, perChange, perAssertion, perIndex = 64, 256, 128, 8
	n = perEntry
	assertion := func(a *Assertion) int { return perAssertion + len(a.Source) + len(a.Provenance) }
	for i := range changes {
		c := &changes[i]
		n += perChange + c.Quad.Subject.textBytes() + c.Quad.Predicate.textBytes() + c.Quad.Object.textBytes() + c.Quad.Graph.textBytes()
		n += assertion(&c.Assertion) + perIndex*len(c.Replaces)
		for j := range c.Before {
			n += assertion(&c.Before[j])
		}
	}
	return n
}

// metaAtMost is more than the bytes that all else of a commit takes in an entry.
func metaAtMost(c *Commit) int {
	const rest = 128
	return rest + len(c.Principal) + len(c.Actor) + len(c.Justification) + len(c.TaskID) + len(c.SessionID) + len(c.MessageID) +
		len(c.IdempotencyKey) + len(c.ProposalID) + len(c.HeldFor)
}

// generationAtMost is more than the bytes that what it did to a generation takes.
func generationAtMost(c *Commit) (n int) {
	const rest, perStatement, perAssertion, perSource = 128, 64, 64, 32
	switch {
	case c.Replaced != nil:
		n = rest + c.Replaced.Graph.textBytes()
		for _, s := range c.Replaced.Sources {
			n += perSource + len(s.source)
		}
	case c.Written != nil:
		n = rest + c.Written.graph.textBytes()
		for i := range c.Written.statements {
			s := &c.Written.statements[i]
			n += perStatement + s.subject.textBytes() + s.predicate.textBytes() + s.object.textBytes()
			for j := range s.assertions {
				n += perAssertion + len(s.assertions[j].Source) + len(s.assertions[j].Provenance)
			}
		}
	}
	return n
}

// entryReader decodes one entry.
type entryReader struct {
	*codec.Reader
	revision Revision
	terms    []Term
	agents   []AgentID
}

// parseEntry decodes the commit of this revision.
func parseEntry(payload []byte, revision Revision) (*Commit, error) {
	r := &entryReader{Reader: codec.NewReader(payload), revision: revision}
	version := r.Byte()
	if version < entryVersion || version > entryVersionGeneration {
		return nil, Errorf(CodeFormatUnknown, "log entry %d has version %d: this koine reads versions up to %d", revision, version, entryVersionGeneration)
	}
	c := &Commit{Revision: revision, Time: time.UnixMilli(r.Varint()).UTC()}
	c.Principal, c.Actor = AgentID(r.String()), AgentID(r.String())
	c.Justification, c.TaskID, c.SessionID, c.MessageID, c.IdempotencyKey = r.String(), r.String(), r.String(), r.String(), r.String()
	if c.IdempotencyKey != "" {
		copy(c.ContentHash[:], r.Take(len(c.ContentHash)))
	}
	if version >= entryVersionProposal {
		c.ProposalID = r.String()
		held := r.Byte()
		c.Held, c.HeldFor = held == 1, r.String()
		if c.ProposalID == "" && version == entryVersionProposal || held > 1 {
			r.Fail()
		}
	}
	r.readTables()
	const minChangeBytes = 7
	c.Changes = make([]Change, r.Count(minChangeBytes))
	for i := range c.Changes {
		r.change(&c.Changes[i], i, len(c.Changes))
		if r.Err() != nil {
			break
		}
	}
	if version >= entryVersionGeneration {
		r.generation(c)
	}
	if err := r.Close(); err != nil {
		return nil, Errorf(CodeLogDamaged, "log entry %d: %w", revision, err)
	}
	return c, nil
}

func (r *entryReader) readTables() {
	r.terms = make([]Term, r.Count(2))
	for i := range r.terms {
		t, err := parseTerm(r.Bytes())
		if err != nil {
			r.Fail()
			return
		}
		r.terms[i] = t
	}
	r.agents = make([]AgentID, r.Count(1))
	for i := range r.agents {
		r.agents[i] = AgentID(r.String())
	}
}

func (r *entryReader) term() Term {
	i := r.Uvarint()
	if i >= uint64(len(r.terms)) {
		r.Fail()
		return Term{}
	}
	return r.terms[i]
}

func (r *entryReader) assertion() Assertion {
	source := r.agent()
	if r.Err() != nil {
		return Assertion{}
	}
	a := readAssertion(r.Reader)
	a.Source = source
	return a
}

func (r *entryReader) agent() AgentID {
	i := r.Uvarint()
	if i >= uint64(len(r.agents)) {
		r.Fail()
		return ""
	}
	return r.agents[i]
}

func (r *entryReader) change(c *Change, index, total int) {
	c.Op, c.ReplacedBy = Op(r.Byte()), -1
	c.Quad = Quad{r.term(), r.term(), r.term(), r.term()}
	var gone uint64
	switch c.Op {
	case Add:
		c.Assertion = r.assertion()
	case Remove:
		gone = r.Uvarint()
	default:
		r.Fail()
	}
	c.Before = r.before()
	if len(c.Before) > 0 {
		c.Since = Revision(r.Uvarint())
	}
	if c.Op == Add {
		c.After = withAssertion(c.Before, c.Assertion)
		c.Replaces = r.indexes(total)
		return
	}
	if link := r.Uvarint(); link > uint64(total) {
		r.Fail()
	} else {
		c.ReplacedBy = int(link) - 1
	}
	if gone > uint64(len(c.Before)) || len(c.Before) == 0 {
		r.Fail()
		return
	}
	c.Assertion = c.Before[0]
	if gone > 0 {
		c.Assertion = c.Before[gone-1]
		c.After = withoutSource(c.Before, c.Assertion.Source)
	}
}

// generation reads what the commit did to a generation.
func (r *entryReader) generation(c *Commit) {
	kind, graph, began := r.Byte(), r.term(), Revision(r.Uvarint())
	if began == 0 || began > c.Revision {
		r.Fail()
		return
	}
	switch kind {
	case entryReplaced:
		c.Replaced = r.replaced(graph, began)
	case entryWritten:
		c.Written = &writtenGeneration{graph: graph, began: began, statements: r.written()}
	case entryGivenUp:
		c.Written = &writtenGeneration{graph: graph, began: began, givenUp: true}
	default:
		r.Fail()
	}
}

func (r *entryReader) replaced(graph Term, began Revision) *GraphReplacement {
	flags := r.Byte()
	if flags&^(replacedDeleted|replacedCounted|replacedAnew) != 0 || flags&(replacedDeleted|replacedAnew) == replacedAnew {
		r.Fail()
	}
	out := &GraphReplacement{
		Graph: graph, Deleted: flags&replacedDeleted != 0, Anew: flags&replacedAnew != 0, Uncounted: flags&replacedCounted == 0, Began: began,
		Statements: r.Uvarint(), Added: r.Uvarint(), Removed: r.Uvarint(),
	}
	if !out.Uncounted {
		out.Before = r.Uvarint()
	}
	out.Sources = make([]sourceShare, r.Count(2))
	for i := range out.Sources {
		out.Sources[i] = sourceShare{r.agent(), r.Varint()}
	}
	return out
}

func (r *entryReader) written() []writtenStatement {
	const minStatementBytes = 4 + minAssertionBytes
	list := make([]writtenStatement, r.Count(minStatementBytes))
	for i := range list {
		s := &list[i]
		s.subject, s.predicate, s.object, s.since = r.term(), r.term(), r.term(), Revision(r.Uvarint())
		if s.assertions = r.before(); len(s.assertions) == 0 {
			r.Fail()
		}
		if r.Err() != nil {
			return nil
		}
	}
	return list
}

func (r *entryReader) before() []Assertion {
	n := r.Count(minAssertionBytes)
	if n == 0 || n > MaxAssertions {
		if n > 0 {
			r.Fail()
		}
		return nil
	}
	list := make([]Assertion, n)
	for i := range list {
		list[i] = r.assertion()
	}
	return list
}

func (r *entryReader) indexes(total int) []uint32 {
	n := r.Count(1)
	if n == 0 {
		return nil
	}
	list := make([]uint32, n)
	for i := range list {
		v := r.Uvarint()
		if v >= uint64(total) {
			r.Fail()
			return nil
		}
		list[i] = uint32(v)
	}
	return list
}
