package channels

import (
	"iter"
	"slices"
	"strconv"

	"koine/kg"
)

// matcher reads statements (kg.Snapshot.Match, kg.Tx.MatchOwn).
type matcher func(kg.Pattern) iter.Seq2[kg.Statement, error]

// readChannel reads a channel's record as it stands; nil if there is none. How many
// messages there are is not part of it.
func readChannel(match matcher, id ChannelID) (*Channel, error) {
	c := &Channel{ID: id}
	for st, err := range match(kg.Pattern{Subject: id.Entity(), Graph: id.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		c.take(st.Predicate, st.Object, &st.Assertions[0])
	}
	if c.Version == 0 {
		return nil, nil
	}
	c.inOrder()
	return c, nil
}

// writer writes a channel's record. The first error stays.
type writer struct {
	tx  *kg.Tx
	id  ChannelID // AllChannels for what is said of the server
	err error
	// quiet is set where the change is none of those that make another version.
	quiet bool
	n     int // patches that were applied
}

func (w *writer) quad(property, object kg.Term) kg.Quad {
	if w.id == AllChannels {
		return kg.Quad{Subject: serverEntity, Predicate: property, Object: object, Graph: kg.SystemGraph}
	}
	return kg.Quad{Subject: w.id.Entity(), Predicate: property, Object: object, Graph: w.id.RecordGraph()}
}

func (w *writer) apply(p kg.Patch) {
	if w.err == nil {
		w.err = w.tx.ApplyOwn(p)
		w.n++
	}
}

// set gives a property its one object; the zero term takes it away. It writes nothing if
// the property has it already, whoever said so.
func (w *writer) set(property, object kg.Term) {
	if object.IsZero() {
		w.clear(property)
		return
	}
	if !w.has(property, object) {
		w.apply(kg.Patch{Op: kg.Replace, Quad: w.quad(property, object)})
	}
}

// has tells whether the object is the only one of the property.
func (w *writer) has(property, object kg.Term) bool {
	if w.err != nil {
		return false
	}
	q, n, same := w.quad(property, object), 0, false
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

// clear takes all of a property away.
func (w *writer) clear(property kg.Term) {
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
		w.apply(kg.Patch{Op: kg.Remove, Quad: q})
	}
}

func (w *writer) text(property kg.Term, text string) {
	if text == "" {
		w.set(property, kg.Term{})
		return
	}
	w.set(property, kg.String(text))
}

// number is set for a number, of which 0 is none.
func (w *writer) number(property kg.Term, n int64) {
	if n == 0 {
		w.set(property, kg.Term{})
		return
	}
	w.set(property, kg.Integer(n))
}

// member makes an agent a member from a time on.
func (w *writer) member(m Member) {
	w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propertyOf(m.Role), kg.IRI(string(m.Agent))), Validity: kg.TimeSpan{From: m.Joined}})
}

// leave takes a membership away.
func (w *writer) leave(m Member) {
	w.apply(kg.Patch{Op: kg.Remove, Quad: w.quad(propertyOf(m.Role), kg.IRI(string(m.Agent)))})
}

// version says which version of the channel this is.
func (w *writer) version(v int64) {
	w.apply(kg.Patch{Op: kg.Replace, Quad: w.quad(propVersion, kg.Integer(v))})
}

// make writes the record of a new channel.
func (w *writer) make(c *Channel) {
	for _, p := range []struct{ property, object kg.Term }{
		{rdfType, ClassChannel}, {propKind, kg.String(string(c.Kind))}, {propVisibility, kg.String(string(c.Visibility))},
		{propCreated, kg.DateTime(c.CreatedAt)}, {propCreator, kg.IRI(string(c.CreatedBy))}, {propVersion, kg.Typed(strconv.FormatInt(c.Version, 10), kg.XSDInteger)},
	} {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(p.property, p.object)})
	}
	if c.KeepMessages > 0 {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propKeep, kg.Integer(c.KeepMessages))})
	}
	if c.Audit {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propAudit, kg.Boolean(true))})
	}
	if c.ExpireAfter > 0 {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propExpireAfter, kg.Integer(c.ExpireAfter.Milliseconds()))})
	}
	if c.Scope != "" {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propScope, c.Scope.Entity())})
	}
	for _, p := range []struct {
		property kg.Term
		text     string
	}{{propName, c.Name}, {propTopic, c.Topic}, {propPolicy, string(c.MemberPolicy)}} {
		if p.text != "" {
			w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(p.property, kg.String(p.text))})
		}
	}
	if c.Metadata != nil {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propMetadata, jsonText(c.Metadata))})
	}
	for _, right := range rights {
		if who := *right.of(&c.Rights); who != "" {
			w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(right.property, kg.String(string(who)))})
		}
	}
	for _, limit := range limits {
		if n := *limit.of(&c.Limits); n > 0 {
			w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(limit.property, kg.Integer(int64(n)))})
		}
	}
	if c.MaxMembers > 0 {
		w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(propMaxMembers, kg.Integer(int64(c.MaxMembers)))})
	}
	for _, m := range c.Members {
		w.member(m)
	}
}

// change changes a channel in one commit: fn looks at it as it stands there, and
// writes. What fn is called with is its own. A change that writes nothing leaves the
// version as it is.
func (s *Service) change(tx *kg.Tx, id ChannelID, fn func(w *writer, c *Channel) error) (*Channel, error) {
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
		w.version(c.Version)
	}
	return c, w.err
}
