package channels

import (
	"iter"
	"slices"
	"strconv"

	"koine/kg"
)

// matcher reads statements (kg.Snapshot.Match, kg.Tx.MatchOwn).
type matcher func(kg.Pattern) iter.Seq2[kg.Statement, error]

// readChannel reads a channel's record, without the message count. It returns nil if
// there is none.
func readChannel(match matcher, id ChannelID) (*Channel, error) {
	c := &Channel{ID: id}
	for st, err := range match(kg.Pattern{Subject: id.Entity(), Graph: id.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		c.applyStatement(st.Predicate, st.Object, &st.Assertions[0])
	}
	if c.Version == 0 {
		return nil, nil
	}
	c.sortMembers()
	return c, nil
}

// writer writes a channel's record. It keeps the first error.
type writer struct {
	tx  *kg.Tx
	id  ChannelID // AllChannels for the server's own record
	err error
	// quiet suppresses the increment of the channel's version.
	quiet bool
	n     int // number of applied patches
}

// quadFor returns a statement of the record.
func (w *writer) quadFor(property, object kg.Term) kg.Quad {
	if w.id == AllChannels {
		return kg.Quad{Subject: serverEntity, Predicate: property, Object: object, Graph: kg.SystemGraph}
	}
	return kg.Quad{Subject: w.id.Entity(), Predicate: property, Object: object, Graph: w.id.RecordGraph()}
}

// applyPatch applies a patch unless an earlier one failed.
func (w *writer) applyPatch(p kg.Patch) {
	if w.err == nil {
		w.err = w.tx.ApplyOwn(p)
		w.n++
	}
}

// setProperty sets the only object of a property; the zero term clears it. It writes
// nothing if the property already has exactly this object, regardless of the source.
func (w *writer) setProperty(property, object kg.Term) {
	if object.IsZero() {
		w.clearProperty(property)
		return
	}
	if !w.hasOnly(property, object) {
		w.applyPatch(kg.Patch{Op: kg.Replace, Quad: w.quadFor(property, object)})
	}
}

// hasOnly reports whether the object is the only one of the property.
func (w *writer) hasOnly(property, object kg.Term) bool {
	if w.err != nil {
		return false
	}
	q, n, same := w.quadFor(property, object), 0, false
	for st, err := range w.tx.MatchOwn(kg.Pattern{Subject: q.Subject, Predicate: property, Graph: q.Graph}) {
		if err != nil {
			w.err = err
			return false
		}
		n++
		same = st.Object == object
	}
	return n == 1 && same
}

// clearProperty removes all objects of a property.
func (w *writer) clearProperty(property kg.Term) {
	if w.err != nil {
		return
	}
	var gone []kg.Quad
	for st, err := range w.tx.MatchOwn(kg.Pattern{Subject: w.id.Entity(), Predicate: property, Graph: w.id.RecordGraph()}) {
		if err != nil {
			w.err = err
			return
		}
		gone = append(gone, st.Quad)
	}
	for _, q := range gone {
		w.applyPatch(kg.Patch{Op: kg.Remove, Quad: q})
	}
}

func (w *writer) setText(property kg.Term, text string) {
	if text == "" {
		w.setProperty(property, kg.Term{})
		return
	}
	w.setProperty(property, kg.String(text))
}

// setNumber sets a number; 0 clears it.
func (w *writer) setNumber(property kg.Term, n int64) {
	if n == 0 {
		w.setProperty(property, kg.Term{})
		return
	}
	w.setProperty(property, kg.Integer(n))
}

// addMember adds a member as of m.Joined.
func (w *writer) addMember(m Member) {
	w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propertyOf(m.Role), kg.IRI(string(m.Agent))), Validity: kg.TimeSpan{From: m.Joined}})
}

// removeMember removes a member.
func (w *writer) removeMember(m Member) {
	w.applyPatch(kg.Patch{Op: kg.Remove, Quad: w.quadFor(propertyOf(m.Role), kg.IRI(string(m.Agent)))})
}

// setVersion sets the channel's version.
func (w *writer) setVersion(v int64) {
	w.applyPatch(kg.Patch{Op: kg.Replace, Quad: w.quadFor(propVersion, kg.Integer(v))})
}

// writeChannel writes the record of a new channel.
func (w *writer) writeChannel(c *Channel) {
	for _, p := range []struct{ property, object kg.Term }{
		{rdfType, ClassChannel}, {propKind, kg.String(string(c.Kind))}, {propVisibility, kg.String(string(c.Visibility))},
		{propCreated, kg.DateTime(c.CreatedAt)}, {propCreator, kg.IRI(string(c.CreatedBy))}, {propVersion, kg.Typed(strconv.FormatInt(c.Version, 10), kg.XSDInteger)},
	} {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(p.property, p.object)})
	}
	if c.KeepMessages > 0 {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propKeep, kg.Integer(c.KeepMessages))})
	}
	if c.Audit {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propAudit, kg.Boolean(true))})
	}
	if c.ExpireAfter > 0 {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propExpireAfter, kg.Integer(c.ExpireAfter.Milliseconds()))})
	}
	if c.Scope != "" {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propScope, c.Scope.Entity())})
	}
	for _, p := range []struct {
		property kg.Term
		text     string
	}{{propName, c.Name}, {propTopic, c.Topic}, {propPolicy, string(c.MemberPolicy)}} {
		if p.text != "" {
			w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(p.property, kg.String(p.text))})
		}
	}
	if c.Metadata != nil {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propMetadata, jsonLiteral(c.Metadata))})
	}
	for _, right := range rights {
		if grantee := *right.of(&c.Rights); grantee != "" {
			w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(right.property, kg.String(string(grantee)))})
		}
	}
	for _, limit := range limits {
		if n := *limit.of(&c.Limits); n > 0 {
			w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(limit.property, kg.Integer(int64(n)))})
		}
	}
	if c.MaxMembers > 0 {
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propMaxMembers, kg.Integer(int64(c.MaxMembers)))})
	}
	for _, m := range c.Members {
		w.addMember(m)
	}
}

// changeChannel changes a channel within an update. fn receives the channel as of the
// update and owns it. The version increases unless fn writes nothing.
func (s *Service) changeChannel(tx *kg.Tx, id ChannelID, fn func(w *writer, c *Channel) error) (*Channel, error) {
	c, err := readChannel(tx.MatchOwn, id)
	if err != nil {
		return nil, err
	}
	if c == nil || c.deleted {
		return nil, errNoChannel()
	}
	c.Members = slices.Clone(c.Members)
	w := &writer{tx: tx, id: id}
	if err := fn(w, c); err != nil {
		return nil, err
	}
	if w.err == nil && w.n > 0 && !w.quiet {
		c.Version++
		w.setVersion(c.Version)
	}
	return c, w.err
}
