package reference

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

func itoa(n int) string { return strconv.Itoa(n) }

// document is a random operation.
type document struct {
	text      string
	operation string          // operationName
	variables json.RawMessage // nil for none
	by        kg.Principal
}

// generator makes a valid document from a schema and a seed.
type generator struct {
	*rand.Rand
	schema  *ast.Schema
	budgets bool // may stand in it
	refused int  // percent of scalars that koine refuses

	variables []*variable
	fragments []*fragment
	// taken has the fields at each response path, which are or may be merged.
	taken   map[string][]*field
	aliases int
	left    int // fields that may still be made
}

type selection interface{ write(b *strings.Builder) }

type field struct {
	parent     *ast.Definition
	def        *ast.FieldDefinition
	alias      string
	arguments  []member
	directives []directive
	set        []selection
}

// fragment is an inline fragment, or a spread of a named one.
type fragment struct {
	name       string // "" for an inline one
	on         *ast.Definition
	condition  bool // inline: names its type
	directives []directive
	set        []selection
}

type spread struct {
	of         *fragment
	directives []directive
}

type directive struct {
	name string
	on   any
}

// subscriptions are those that can begin in the past.
var subscriptions = []string{"statementChanged", "messagePublished", "taskChanged", "entityChanged", "matchChanged", "channelChanged", "proposalChanged"}

// callers execute documents, in turn.
var callers = []kg.Principal{root, ann, root, bob, ann, eve}

// newDocument makes the query of a seed.
func newDocument(schema *ast.Schema, seed uint64, budgets bool) document {
	return newOperation(schema, ast.Query, seed, budgets)
}

// newOperation makes the operation of a seed.
func newOperation(schema *ast.Schema, kind ast.Operation, seed uint64, budgets bool) document {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 19)), schema: schema, budgets: budgets, taken: map[string][]*field{}}
	g.left = 8 + g.IntN(70)
	if g.IntN(3) == 0 {
		g.refused = 3
	}
	set := g.rootSet(kind)
	doc := document{by: callers[g.IntN(len(callers))]}
	var b strings.Builder
	if g.IntN(8) == 0 {
		doc.operation = "Main"
	}
	// Fragments are made with the fields, so what they use is known now.
	if kind != ast.Query || doc.operation != "" || len(g.variables) > 0 || g.IntN(2) == 0 {
		b.WriteString(string(kind))
		if doc.operation != "" {
			b.WriteString(" Main")
		}
		for i, v := range g.variables {
			b.WriteString(opening(i) + "$" + v.name + ": " + v.typ)
			if v.fallback != nil {
				b.WriteString(" = " + literalOf(v.fallback))
			}
		}
		if len(g.variables) > 0 {
			b.WriteString(")")
		}
		b.WriteString(" ")
	}
	writeSet(&b, set)
	for _, f := range g.fragments {
		b.WriteString(" fragment " + f.name + " on " + f.on.Name + " ")
		writeSet(&b, f.set)
	}
	if doc.operation != "" {
		b.WriteString(" query Other { me { id } }")
	}
	doc.text = b.String()
	given := map[string]json.RawMessage{}
	for _, v := range g.variables {
		if v.given != nil {
			given[v.name] = jsonOf(v.given)
		}
	}
	if len(g.variables) > 0 && g.IntN(12) == 0 {
		v := g.variables[g.IntN(len(g.variables))]
		given[v.name] = jsonOf(junk[g.IntN(len(junk))])
	}
	if len(given) > 0 {
		doc.variables = encode(given)
	}
	return doc
}

// rootSet makes the selections of an operation. A subscription has one field, which nothing skips.
func (g *generator) rootSet(kind ast.Operation) []selection {
	depth := 2 + g.IntN(6)
	switch kind {
	case ast.Mutation:
		return g.selectionSet(g.schema.Mutation, "", depth)
	case ast.Subscription:
		set := []selection{g.onlyField(g.schema.Subscription, depth)}
		switch g.IntN(8) {
		case 0:
			return []selection{&fragment{on: g.schema.Subscription, condition: g.IntN(2) == 0, set: set}}
		case 1:
			f := &fragment{name: "F" + itoa(len(g.fragments)), on: g.schema.Subscription, set: set}
			g.fragments = append(g.fragments, f)
			return []selection{&spread{of: f}}
		}
		return set
	}
	return g.selectionSet(g.schema.Query, "", depth)
}

func (g *generator) selectionSet(of *ast.Definition, path string, depth int) (set []selection) {
	for range 1 + g.IntN(4) {
		switch n := g.IntN(20); {
		case n < 1:
			f := &fragment{on: of, directives: g.directives()}
			f.set = g.selectionSet(of, path, depth-1)
			set = append(set, f)
		case n < 3 || of.IsAbstractType() && n < 16:
			f := &fragment{on: g.overlapping(of), condition: true, directives: g.directives()}
			f.set = g.selectionSet(f.on, path, depth-1)
			set = append(set, f)
		case n < 5 && depth > 0:
			if f := g.fragment(of, path, depth-1); f != nil {
				set = append(set, &spread{f, g.directives()})
			}
		case n < 7:
			if f := g.again(set, path, depth); f != nil {
				set = append(set, f)
			}
		default:
			if f := g.field(of, path, depth); f != nil {
				set = append(set, f)
			}
		}
		if g.left <= 0 {
			break
		}
	}
	if len(set) == 0 {
		set = append(set, g.typename(of, path))
	}
	return set
}

