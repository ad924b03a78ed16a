package pattern

import (
	"slices"

	"koine/kg"
)

// scope is a group bound to a snapshot: each of its variables has a slot in the
// row.
//
// Groups are evaluated top-down, so that existing bindings narrow each read. The
// SPARQL algebra is defined bottom-up; both agree as long as the group certainly
// binds the variable. Where it may leave the variable unbound (in an OPTIONAL, or
// in one alternative of a UNION), the group gets a slot of its own, which is
// compared with the outer slot when the group ends. Thus
// "OPTIONAL { … OPTIONAL { … ?x } }" does not see an outer ?x.
type scope struct {
	own       map[string]int
	triples   []*boundTriple
	unions    [][]*scope
	texts     []*boundText
	certain   []slots // the variables that each union certainly binds
	optionals []*scope
	filters   []*boundFilter
	absent    []*notExists
	merges    []merge
	optional  bool
}

// merge compares the slot that a group has of its own with the slot of the same
// variable outside.
type merge struct{ inner, outer int }

// boundFilter is a filter with the slots of its variables, -1 for a variable that
// is not in scope. open are the slots that must be bound before the filter runs;
// the others no longer change.
type boundFilter struct {
	slots []int
	open  slots
	holds func([]kg.Term) bool
	text  string
}

// notExists is a NotExists group with the slots of the variables in its scope.
type notExists struct {
	group   *Group
	visible map[string]int
	open    slots
}

// builder binds groups to a snapshot and allocates slots.
type builder struct {
	snapshot *kg.Snapshot
	limits   Limits
	next     int
	hits     map[*Text]TextHits
}

func (b *builder) newSlot() (int, error) {
	if b.next == maxSlots {
		return 0, tooMany("variables in different groups", maxSlots)
	}
	b.next++
	return b.next - 1, nil
}

// bindContext is the context in which a group is bound.
type bindContext struct {
	outer  map[string]int // slots of the enclosing group's variables
	shared func(name string) bool
	// constant are the slots of substituted variables. They are visible at any
	// depth (SPARQL 1.1, section 18.6, substitute).
	constant map[string]int
	optional bool
}

func (b *builder) bindGroup(g *Group, at bindContext) (*scope, error) {
	s := &scope{own: map[string]int{}, optional: at.optional}
	certain := certainOf(g)
	names := scopeOf(g)
	for _, name := range names {
		if slot, ok := at.constant[name]; ok {
			s.own[name] = slot
			continue
		}
		outer := at.outer[name]
		s.own[name] = outer
		if !slices.Contains(certain, name) && at.shared(name) {
			inner, err := b.newSlot()
			if err != nil {
				return nil, err
			}
			s.own[name], s.merges = inner, append(s.merges, merge{inner, outer})
		}
	}
	for i := range g.Triples {
		t, err := b.bindTriple(&g.Triples[i], s.own, at.constant)
		if err != nil {
			return nil, err
		}
		s.triples = append(s.triples, t)
	}
	for i := range g.Texts {
		s.texts = append(s.texts, b.bindText(&g.Texts[i], s.own))
	}
	if err := b.bindNested(s, g, at); err != nil {
		return nil, err
	}
	b.bindConditions(s, g, at)
	return s, nil
}

// bindNested binds the nested groups of g.
func (b *builder) bindNested(s *scope, g *Group, at bindContext) error {
	used := map[string]int{} // number of elements by variable
	for i := range g.Triples {
		countNames(used, g.Triples[i].variableNames())
	}
	for i := range g.Texts {
		countNames(used, g.Texts[i].variableNames())
	}
	for _, union := range g.Unions {
		countNames(used, scopeOf(&Group{Unions: [][]Group{union}}))
	}
	for i := range g.Optional {
		countNames(used, scopeOf(&g.Optional[i]))
	}
	in := bindContext{outer: s.own, constant: at.constant, shared: func(name string) bool { return used[name] > 1 }}
	for _, union := range g.Unions {
		var list []*scope
		for k := range union {
			alternative, err := b.bindGroup(&union[k], in)
			if err != nil {
				return err
			}
			list = append(list, alternative)
		}
		s.unions = append(s.unions, list)
		var certain slots
		for _, name := range certainOfUnion(union) {
			certain.add(s.own[name])
		}
		s.certain = append(s.certain, certain)
	}
	in.optional = true
	for i := range g.Optional {
		o, err := b.bindGroup(&g.Optional[i], in)
		if err != nil {
			return err
		}
		s.optionals = append(s.optionals, o)
	}
	return nil
}

// narrowObjects restricts the triples of the group with a variable as their object to some
// objects: no other solution passes the group's filters.
func (s *scope) narrowObjects(slot int, objects *kg.Objects) {
	for _, t := range s.triples {
		if t.path != nil || t.nodes[objectPos].slot != slot || slot < 0 {
			continue
		}
		t.objects = t.objects.Narrow(objects)
	}
}

func countNames(used map[string]int, names []string) {
	for _, name := range names {
		used[name]++
	}
}

// bindConditions binds the filters and NotExists of a group. In an optional group
// they see the solution merged with the left side of the join.
func (b *builder) bindConditions(s *scope, g *Group, at bindContext) {
	visible := make(map[string]int, len(s.own)+len(at.constant))
	if at.optional {
		for name, slot := range at.outer {
			visible[name] = slot
		}
	}
	for name, slot := range s.own {
		if _, there := visible[name]; !there {
			visible[name] = slot
		}
	}
	for name, slot := range at.constant {
		visible[name] = slot
	}
	open := func(into *slots, name string) int {
		slot, ok := visible[name]
		if !ok {
			return -1
		}
		if _, changes := s.own[name]; changes {
			into.add(slot)
		}
		return slot
	}
	for i := range g.Filters {
		f := &boundFilter{holds: g.Filters[i].Holds}
		for k, name := range g.Filters[i].Vars {
			f.slots = append(f.slots, open(&f.open, name))
			if k > 0 {
				f.text += " "
			}
			f.text += "?" + name
		}
		s.filters = append(s.filters, f)
		if objects := g.Filters[i].Objects; objects != nil {
			s.narrowObjects(f.slots[0], objects)
		}
	}
	for i := range g.NotExists {
		n := &notExists{group: &g.NotExists[i], visible: visible}
		for _, name := range mentionedVars(n.group) {
			open(&n.open, name)
		}
		s.absent = append(s.absent, n)
	}
}
