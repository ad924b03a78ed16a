package graph

import (
	"context"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

// groupShape is the part of a field `groups` that does not depend on the
// grouped elements.
type groupShape struct {
	limits Limits
	names  []string // of the keys, then of the computed values
	nKeys  int
	having []func(*group) bool
	order  ordering[*group]
	first  int
	fields []groupField
}

// groupField is a selected field of a group.
type groupField struct {
	key     []byte
	name    string
	index   int           // index of the key or value, for fields with a name
	entity  *entityPlan   // for `entity`, and for a `term` that is an entity
	literal []scalarField // for a `term` that is a literal
}

// Bounds of the keys of a field `groups` and of the values computed for each
// group.
const (
	MaxGroupKeys = 4
	MaxComputed  = 16
)

// sizeOfGroup is the index of "count" among a group's terms.
const sizeOfGroup = -1

// planGrouping plans the part that all fields `groups` share: names, conditions,
// order and selection.
func (p *planner) planGrouping(f graphql.CollectedField, args map[string]any, keys, computed []string) (s groupShape, err error) {
	s = groupShape{limits: p.run.engine.limits, nKeys: len(keys), names: slices.Concat(keys, computed)}
	switch {
	case len(keys) > MaxGroupKeys:
		return s, limitError("groupKeys", "groups have at most %d keys", MaxGroupKeys)
	case len(computed) > MaxComputed:
		return s, limitError("groupValues", "groups have at most %d computed values", MaxComputed)
	}
	for i, name := range s.names {
		if name == "" || name == "count" || slices.Contains(s.names[:i], name) {
			e := kg.Errorf(kg.CodeInvalid, "the name %q cannot be used: names (as) must be unique, and count is reserved", name)
			return s, e.At("as")
		}
	}
	if s.first, err = s.limits.pageSize(argumentOf[*int](args, "first"), DefaultPageSize); err != nil {
		return s, err
	}
	if s.having, err = s.compileHaving(argumentOf[[]GroupCondition](args, "having")); err != nil {
		return s, kg.AsError(err).At("having")
	}
	if s.order, err = s.compileOrder(argumentOf[[]GroupOrder](args, "orderBy")); err != nil {
		return s, kg.AsError(err).At("orderBy")
	}
	s.fields, err = p.planGroupFields(&s, f.Selections)
	return s, err
}

// termIndex returns the index of a key or value by its name.
func (s *groupShape) termIndex(name string) (int, error) {
	if name == "count" {
		return sizeOfGroup, nil
	}
	if i := slices.Index(s.names, name); i >= 0 {
		return i, nil
	}
	e := kg.Errorf(kg.CodeInvalid, "no key or value is named %q", name)
	e.Hint = "The names are: " + quotedList(append(slices.Clone(s.names), "count")) + "."
	return 0, e.At("as")
}

func quotedList(names []string) (text string) {
	for i, n := range names {
		if i > 0 {
			text += ", "
		}
		text += strconv.Quote(n)
	}
	return text
}

func (s *groupShape) compileHaving(list []GroupCondition) (out []func(*group) bool, err error) {
	for i := range list {
		c := &list[i]
		of, err := s.termIndex(c.As)
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		fits, err := matchValue(context.Background(), &ValueFilter{Eq: c.Eq, Ne: c.Ne, In: c.In, Nin: c.Nin, Lt: c.Lt, Lte: c.Lte, Gt: c.Gt, Gte: c.Gte})
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		out = append(out, func(g *group) bool {
			t := g.termAt(of)
			if c.Exists != nil && *c.Exists == t.IsZero() {
				return false
			}
			return fits == nil || !t.IsZero() && fits(t)
		})
	}
	return out, nil
}

func (s *groupShape) meetsHaving(g *group) bool {
	for _, holds := range s.having {
		if !holds(g) {
			return false
		}
	}
	return true
}

func (s *groupShape) compileOrder(list []GroupOrder) (o ordering[*group], err error) {
	for i, by := range list {
		of, err := s.termIndex(by.As)
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		o = append(o, orderKey[*group]{
			descending: by.Direction == SortDirectionDesc, nullFirst: by.Nulls == NullsOrderFirst,
			extract: func(g *group) (value, bool, error) {
				t := g.termAt(of)
				if t.IsZero() {
					return value{}, false, nil
				}
				return valueOf(t), true, nil
			},
		})
	}
	return o, nil
}

func (p *planner) planGroupFields(s *groupShape, set ast.SelectionSet) (fields []groupField, err error) {
	err = p.eachField(set, groupImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := groupField{key: key, name: f.Name}
		parse := p.run.ec.field_Group_key_args
		switch f.Name {
		case "__typename", "keys", "values", "count":
			fields = append(fields, field)
			return nil
		case "key":
		case "value":
			parse = p.run.ec.field_Group_value_args
		case "entity":
			parse = p.run.ec.field_Group_entity_args
			if field.entity, err = p.planEntity(f.Selections); err != nil {
				return err
			}
		case "term":
			parse = p.run.ec.field_Group_term_args
			if field.entity, err = p.planEntity(f.Selections); err == nil {
				field.literal, err = p.planLiteral(f.Selections)
			}
			if err != nil {
				return err
			}
		default:
			return unplannedField(f)
		}
		args, err := p.parseArgs(f, parse)
		if err != nil {
			return err
		}
		field.index, err = s.termIndex(argumentOf[string](args, "as"))
		fields = append(fields, field)
		return err
	})
	return fields, err
}

