package kg

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// Tx is an update in progress. It reads the store with earlier updates and its own changes
// applied. It is valid only within the function that Update calls with it, and only on that
// goroutine.
type Tx struct {
	meta     Meta
	revision Revision
	time     time.Time
	access   Access
	doubts   Doubts // agents whose assertions the caller does not read
	w        *index.IndexWriter
	catalog  *index.Catalogue

	// before is the graph without the update, set while a trial is judged.
	before index.KV
	// judged means that the update needs a verdict before it is committed.
	judged bool
	// literalBytes is Options.LiteralBytes.
	literalBytes int
	// writable is the last graph that passed the check for write access: most patches of an
	// update share a graph.
	writable Term
	// hides reports the statements hidden from the caller in graphs that it may read; nil for
	// none. isHidden sets it.
	hides      func(predicate, graph Term) bool
	knowsHides bool

	// patches are the caller's patches as applied, kept only if the update may be held. own
	// means that it changes koine's own graphs too.
	patches []Patch
	keep    bool
	own     bool

	// replaced and written describe the update's effect on a generation of a graph.
	replaced *GraphReplacement
	written  *base.WrittenGeneration

	changes []Change
	shares  bool        // the array of changes is shared by several commits
	alone   []Assertion // the last plain assertion, in a list of its own
	// touched holds the last change of each subject that the update touches, from before the
	// update; nil if no check needs it.
	touched map[base.SubjectInGraph]touched
	bytes   int // approximate size of the changes in the log
	// failed is the first error of Apply. The update is then refused, even if its function
	// ignores the error: the patch may be half applied.
	failed error
	undo   func()
}

// touched is the last change of a subject; own means in one of koine's own graphs.
type touched struct {
	last Revision
	own  bool
}

// Meta returns the Meta that Update was called with, normalised.
func (tx *Tx) Meta() Meta { return tx.meta }

// Revision returns the revision that the commit will have.
func (tx *Tx) Revision() Revision { return tx.revision }

// Time returns the time of the commit.
func (tx *Tx) Time() time.Time { return tx.time }

// TimeTerm returns the time of the commit as a literal.
func (tx *Tx) TimeTerm() Term { return tx.w.TimeTerm(tx.time) }

// Apply applies a patch of the caller, after checking its rights. An error undoes the whole
// update and is returned by Update unless the function returns another one. A patch without
// effect is no error.
func (tx *Tx) Apply(p Patch) error {
	err := p.Normalise(tx.meta.actingAgent())
	if err == nil {
		err = tx.checkAllowed(&p)
	}
	if err == nil && p.Op != Remove {
		err = p.checkLiteralSize(tx.literalBytes)
	}
	if tx.keep {
		tx.patches = append(tx.patches, p)
	}
	if err == nil && p.Op != Add && tx.isHidden(&p.Quad) {
		return tx.applyHidden(&p)
	}
	return tx.applyPatch(&p, err)
}

// isHidden reports whether a Hider hides statements like this one from the caller, in a graph
// that it may read.
func (tx *Tx) isHidden(q *Quad) bool {
	if !tx.knowsHides {
		tx.hides, tx.knowsHides = Hidden(tx.access, tx.meta.Principal), true
	}
	return tx.hides != nil && tx.hides(q.Predicate, q.Graph)
}

// applyHidden applies a patch to a statement that is hidden from the caller, as if it did not
// exist: nothing to remove, nothing to replace. Otherwise the number of changes would confirm
// a guess at a hidden statement, and a dry run makes guesses free.
func (tx *Tx) applyHidden(p *Patch) error {
	if p.Op == Replace {
		p.Op = Add
		return tx.applyPatch(p, nil)
	}
	ids, _, err := tx.w.Resolve(&p.Quad, p.prefetched)
	if err == nil {
		err = tx.touchAbsent(ids, p.Quad.Graph)
	}
	if tx.failed == nil {
		tx.failed = err
	}
	return err
}

