package channel

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// ReadRecord reads a channel's record, without the message count. It returns nil if
// there is none.
func ReadRecord(match systemgraph.Matcher, id ID) (*Channel, error) {
	c := &Channel{ID: id}
	for st, err := range match(kg.Pattern{Subject: id.Entity(), Graph: id.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		if role := RoleOf(st.Predicate); role != "" { // each is stated once
			c.Members = append(c.Members, memberOf(role, st.Object, &st.Assertions[0]))
			continue
		}
		c.ApplyStatement(st.Predicate, st.Object, &st.Assertions[0])
	}
	if c.Version == 0 {
		return nil, nil
	}
	SortMembers(c.Members)
	slices.SortFunc(c.Overseers, func(a, b Overseer) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent)) })
	return c, nil
}

// CreateRecord writes the record of a new channel. It returns the number of statements.
func CreateRecord(tx *kg.Tx, c *Channel) (n int, err error) {
	w := &Writer{Tx: tx, id: c.ID}
	w.writeChannel(c)
	return w.n, w.err
}

// ChangeRecord changes a channel within an update. fn receives the channel as of the
// update and owns it. The version increases unless fn writes nothing.
func ChangeRecord(tx *kg.Tx, id ID, fn func(w *Writer, c *Channel) error) (*Channel, error) {
	c, err := ReadRecord(tx.MatchOwn, id)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Deleted {
		return nil, ErrNotFound()
	}
	c.Members = slices.Clone(c.Members)
	w := &Writer{Tx: tx, id: id}
	if err := fn(w, c); err != nil {
		return nil, err
	}
	if w.err == nil && w.n > 0 && !w.Quiet {
		c.Version++
		w.ApplyPatch(kg.Patch{Op: kg.Replace, Quad: w.QuadFor(vocab.Version, kg.Integer(c.Version))})
	}
	return c, w.err
}

// ChangeServerRecord changes the server's own record, which has its restrictions.
func ChangeServerRecord(tx *kg.Tx, fn func(w *Writer) error) error {
	w := &Writer{Tx: tx}
	if err := fn(w); err != nil {
		return err
	}
	return w.err
}

// Writer writes a channel's record. It keeps the first error.
type Writer struct {
	Tx *kg.Tx
	// Quiet suppresses the increment of the channel's version.
	Quiet bool
	id    ID // AllChannels for the server's own record
	err   error
	n     int // number of applied patches
}

// QuadFor returns a statement of the record.
func (w *Writer) QuadFor(property, object kg.Term) kg.Quad {
	if w.id == AllChannels {
		return kg.Quad{Subject: ServerEntity, Predicate: property, Object: object, Graph: kg.SystemGraph}
	}
	return kg.Quad{Subject: w.id.Entity(), Predicate: property, Object: object, Graph: w.id.RecordGraph()}
}

// ApplyPatch applies a patch unless an earlier one failed.
func (w *Writer) ApplyPatch(p kg.Patch) {
	if w.err == nil {
		w.err = w.Tx.ApplyOwn(p)
		w.n++
	}
}

// RemoveInvitation removes an invitation if there is one.
func (w *Writer) RemoveInvitation(c *Channel, agent kg.AgentID) {
	if c.IsInvited(agent) {
		w.ApplyPatch(kg.Patch{Op: kg.Remove, Quad: w.QuadFor(vocab.Invited, kg.IRI(string(agent)))})
	}
}

// SetProperty sets the only object of a property; the zero term clears it. It writes
// nothing if the property already has exactly this object, regardless of the source.
func (w *Writer) SetProperty(property, object kg.Term) {
	if object.IsZero() {
		w.ClearProperty(property)
		return
	}
	if !w.hasOnly(property, object) {
		w.ApplyPatch(kg.Patch{Op: kg.Replace, Quad: w.QuadFor(property, object)})
	}
}

// hasOnly reports whether the object is the only one of the property.
func (w *Writer) hasOnly(property, object kg.Term) bool {
	if w.err != nil {
		return false
	}
	q, n, same := w.QuadFor(property, object), 0, false
	for st, err := range w.Tx.MatchOwn(kg.Pattern{Subject: q.Subject, Predicate: property, Graph: q.Graph}) {
		if err != nil {
			w.err = err
			return false
		}
		n++
		same = st.Object == object
	}
	return n == 1 && same
}

