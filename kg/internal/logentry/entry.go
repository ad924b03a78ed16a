package logentry

import (
	"encoding/binary"
	"time"

	"koine/kg/base"
	"koine/kg/internal/codec"
)

// A log entry is a commit in bytes: self-contained (terms are spelled out,
// interned within the entry) and versioned. It names no ids and no keys, so the
// same bytes mean the same to a replica with another index.
//
//	version(1)
//	time(varint, ms)  principal  actor  justification  task  session  message
//	idempotency key   content hash(32, only with a key)
//	from version 2 on: proposal, held(1), reason for holding it
//	number of terms, each: length, term record
//	number of agents, each: length, id
//	number of changes, each:
//	  op(1)  subject predicate object graph (term indexes)
//	  Add:    assertion                 Remove: index in Before plus 1, 0 for all
//	  number of Before, each an assertion; since, if there are any
//	  link: 0, or 1 + index of the change that replaces it (Remove);
//	        number of replaced, each its index (Add)
//	from version 3 on: effect on a generation of a graph(1), its graph (term
//	index), its first revision, and
//	  written:  number of statements, each: subject predicate object (term indexes),
//	            since, number of assertions, each an assertion
//	  replaced: flags(1), statements, added, removed, with a flag before; number of
//	            sources, each the index of its agent and the change of its statement
//	            count (varint)
//	  given up: nothing
//
// An assertion is the index of its agent and the bytes of base.AppendAssertion.
//
// A commit without a proposal is written in version 1, one without a generation at most in
// version 2. In version 3 the proposal may be empty. A commit with an embedding in any of its
// assertions is written in version 4, in which both may be: without a generation its effect
// is 0, and nothing follows.
const (
	EntryVersion           = 1 // base version
	EntryVersionProposal   = 2 // with a proposal
	EntryVersionGeneration = 3 // with an effect on a generation
	EntryVersionEmbedding  = 4 // with an embedding
	NewestEntryVersion     = EntryVersionEmbedding
)

// Effects of an entry on a generation.
const (
	entryNoEffect = 0 // from version 4 on
	entryWritten  = 1
	entryReplaced = 2
	entryGivenUp  = 3
)

// Flags of a replacement in an entry: the graph was deleted, the counts are present, and
// the graph is restarted.
const (
	replacedDeleted = 1 << 0
	replacedCounted = 1 << 1
	replacedAnew    = 1 << 2
)

// EntryWriter encodes commits, one after the other. It belongs to one goroutine.
type EntryWriter struct {
	terms    map[base.Term]uint64
	agents   map[base.AgentID]uint64
	termBuf  []byte
	agentBuf []byte
	body     []byte
	record   []byte // buffer for one term
	entry    []byte
	// embeds tells that an assertion of the commit has an embedding.
	embeds bool
	// subject and graph are those of the previous change. Consecutive changes often have
	// the same.
	subject, graph internedTerm
}

// internedTerm is a term with its number within the entry.
type internedTerm struct {
	term   base.Term
	number uint64
}

// NewEntryWriter returns an empty writer.
func NewEntryWriter() *EntryWriter {
	return &EntryWriter{terms: make(map[base.Term]uint64), agents: make(map[base.AgentID]uint64)}
}

// maxEntryKept is the size in bytes up to which a writer reuses its buffers.
const maxEntryKept = 256 << 10

// Write encodes a commit. The result is valid until the next call.
func (w *EntryWriter) Write(c *base.Commit) []byte {
	if cap(w.entry)+cap(w.body) > maxEntryKept {
		*w = *NewEntryWriter()
	}
	clear(w.terms)
	clear(w.agents)
	w.termBuf, w.agentBuf, w.body = w.termBuf[:0], w.agentBuf[:0], w.body[:0]
	w.subject, w.graph, w.embeds = internedTerm{}, internedTerm{}, false
	w.entry = w.appendCommit(w.entry[:0], c)
	return w.entry
}

// internTerm returns the number of a term within the entry.
func (w *EntryWriter) internTerm(t base.Term) uint64 {
	i, ok := w.terms[t]
	if !ok {
		i = uint64(len(w.terms))
		w.terms[t] = i
		w.record = base.AppendTerm(w.record[:0], t)
		w.termBuf = codec.AppendBytes(w.termBuf, w.record)
	}
	return i
}

// internRepeated is internTerm for a term that is often the same as the last.
func (w *EntryWriter) internRepeated(last *internedTerm, t base.Term) uint64 {
	if last.term != t {
		*last = internedTerm{t, w.internTerm(t)}
	}
	return last.number
}