// ApplyOwn is Apply without checks of rights, for the packages that own a part of koine's
// vocabulary and have checked the caller's rights themselves.
func (tx *Tx) ApplyOwn(p Patch) error {
	tx.own = true
	return tx.applyPatch(&p, p.Normalise(tx.meta.actingAgent()))
}

// applyPatch applies a patch, or undoes the update if err is set or the patch fails.
func (tx *Tx) applyPatch(p *Patch, err error) error {
	if err == nil {
		switch p.Op {
		case Add:
			err = tx.addAssertion(p, nil)
		case Remove:
			err = tx.removeStatement(p)
		default:
			err = tx.replaceStatement(p)
		}
	}
	if tx.failed == nil {
		tx.failed = err
	}
	return err
}

// checkAllowed returns an error for a patch that the caller may not request.
func (tx *Tx) checkAllowed(p *Patch) error {
	by := &tx.meta.Principal
	if !by.Trusted() && Reserved(p.Quad) {
		return Errorf(CodeReserved, "graphs, properties and classes under urn:koine: cannot be changed by patches: use the mutation of the record")
	}
	if err := tx.mayWrite(p.Quad.Graph); err != nil {
		return err
	}
	if !p.Time.IsZero() {
		return tx.mayRestore(p)
	}
	if p.Op != Remove && p.Source != tx.meta.Actor && !by.MayActFor(p.Source) {
		return Errorf(CodeSourceForbidden, "you may not act for %s", p.Source).At("source")
	}
	return nil
}

// mayRestore refuses an assertion with a time of its own unless the caller is an
// administrator. An administrator may give it any source except koine itself.
func (tx *Tx) mayRestore(p *Patch) error {
	by := &tx.meta.Principal
	if !by.IsAdmin() {
		return Errorf(CodePermissionDenied, "only an administrator may set the time of an assertion").At("time")
	}
	if p.Source == System && !by.Trusted() {
		return Errorf(CodeSourceForbidden, "you may not act for %s", p.Source).At("source")
	}
	tx.own = true // a proposal cannot keep the time
	return nil
}

// MayWrite returns the error that Apply would return for any patch in the graph. It does not
// undo the update.
func (tx *Tx) MayWrite(graph Term) error { return tx.mayWrite(graph) }

// mayWrite checks the right to write. A graph that the caller may not read does not exist for
// it, and an absent graph is created only with the right to create it.
func (tx *Tx) mayWrite(graph Term) error {
	if graph == tx.writable {
		return nil
	}
	by := tx.meta.Principal
	if !tx.access.Allowed(by, graph, Read) {
		return errNoGraph(graph)
	}
	if !tx.access.Allowed(by, graph, Write) {
		return Errorf(CodePermissionDenied, "you may read the graph %s, not write it", graph).At("graph")
	}
	if graph != DefaultGraph && !tx.access.Allowed(by, graph, Create) {
		held, err := tx.hasStatements(graph)
		if err != nil {
			return err
		}
		if !held {
			return errNoGraph(graph)
		}
	}
	tx.writable = graph
	return nil
}

func errNoGraph(graph Term) *Error {
	return Errorf(CodeGraphNotFound, "there is no graph %s", graph).At("graph")
}

// hasStatements reports whether the graph has any statement.
func (tx *Tx) hasStatements(graph Term) (bool, error) {
	id, ok, err := tx.w.Dictionary.ID(graph)
	return ok && err == nil && tx.catalog.HasStatements(tx.w.Generations.CurrentID(id), tx.w.Deltas), err
}