var typenameField = &ast.FieldDefinition{Name: "__typename", Type: ast.NonNullNamedType("String", nil)}

func (g *generator) typename(of *ast.Definition, path string) selection {
	f := &field{parent: of, def: typenameField, directives: g.directives()}
	g.take(f, path)
	return f
}

// rareEvents are those of which a subscription to the past has few.
var rareEvents = []string{"GraphReplaced", "Progress", "Resync"}

// overlapping is a type that some objects of another one have.
func (g *generator) overlapping(of *ast.Definition) *ast.Definition {
	possible := g.schema.GetPossibleTypes(of)
	if len(possible) > 1 && g.IntN(5) > 0 {
		possible = slices.DeleteFunc(slices.Clone(possible), func(d *ast.Definition) bool { return slices.Contains(rareEvents, d.Name) })
	}
	var all []*ast.Definition
	for _, name := range sortedNames(g.schema.Types) {
		d := g.schema.Types[name]
		if d.IsCompositeType() && slices.ContainsFunc(g.schema.GetPossibleTypes(d), func(p *ast.Definition) bool { return slices.Contains(possible, p) }) {
			all = append(all, d)
		}
	}
	one := all[g.IntN(len(all))]
	switch {
	case of.IsAbstractType() && g.IntN(2) == 0:
		return possible[g.IntN(len(possible))]
	case of.IsAbstractType() || g.IntN(2) == 0:
		return one
	}
	return of
}