func (w *EntryWriter) appendAssertion(a *base.Assertion) {
	w.body = binary.AppendUvarint(w.body, w.internAgent(a.Source))
	w.body = base.AppendAssertion(w.body, *a)
	w.embeds = w.embeds || a.Embedding != nil
}

// internAgent returns the number of an agent within the entry.
func (w *EntryWriter) internAgent(a base.AgentID) uint64 {
	i, ok := w.agents[a]
	if !ok {
		i = uint64(len(w.agents))
		w.agents[a] = i
		w.agentBuf = codec.AppendString(w.agentBuf, string(a))
	}
	return i
}

func (w *EntryWriter) appendChange(c *base.Change) {
	w.body = append(w.body, byte(c.Op))
	w.body = binary.AppendUvarint(w.body, w.internRepeated(&w.subject, c.Quad.Subject))
	w.body = binary.AppendUvarint(w.body, w.internTerm(c.Quad.Predicate))
	w.body = binary.AppendUvarint(w.body, w.internTerm(c.Quad.Object))
	w.body = binary.AppendUvarint(w.body, w.internRepeated(&w.graph, c.Quad.Graph))
	if c.Op == base.Add {
		w.appendAssertion(&c.Assertion)
	} else {
		w.body = binary.AppendUvarint(w.body, removedAssertion(c))
	}
	w.body = binary.AppendUvarint(w.body, uint64(len(c.Before)))
	for i := range c.Before {
		w.appendAssertion(&c.Before[i])
	}
	if len(c.Before) > 0 {
		w.body = binary.AppendUvarint(w.body, uint64(c.Since))
	}
	if c.Op == base.Remove {
		w.body = binary.AppendUvarint(w.body, uint64(c.ReplacedBy+1))
		return
	}
	w.body = binary.AppendUvarint(w.body, uint64(len(c.Replaces)))
	for _, i := range c.Replaces {
		w.body = binary.AppendUvarint(w.body, uint64(i))
	}
}