// groupList is a loaded field `groups`.
type groupList struct {
	shape    *groupShape
	groups   []group
	entities [][]*entityNode // for each field that shows entities, for each group; nil for none
}

// groupList loads the entities that the fields show.
func (l *loader) groupList(s *groupShape, groups []group) (*groupList, error) {
	out := &groupList{shape: s, groups: groups, entities: make([][]*entityNode, len(s.fields))}
	for i := range s.fields {
		f := &s.fields[i]
		if f.entity == nil {
			continue
		}
		out.entities[i] = make([]*entityNode, len(groups))
		var refs []entityRef
		var at []int
		for k := range groups {
			if t := groups[k].termAt(f.index); t.IsResource() {
				ref, err := l.newEntityRef(t)
				if err != nil {
					return nil, err
				}
				refs, at = append(refs, ref), append(at, k)
			}
		}
		nodes, err := l.loadEntities(f.entity, refs)
		if err != nil {
			return nil, err
		}
		for k, n := range nodes {
			out.entities[i][at[k]] = n
		}
	}
	return out, nil
}

func (l *groupList) write(b []byte) []byte {
	b = append(b, '[')
	for k := range l.groups {
		if k > 0 {
			b = append(b, ',')
		}
		b = l.writeGroup(b, k)
	}
	return append(b, ']')
}

func (l *groupList) writeGroup(b []byte, k int) []byte {
	g := &l.groups[k]
	b = append(b, '{')
	for i := range l.shape.fields {
		if i > 0 {
			b = append(b, ',')
		}
		f := &l.shape.fields[i]
		b = append(b, f.key...)
		switch f.name {
		case "keys":
			b = l.shape.appendNamed(b, g, 0, l.shape.nKeys)
		case "values":
			b = l.shape.appendNamed(b, g, l.shape.nKeys, len(g.terms))
		case "count":
			b = appendUint(b, g.count)
		case "key", "value":
			b = appendNullable(b, g.termAt(f.index))
		case "entity":
			if n := l.entities[i][k]; n != nil {
				b = n.write(b)
			} else {
				b = append(b, "null"...)
			}
		case "term":
			b = l.writeTerm(b, f, i, k)
		default:
			b = append(b, `"Group"`...)
		}
	}
	return append(b, '}')
}

func (l *groupList) writeTerm(b []byte, f *groupField, i, k int) []byte {
	if n := l.entities[i][k]; n != nil {
		return n.write(b)
	}
	if t := l.groups[k].termAt(f.index); t.IsLiteral() {
		return appendLiteral(b, t, f.literal)
	}
	return append(b, "null"...)
}

// appendNamed writes a range of a group's terms as an object.
func (s *groupShape) appendNamed(b []byte, g *group, from, to int) []byte {
	b = append(b, '{')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = append(appendString(b, s.names[i]), ':')
		b = appendNullable(b, g.terms[i])
	}
	return append(b, '}')
}

func appendNullable(b []byte, t kg.Term) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendValue(b, t)
}