func sortedNames(types map[string]*ast.Definition) (names []string) {
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fragment is a named fragment that may be spread in a type.
func (g *generator) fragment(of *ast.Definition, path string, depth int) *fragment {
	if len(g.fragments) > 0 && g.IntN(3) == 0 {
		f := g.fragments[g.IntN(len(g.fragments))]
		possible := g.schema.GetPossibleTypes(of)
		overlaps := slices.ContainsFunc(g.schema.GetPossibleTypes(f.on), func(p *ast.Definition) bool { return slices.Contains(possible, p) })
		// A fragment without its set is being made: it must not contain itself.
		if overlaps && f.set != nil && g.size(f.set) <= g.left && g.takeAll(f.set, path) {
			g.left -= g.size(f.set)
			return f
		}
	}
	if len(g.fragments) >= 6 {
		return nil
	}
	f := &fragment{name: "F" + itoa(len(g.fragments)), on: of}
	if g.IntN(3) == 0 {
		f.on = g.overlapping(of)
	}
	g.fragments = append(g.fragments, f)
	f.set = g.selectionSet(f.on, path, depth)
	return f
}

func (g *generator) size(set []selection) (n int) {
	for _, s := range set {
		switch s := s.(type) {
		case *field:
			n += 1 + g.size(s.set)
		case *fragment:
			n += g.size(s.set)
		case *spread:
			n += g.size(s.of.set)
		}
	}
	return n
}

// takeAll takes the places of a fragment's fields at another path. If one is not free,
// nothing was taken.
func (g *generator) takeAll(set []selection, path string) bool {
	var all []func()
	var look func(set []selection, path string) bool
	look = func(set []selection, path string) bool {
		for _, s := range set {
			ok := true
			switch s := s.(type) {
			case *field:
				at := path + "/" + s.key()
				ok = g.free(s, at) && look(s.set, at)
				all = append(all, func() { g.taken[at] = append(g.taken[at], s) })
			case *fragment:
				ok = look(s.set, path)
			case *spread:
				ok = s.of.set != nil && look(s.of.set, path)
			}
			if !ok {
				return false
			}
		}
		return true
	}
	if !look(set, path) {
		return false
	}
	for _, take := range all {
		take()
	}
	return true
}

// again repeats a field of a set with other selections of its own.
func (g *generator) again(set []selection, path string, depth int) selection {
	if len(set) == 0 {
		return nil
	}
	first, ok := set[g.IntN(len(set))].(*field)
	if !ok {
		return nil
	}
	f := *first
	f.directives = g.directives()
	g.left--
	if f.set != nil {
		f.set = g.selectionSet(g.schema.Types[f.def.Type.Name()], path+"/"+f.key(), depth-1)
	}
	return &f
}

func (g *generator) field(of *ast.Definition, path string, depth int) selection {
	var leaves, branches ast.FieldList
	for _, d := range of.Fields {
		switch {
		case of == g.schema.Mutation && slices.Contains(waiting, d.Name):
		case d.Name == "__schema" || d.Name == "__type" && g.IntN(20) > 0 || d.Name == "revision" && path == "":
		case g.schema.Types[d.Type.Name()].IsCompositeType():
			branches = append(branches, d)
		default:
			leaves = append(leaves, d)
		}
	}
	from := leaves
	if depth > 0 && len(branches) > 0 && (len(leaves) == 0 || g.IntN(5) < 2 || path == "" && g.IntN(10) > 0) {
		from = branches
	}
	if len(from) == 0 || g.IntN(25) == 0 {
		return g.typename(of, path)
	}
	return g.fieldOf(of, from[g.IntN(len(from))], path, depth, g.directives())
}

// waiting are the mutations that random documents lack: their answer takes seconds.
var waiting = []string{"ask"}

// onlyField is the field of a subscription.
func (g *generator) onlyField(of *ast.Definition, depth int) selection {
	def := of.Fields.ForName(subscriptions[g.IntN(len(subscriptions))])
	return g.fieldOf(of, def, "", depth, nil)
}

// fieldOf makes a field with arguments and selections.
func (g *generator) fieldOf(of *ast.Definition, def *ast.FieldDefinition, path string, depth int, directives []directive) selection {
	g.left--
	f := &field{parent: of, def: def, directives: directives}
	args := make(ast.FieldList, 0, len(f.def.Arguments))
	for _, a := range f.def.Arguments {
		args = append(args, &ast.FieldDefinition{Name: a.Name, Type: a.Type, DefaultValue: a.DefaultValue})
	}
	name := of.Name + "." + f.def.Name
	for _, a := range g.given(name, args, 2) {
		f.arguments = append(f.arguments, member{a.Name, g.place(a.Type, name+"."+a.Name, 2, true, a.DefaultValue != nil)})
	}
	if g.IntN(8) == 0 {
		f.alias = []string{"a", "b", "id", "name", "nodes"}[g.IntN(5)]
	}
	g.take(f, path)
	if def := g.schema.Types[f.def.Type.Name()]; def.IsCompositeType() {
		f.set = g.selectionSet(def, path+"/"+f.key(), depth-1)
	}
	return f
}

func (f *field) key() string {
	if f.alias != "" {
		return f.alias
	}
	return f.def.Name
}

// take takes a field's place at a response path, under another alias if it is not free.
func (g *generator) take(f *field, path string) {
	for !g.free(f, path+"/"+f.key()) {
		g.aliases++
		f.alias = "x" + itoa(g.aliases)
	}
	at := path + "/" + f.key()
	g.taken[at] = append(g.taken[at], f)
}

// free reports whether a field may stand at a response path beside those that are there.
func (g *generator) free(f *field, at string) bool {
	for _, other := range g.taken[at] {
		same := other.def.Name == f.def.Name && sameArguments(other.arguments, f.arguments)
		apart := other.parent != f.parent && other.parent.Kind == ast.Object && f.parent.Kind == ast.Object && !g.schema.Types[f.def.Type.Name()].IsCompositeType()
		if f.def.Type.String() != other.def.Type.String() || !same && !apart {
			return false
		}
	}
	return true
}

func sameArguments(a, b []member) bool {
	text := func(list []member) string {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return literalOf(object(list))
	}
	return text(a) == text(b)
}

func (g *generator) directives() (list []directive) {
	for _, name := range []string{"skip", "include"} {
		if g.IntN(16) > 0 {
			continue
		}
		likely := token(strconv.FormatBool((name == "include") == (g.IntN(3) > 0)))
		if g.IntN(3) == 0 {
			list = append(list, directive{name, likely})
			continue
		}
		list = append(list, directive{name, g.variable(ast.NonNullNamedType("Boolean", nil), "."+name, false)})
	}
	return list
}

func writeSet(b *strings.Builder, set []selection) {
	b.WriteByte('{')
	for _, s := range set {
		b.WriteByte(' ')
		s.write(b)
	}
	b.WriteString(" }")
}

func (f *field) write(b *strings.Builder) {
	if f.alias != "" {
		b.WriteString(f.alias + ": ")
	}
	b.WriteString(f.def.Name)
	writeArguments(b, f.arguments)
	writeDirectives(b, f.directives)
	if f.set != nil {
		b.WriteByte(' ')
		writeSet(b, f.set)
	}
}

func (f *fragment) write(b *strings.Builder) {
	b.WriteString("...")
	if f.condition {
		b.WriteString(" on " + f.on.Name)
	}
	writeDirectives(b, f.directives)
	b.WriteByte(' ')
	writeSet(b, f.set)
}

func (s *spread) write(b *strings.Builder) {
	b.WriteString("..." + s.of.name)
	writeDirectives(b, s.directives)
}

// opening is what stands before an element of a list in parentheses.
func opening(i int) string {
	if i == 0 {
		return "("
	}
	return ", "
}

func writeArguments(b *strings.Builder, list []member) {
	for i, m := range list {
		b.WriteString(opening(i) + m.name + ": ")
		writeLiteral(b, m.value)
	}
	if len(list) > 0 {
		b.WriteByte(')')
	}
}

func writeDirectives(b *strings.Builder, list []directive) {
	for _, d := range list {
		b.WriteString(" @" + d.name + "(if: ")
		writeLiteral(b, d.on)
		b.WriteByte(')')
	}
}