// ClearProperty removes all objects of a property.
func (w *Writer) ClearProperty(property kg.Term) {
	if w.err != nil {
		return
	}
	gone, err := systemgraph.Quads(w.Tx.MatchOwn, kg.Pattern{Subject: w.id.Entity(), Predicate: property, Graph: w.id.RecordGraph()})
	w.err = err
	for _, q := range gone {
		w.ApplyPatch(kg.Patch{Op: kg.Remove, Quad: q})
	}
}

func (w *Writer) SetText(property kg.Term, text string) {
	if text == "" {
		w.SetProperty(property, kg.Term{})
		return
	}
	w.SetProperty(property, kg.String(text))
}

// SetNumber sets a number; 0 clears it.
func (w *Writer) SetNumber(property kg.Term, n int64) {
	if n == 0 {
		w.SetProperty(property, kg.Term{})
		return
	}
	w.SetProperty(property, kg.Integer(n))
}

// AddMember adds a member as of m.Joined.
func (w *Writer) AddMember(m Member) {
	w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(propertyOf(m.Role), kg.IRI(string(m.Agent))), Validity: kg.TimeSpan{From: m.Joined}})
}

// AddOverseer records an agent that reads the channel without taking part.
func (w *Writer) AddOverseer(o Overseer) {
	w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Overseer, kg.IRI(string(o.Agent))), Validity: kg.TimeSpan{From: o.Since}})
}

// RemoveMember removes a member.
func (w *Writer) RemoveMember(m Member) {
	w.ApplyPatch(kg.Patch{Op: kg.Remove, Quad: w.QuadFor(propertyOf(m.Role), kg.IRI(string(m.Agent)))})
}

// writeChannel writes the record of a new channel.
func (w *Writer) writeChannel(c *Channel) {
	for _, p := range []struct{ property, object kg.Term }{
		{vocab.Type, vocab.ClassChannel}, {vocab.Kind, kg.String(string(c.Kind))}, {vocab.Visibility, kg.String(string(c.Visibility))},
		{vocab.Created, kg.DateTime(c.CreatedAt)}, {vocab.Creator, kg.IRI(string(c.CreatedBy))}, {vocab.Version, kg.Typed(strconv.FormatInt(c.Version, 10), kg.XSDInteger)},
	} {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(p.property, p.object)})
	}
	if c.KeepMessages > 0 {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Keep, kg.Integer(c.KeepMessages))})
	}
	if c.Audit {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Audit, kg.Boolean(true))})
	}
	if c.ExpireAfter > 0 {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.ExpireAfter, kg.Integer(c.ExpireAfter.Milliseconds()))})
	}
	if c.Scope != "" {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Scope, c.Scope.Entity())})
	}
	for _, p := range []struct {
		property kg.Term
		text     string
	}{{vocab.Name, c.Name}, {vocab.Topic, c.Topic}, {vocab.Policy, string(c.MemberPolicy)}} {
		if p.text != "" {
			w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(p.property, kg.String(p.text))})
		}
	}
	if c.Metadata != nil {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Metadata, vocab.JSON(c.Metadata))})
	}
	for _, right := range rightTable {
		if grantee := *right.of(&c.Rights); grantee != "" {
			w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(right.property, kg.String(string(grantee)))})
		}
	}
	for _, limit := range limitTable {
		if n := *limit.of(&c.Limits); n > 0 {
			w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(limit.property, kg.Integer(int64(n)))})
		}
	}
	if c.MaxMembers > 0 {
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.MaxMembers, kg.Integer(int64(c.MaxMembers)))})
	}
	for _, m := range c.Members {
		w.AddMember(m)
	}
}

// SetRights sets the explicit rights.
func (w *Writer) SetRights(r *Rights) {
	for _, right := range rightTable {
		w.SetText(right.property, string(*right.of(r)))
	}
}

// SetLimits sets the channel's own limits.
func (w *Writer) SetLimits(l *Limits) {
	for _, limit := range limitTable {
		w.SetNumber(limit.property, int64(*limit.of(l)))
	}
}

// Close closes the channel as of the time at, which is not after the commit's time.
func (w *Writer) Close(c *Channel, at time.Time, reason string) {
	c.ClosedAt, c.CloseReason = at, reason
	w.SetProperty(vocab.Closed, kg.DateTime(at))
	w.SetText(vocab.CloseReason, reason)
}