// removedAssertion returns the assertion that a removal withdraws: 0 for all of them,
// otherwise its index in Before plus 1.
func removedAssertion(c *base.Change) uint64 {
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

// AppendEntry appends the encoding of a commit to dst.
func AppendEntry(dst []byte, c *base.Commit) []byte { return NewEntryWriter().appendCommit(dst, c) }

func (w *EntryWriter) appendCommit(dst []byte, c *base.Commit) []byte {
	for i := range c.Changes {
		w.appendChange(&c.Changes[i])
	}
	version := byte(EntryVersion)
	switch {
	case c.Replaced != nil || c.Written != nil:
		version = EntryVersionGeneration
		w.appendGeneration(c)
	case c.ProposalID != "":
		version = EntryVersionProposal
	}
	if w.embeds {
		if version != EntryVersionGeneration {
			w.body = append(w.body, entryNoEffect)
		}
		version = EntryVersionEmbedding
	}
	dst = append(dst, version)
	dst = binary.AppendVarint(dst, c.Time.UnixMilli())
	for _, s := range [...]string{string(c.Principal), string(c.Actor), c.Justification, c.TaskID, c.SessionID, c.MessageID, c.IdempotencyKey} {
		dst = codec.AppendString(dst, s)
	}
	if c.IdempotencyKey != "" {
		dst = append(dst, c.ContentHash[:]...)
	}
	if version >= EntryVersionProposal {
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
	dst = append(dst, w.agentBuf...)
	dst = binary.AppendUvarint(dst, uint64(len(c.Changes)))
	return append(dst, w.body...)
}

// appendGeneration encodes the commit's effect on a generation.
func (w *EntryWriter) appendGeneration(c *base.Commit) {
	if r := c.Replaced; r != nil {
		w.appendGenerationHead(entryReplaced, r.Graph, r.Began)
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
			w.body = binary.AppendVarint(binary.AppendUvarint(w.body, w.internAgent(s.Source)), s.By)
		}
		return
	}
	g := c.Written
	if g.GivenUp {
		w.appendGenerationHead(entryGivenUp, g.Graph, g.Began)
		return
	}
	w.appendGenerationHead(entryWritten, g.Graph, g.Began)
	w.body = binary.AppendUvarint(w.body, uint64(len(g.Statements)))
	for i := range g.Statements {
		s := &g.Statements[i]
		w.body = binary.AppendUvarint(w.body, w.internRepeated(&w.subject, s.Subject))
		w.body = binary.AppendUvarint(w.body, w.internTerm(s.Predicate))
		w.body = binary.AppendUvarint(w.body, w.internTerm(s.Object))
		w.body = binary.AppendUvarint(w.body, uint64(s.Since))
		w.body = binary.AppendUvarint(w.body, uint64(len(s.Assertions)))
		for j := range s.Assertions {
			w.appendAssertion(&s.Assertions[j])
		}
	}
}

func (w *EntryWriter) appendGenerationHead(kind byte, graph base.Term, began base.Revision) {
	w.body = append(w.body, kind)
	w.body = binary.AppendUvarint(w.body, w.internTerm(graph))
	w.body = binary.AppendUvarint(w.body, uint64(began))
}

// ChangesSizeBound returns an upper bound of the bytes that changes take in an entry. It
// is nearly always far below the limit, so that the entry need not be encoded to check its
// size.
func ChangesSizeBound(changes []base.Change) (n int) {
	const perEntry, perChange, perAssertion, perIndex = 64, 256, 128, 8
	n = perEntry
	assertion := func(a *base.Assertion) int { return perAssertion + len(a.Source) + a.ContentBytes() }
	for i := range changes {
		c := &changes[i]
		n += perChange + c.Quad.Subject.TextBytes() + c.Quad.Predicate.TextBytes() + c.Quad.Object.TextBytes() + c.Quad.Graph.TextBytes()
		n += assertion(&c.Assertion) + perIndex*len(c.Replaces)
		for j := range c.Before {
			n += assertion(&c.Before[j])
		}
	}
	return n
}

// MetaSizeBound returns an upper bound of the bytes that the rest of a commit takes in an
// entry.
func MetaSizeBound(c *base.Commit) int {
	const rest = 128
	return rest + len(c.Principal) + len(c.Actor) + len(c.Justification) + len(c.TaskID) + len(c.SessionID) + len(c.MessageID) +
		len(c.IdempotencyKey) + len(c.ProposalID) + len(c.HeldFor)
}

// GenerationSizeBound returns an upper bound of the bytes that the commit's effect on a
// generation takes in an entry.
func GenerationSizeBound(c *base.Commit) (n int) {
	const rest, perStatement, perAssertion, perSource = 128, 64, 64, 32
	switch {
	case c.Replaced != nil:
		n = rest + c.Replaced.Graph.TextBytes()
		for _, s := range c.Replaced.Sources {
			n += perSource + len(s.Source)
		}
	case c.Written != nil:
		n = rest + c.Written.Graph.TextBytes()
		for i := range c.Written.Statements {
			s := &c.Written.Statements[i]
			n += perStatement + s.Subject.TextBytes() + s.Predicate.TextBytes() + s.Object.TextBytes()
			for j := range s.Assertions {
				n += perAssertion + len(s.Assertions[j].Source) + s.Assertions[j].ContentBytes()
			}
		}
	}
	return n
}

// entryReader decodes one entry.
type entryReader struct {
	*codec.Reader
	revision base.Revision
	terms    []base.Term
	agents   []base.AgentID
}

// ParseEntry decodes the commit of a revision. It returns CodeFormatUnknown for a newer
// version, and CodeLogDamaged for a malformed entry.
func ParseEntry(payload []byte, revision base.Revision) (*base.Commit, error) {
	r := &entryReader{Reader: codec.NewReader(payload), revision: revision}
	version := r.Byte()
	if version < EntryVersion || version > NewestEntryVersion {
		return nil, base.Errorf(base.CodeFormatUnknown, "log entry %d has version %d: this koine reads versions up to %d", revision, version, NewestEntryVersion)
	}
	c := &base.Commit{Revision: revision, Time: time.UnixMilli(r.Varint()).UTC()}
	c.Principal, c.Actor = base.AgentID(r.String()), base.AgentID(r.String())
	c.Justification, c.TaskID, c.SessionID, c.MessageID, c.IdempotencyKey = r.String(), r.String(), r.String(), r.String(), r.String()
	if c.IdempotencyKey != "" {
		copy(c.ContentHash[:], r.Take(len(c.ContentHash)))
	}
	if version >= EntryVersionProposal {
		c.ProposalID = r.String()
		held := r.Byte()
		c.Held, c.HeldFor = held == 1, r.String()
		if c.ProposalID == "" && version == EntryVersionProposal || held > 1 {
			r.Fail()
		}
	}
	r.readTables()
	const minChangeBytes = 7
	c.Changes = make([]base.Change, r.Count(minChangeBytes))
	for i := range c.Changes {
		r.readChange(&c.Changes[i], i, len(c.Changes))
		if r.Err() != nil {
			break
		}
	}
	if version >= EntryVersionGeneration {
		r.readGeneration(c, version)
	}
	if err := r.Close(); err != nil {
		return nil, base.Errorf(base.CodeLogDamaged, "log entry %d: %w", revision, err)
	}
	return c, nil
}

func (r *entryReader) readTables() {
	r.terms = make([]base.Term, r.Count(2))
	for i := range r.terms {
		t, err := base.ParseTerm(r.Bytes())
		if err != nil {
			r.Fail()
			return
		}
		r.terms[i] = t
	}
	r.agents = make([]base.AgentID, r.Count(1))
	for i := range r.agents {
		r.agents[i] = base.AgentID(r.String())
	}
}

func (r *entryReader) readTerm() base.Term {
	i := r.Uvarint()
	if i >= uint64(len(r.terms)) {
		r.Fail()
		return base.Term{}
	}
	return r.terms[i]
}

func (r *entryReader) readAssertion() base.Assertion {
	source := r.readAgent()
	if r.Err() != nil {
		return base.Assertion{}
	}
	a := base.ReadAssertion(r.Reader)
	a.Source = source
	return a
}

func (r *entryReader) readAgent() base.AgentID {
	i := r.Uvarint()
	if i >= uint64(len(r.agents)) {
		r.Fail()
		return ""
	}
	return r.agents[i]
}

func (r *entryReader) readChange(c *base.Change, index, total int) {
	c.Op, c.ReplacedBy = base.Op(r.Byte()), -1
	c.Quad = base.Quad{Subject: r.readTerm(), Predicate: r.readTerm(), Object: r.readTerm(), Graph: r.readTerm()}
	var gone uint64
	switch c.Op {
	case base.Add:
		c.Assertion = r.readAssertion()
	case base.Remove:
		gone = r.Uvarint()
	default:
		r.Fail()
	}
	c.Before = r.readAssertions()
	if len(c.Before) > 0 {
		c.Since = base.Revision(r.Uvarint())
	}
	if c.Op == base.Add {
		c.After = base.WithAssertion(c.Before, c.Assertion)
		c.Replaces = r.readIndexes(total)
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
		c.After = base.WithoutSource(c.Before, c.Assertion.Source)
	}
}

// readGeneration decodes the commit's effect on a generation.
func (r *entryReader) readGeneration(c *base.Commit, version byte) {
	kind := r.Byte()
	if kind == entryNoEffect && version >= EntryVersionEmbedding {
		return
	}
	graph, began := r.readTerm(), base.Revision(r.Uvarint())
	if began == 0 || began > c.Revision {
		r.Fail()
		return
	}
	switch kind {
	case entryReplaced:
		c.Replaced = r.readReplacement(graph, began)
	case entryWritten:
		c.Written = &base.WrittenGeneration{Graph: graph, Began: began, Statements: r.readWritten()}
	case entryGivenUp:
		c.Written = &base.WrittenGeneration{Graph: graph, Began: began, GivenUp: true}
	default:
		r.Fail()
	}
}

func (r *entryReader) readReplacement(graph base.Term, began base.Revision) *base.GraphReplacement {
	flags := r.Byte()
	if flags&^(replacedDeleted|replacedCounted|replacedAnew) != 0 || flags&(replacedDeleted|replacedAnew) == replacedAnew {
		r.Fail()
	}
	out := &base.GraphReplacement{
		Graph: graph, Deleted: flags&replacedDeleted != 0, Anew: flags&replacedAnew != 0, Uncounted: flags&replacedCounted == 0, Began: began,
		Statements: r.Uvarint(), Added: r.Uvarint(), Removed: r.Uvarint(),
	}
	if !out.Uncounted {
		out.Before = r.Uvarint()
	}
	out.Sources = make([]base.SourceShare, r.Count(2))
	for i := range out.Sources {
		out.Sources[i] = base.SourceShare{Source: r.readAgent(), By: r.Varint()}
	}
	return out
}

func (r *entryReader) readWritten() []base.WrittenStatement {
	const minStatementBytes = 4 + base.MinAssertionBytes
	list := make([]base.WrittenStatement, r.Count(minStatementBytes))
	for i := range list {
		s := &list[i]
		s.Subject, s.Predicate, s.Object, s.Since = r.readTerm(), r.readTerm(), r.readTerm(), base.Revision(r.Uvarint())
		if s.Assertions = r.readAssertions(); len(s.Assertions) == 0 {
			r.Fail()
		}
		if r.Err() != nil {
			return nil
		}
	}
	return list
}

func (r *entryReader) readAssertions() []base.Assertion {
	n := r.Count(base.MinAssertionBytes)
	if n == 0 || n > base.MaxAssertions {
		if n > 0 {
			r.Fail()
		}
		return nil
	}
	list := make([]base.Assertion, n)
	for i := range list {
		list[i] = r.readAssertion()
	}
	return list
}

func (r *entryReader) readIndexes(total int) []uint32 {
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