// addAssertion adds an assertion. replaces holds the indexes of the changes that it replaces.
func (tx *Tx) addAssertion(p *Patch, replaces []uint32) error {
	ids, known, err := tx.w.Resolve(&p.Quad, p.prefetched)
	if err != nil {
		return err
	}
	var before base.State
	if known {
		if before, err = tx.w.State(ids); err != nil {
			return err
		}
	}
	a := Assertion{
		Source: p.Source, Certainty: p.Certainty, HasCertainty: p.HasCertainty, Validity: p.Validity,
		Provenance: bytes.Clone(p.Provenance), // the caller may reuse its buffer while watchers read this
		Embedding:  p.Embedding.Clone(),
		Time:       tx.time, Revision: tx.revision,
	}
	if !p.Time.IsZero() {
		a.Time = p.Time
	}
	_, same, err := joinSources(before.Assertions, &a, !p.Time.IsZero())
	if err != nil {
		return err
	}
	if same {
		return tx.touchSubject(ids, p.Quad.Graph)
	}
	if !known {
		tx.w.AssignNumbers(&p.Quad, &ids)
	}
	for _, i := range replaces {
		tx.changes[i].ReplacedBy = len(tx.changes)
	}
	return tx.recordChange(&Change{
		Op: Add, Quad: p.Quad, Assertion: a, ReplacedBy: -1, Replaces: replaces,
		Before: before.Assertions, After: tx.assertionsAfter(before.Assertions, &a), Since: before.Since,
	}, ids)
}

// joinSources compares an assertion with those that back a statement. had reports that its
// source is among theirs; same reports that it says the same as before, at the same time if
// timed, so that there is nothing to change. It returns an error for more than MaxAssertions
// sources.
func joinSources(before []Assertion, a *Assertion, timed bool) (had, same bool, err error) {
	old, had := base.FindSource(before, a.Source)
	if !had && len(before) >= MaxAssertions {
		return false, false, Errorf(CodeLimitExceeded, "a statement has at most %d sources", MaxAssertions)
	}
	return had, had && old.SameContent(*a) && (!timed || old.Time.Equal(a.Time)), nil
}

// assertionsAfter returns the assertions of a statement once this one is added. Most
// statements of an update are new and share one immutable list.
func (tx *Tx) assertionsAfter(before []Assertion, a *Assertion) []Assertion {
	if len(before) > 0 || !a.IsPlain() {
		return base.WithAssertion(before, *a)
	}
	if len(tx.alone) == 0 || tx.alone[0].Source != a.Source || !tx.alone[0].Time.Equal(a.Time) {
		tx.alone = []Assertion{*a}
	}
	return tx.alone
}

func (tx *Tx) removeStatement(p *Patch) error {
	ids, known, err := tx.w.Resolve(&p.Quad, p.prefetched)
	if err != nil {
		return err
	}
	if !known {
		return tx.touchAbsent(ids, p.Quad.Graph)
	}
	if err := tx.touchSubject(ids, p.Quad.Graph); err != nil {
		return err
	}
	before, err := tx.w.State(ids)
	if err != nil || len(before.Assertions) == 0 {
		return err
	}
	c := &Change{Op: Remove, Quad: p.Quad, Assertion: before.Assertions[0], Before: before.Assertions, Since: before.Since, ReplacedBy: -1}
	if p.Source != "" {
		a, had := base.FindSource(before.Assertions, p.Source)
		if !had {
			return nil
		}
		c.Assertion, c.After = a, base.WithoutSource(before.Assertions, p.Source)
	}
	return tx.recordChange(c, ids)
}

// replaceStatement removes the other statements with the same subject, predicate and graph,
// and adds this one. Other sources that back this one keep doing so.
func (tx *Tx) replaceStatement(p *Patch) error {
	var replaces []uint32
	others, err := tx.otherObjects(&p.Quad)
	if err != nil {
		return err
	}
	for _, object := range others {
		q := p.Quad
		q.Object = object
		if err := tx.removeStatement(&Patch{Op: Remove, Quad: q}); err != nil {
			return err
		}
		replaces = append(replaces, uint32(len(tx.changes)-1))
	}
	return tx.addAssertion(p, replaces)
}

// otherObjects lists the other objects of the subject and predicate in the graph, sorted
// independently of the index.
func (tx *Tx) otherObjects(q *Quad) ([]Term, error) {
	var pattern IDQuad
	for _, part := range [...]struct {
		t  Term
		id *ID
	}{{q.Subject, &pattern.Subject}, {q.Predicate, &pattern.Predicate}, {q.Graph, &pattern.Graph}} {
		id, ok, err := tx.w.Dictionary.ID(part.t)
		if !ok || err != nil {
			return nil, err
		}
		*part.id = id
	}
	pattern.Graph = tx.w.Generations.CurrentID(pattern.Graph)
	// GSPO has them in one run. In SPOG, statements of very many other graphs may lie between.
	prefix, _ := keys.GSPO.AppendPrefix(nil, pattern)
	var objects []Term
	c := tx.w.Overlay.Scan(prefix)
	defer c.Close()
	for ; c.Valid(); c.Next() {
		ids, ok := keys.GSPO.Parse(c.Key())
		if !ok {
			return nil, Errorf(CodeInternal, "a key of the index cannot be read: %x", c.Key())
		}
		object, err := tx.w.Dictionary.Term(ids.Object)
		if err != nil {
			return nil, err
		}
		if object != q.Object {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, Term.Compare)
	return objects, nil
}

// recordChange appends a change to the update and applies it to the overlay.
func (tx *Tx) recordChange(c *Change, ids IDQuad) error {
	if g := tx.w.Generations; g != nil {
		if w := g.Writing[g.NameID(ids.Graph)]; w != nil {
			return errBeingReplaced(c.Quad.Graph)
		}
	}
	if len(tx.changes) >= MaxChanges {
		return Errorf(CodeLimitExceeded, "an update makes at most %d changes: split it", MaxChanges)
	}
	tx.bytes += len(c.Quad.Subject.Value()) + len(c.Quad.Object.Value()) + 32*(1+len(c.Before))
	if c.Op == Add { // that of a removal is one of Before
		tx.bytes += c.Assertion.ContentBytes()
	}
	for i := range c.Before {
		tx.bytes += c.Before[i].ContentBytes()
	}
	if tx.bytes > MaxCommitBytes {
		return errCommitTooLarge()
	}
	if err := tx.touchSubject(ids, c.Quad.Graph); err != nil {
		return err
	}
	if err := tx.w.WriteChange(c, ids, tx.revision); err != nil {
		return err
	}
	tx.changes = append(tx.changes, *c)
	return nil
}

// LimitCommitBytes is Error.Limit of an update that is larger than a commit may be.
const LimitCommitBytes = "commitBytes"

// errTooLarge is wrapped by errCommitTooLarge.
var errTooLarge = errors.New("more than a commit may have")

func errCommitTooLarge() error {
	e := Errorf(CodeLimitExceeded, "an update is at most %d MiB in the log: split it", MaxCommitBytes>>20)
	e.Err, e.Limit = errTooLarge, LimitCommitBytes
	return e
}

// touchSubject notes the last change of the quad's subject before the update changes it.
func (tx *Tx) touchSubject(ids IDQuad, graph Term) error {
	t := base.SubjectInGraph{Graph: ids.Graph, Subject: ids.Subject}
	if tx.touched == nil {
		return nil
	}
	if _, seen := tx.touched[t]; seen {
		return nil
	}
	last, err := tx.w.LastChange(t)
	tx.touched[t] = touched{last, IsOwnGraph(graph)}
	return err
}

// touchAbsent is touchSubject for a quad that cannot exist because the store does not know one
// of its terms, which has a zero id.
func (tx *Tx) touchAbsent(ids IDQuad, graph Term) error {
	if ids.Graph.IsZero() || ids.Subject.IsZero() {
		return nil
	}
	return tx.touchSubject(ids, graph)
}

// checkExpected returns CodeRevisionConflict if a subject that the update touches changed
// after the revision.
func (tx *Tx) checkExpected(r Revision) error {
	for _, t := range tx.touched {
		if t.last > r {
			return Errorf(CodeRevisionConflict, "a statement of an affected subject changed in revision %d, after the expected %d", t.last, r).At("expectedRevision")
		}
	}
	return nil
}

// LastChange returns the revision that last changed a statement of the subject in the graph
// before this update, or 0.
func (tx *Tx) LastChange(graph, subject Term) (Revision, error) {
	g, known, err := tx.w.Dictionary.ID(graph)
	if !known || err != nil {
		return 0, err
	}
	s, known, err := tx.w.Dictionary.ID(subject)
	if !known || err != nil {
		return 0, err
	}
	return tx.w.LastChange(base.SubjectInGraph{Graph: tx.w.Generations.CurrentID(g), Subject: s})
}

// Match yields the statements that match the pattern and that the caller may read, with the
// changes of this update, in the order of the index. Whether it yields statements applied
// during the loop is not specified.
func (tx *Tx) Match(p Pattern) iter.Seq2[Statement, error] {
	return tx.matchStatements(p, tx.access, tx.doubts)
}

// MatchOwn is Match without checks of rights, for the packages that may call ApplyOwn. The
// statements must not reach the caller.
func (tx *Tx) MatchOwn(p Pattern) iter.Seq2[Statement, error] {
	return tx.matchStatements(p, AllowAll{}, nil)
}

// CountOwn returns the number of statements that MatchOwn would yield for the predicate in the
// graph. It reads the catalogue, not the statements.
func (tx *Tx) CountOwn(graph, predicate Term) (uint64, error) {
	g, known, err := tx.w.ResolveTerm(&graph, &tx.w.LastGraph, nil)
	if !known || err != nil {
		return 0, err
	}
	p, known, err := tx.w.ResolveTerm(&predicate, nil, nil)
	if !known || err != nil {
		return 0, err
	}
	key := string(keys.Predicate(g, p))
	t, _ := tx.catalog.Tallies.Get(key)
	return t.Count + uint64(tx.w.Deltas.Get(key)), nil
}

func (tx *Tx) matchStatements(p Pattern, access Access, doubts Doubts) iter.Seq2[Statement, error] {
	s := &Snapshot{
		kv: tx.w.Overlay, dict: tx.w.Dictionary, access: access, hides: Hidden(access, tx.meta.Principal), catalogue: tx.catalog, pending: tx.w.Deltas,
		generations: tx.w.Generations,
		view:        View{Principal: tx.meta.Principal, AllGraphs: true, Now: tx.time, Doubts: doubts},
	}
	return s.Match(p)
}

// changedSubjects lists the distinct subjects of the changes in order.
func changedSubjects(changes []Change) []Term {
	var out []Term
	var seen map[Term]bool // allocated for the second subject
	for i := range changes {
		t := changes[i].Quad.Subject
		switch {
		case len(out) == 0:
			out = []Term{t}
			continue
		case t == out[len(out)-1]:
			continue
		case seen == nil:
			seen = map[Term]bool{out[0]: true}
		}
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// actingAgent returns the actor, or the principal if no actor is set.
func (m *Meta) actingAgent() AgentID {
	switch {
	case m.Actor != "":
		return m.Actor
	case m.Principal.ID != "":
		return m.Principal.ID
	}
	return Anonymous
}

// normalise checks the texts of a Meta and canonicalises its agents.
func (m *Meta) normalise() error {
	m.Actor = CanonicalAgent(string(m.actingAgent()))
	m.Principal.Normalise()
	if err := m.Actor.Valid(); err != nil {
		return err
	}
	if err := m.Principal.ID.Valid(); err != nil {
		return err
	}
	if !m.Principal.MayActFor(m.Actor) {
		return Errorf(CodeSourceForbidden, "you may not act for %s", m.Actor).At("actor")
	}
	for _, part := range [...]struct {
		name, text string
		most       int
	}{
		{"justification", m.Justification, MaxJustificationBytes},
		{"taskId", m.TaskID, MaxReferenceBytes},
		{"sessionId", m.SessionID, MaxReferenceBytes},
		{"messageId", m.MessageID, MaxReferenceBytes},
		{"idempotencyKey", m.IdempotencyKey, MaxIdempotencyKeyBytes},
		{"proposalId", m.ProposalID, MaxReferenceBytes},
	} {
		if len(part.text) > part.most {
			return Errorf(CodeLimitExceeded, "%d bytes are more than the %d that are stored", len(part.text), part.most).At(part.name)
		}
	}
	m.Principal.Roles = slices.Clone(m.Principal.Roles)
	return nil
}
