package graph

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/path"
	"koine/kg"
)

// mentions looks at what the arguments of an operation name: nearly always all
// of it occurs, so that doing so must cost next to nothing.
type mentions struct {
	variables map[string]any
	path      []string
	seen      []mention
	fragments map[string]bool

	ctx      context.Context // that of the operation
	run      *run
	snapshot *kg.Snapshot
	guesser  guesser
	hints    []operation.Hint
}

// mention is something that an operation names: a predicate, class, graph or
// entity, a path of predicates, or a literal that a value is compared with.
type mention struct{ what, text string }

// What of those that are no words for the caller.
const (
	aPath    = "path"
	aLiteral = "literal"           // of a condition that also has an iri
	aValue   = "value of a triple" // that could also have an o
)

// mentionArguments are the arguments in which something is named. Those of
// shortestPaths are named like others that are moments.
var mentionArguments = []string{"predicate", "predicates", "path", "iri", "where", "orderBy", "by", "compute", "pattern", "view"}

func names(f *ast.Field, argument string) (member string, ok bool) {
	if f.Name == "shortestPaths" && (argument == "from" || argument == "to") {
		return "iri", true
	}
	return argument, slices.Contains(mentionArguments, argument)
}

func (m *mentions) set(set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			m.path = append(m.path, sel.Alias)
			for _, a := range sel.Arguments {
				if member, ok := names(sel, a.Name); ok {
					m.written(member, a.Value)
				}
			}
			m.set(sel.SelectionSet)
			m.path = m.path[:len(m.path)-1]
		case *ast.InlineFragment:
			m.set(sel.SelectionSet)
		case *ast.FragmentSpread:
			if !m.fragments[sel.Name] { // told once, where it is spread first
				if m.fragments == nil {
					m.fragments = map[string]bool{}
				}
				m.fragments[sel.Name] = true
				m.set(sel.Definition.SelectionSet)
			}
		}
	}
}

// mentionMembers are the members of arguments that name something, and what.
var mentionMembers = map[string]string{
	"predicate": "predicate", "predicates": "predicate", "property": "predicate", "path": aPath, "p": aPath,
	"type": "class", "graph": "graph", "graphs": "graph", "g": "graph",
	"iri": "entity", "subject": "entity", "s": "entity", "o": "entity",
	"literal": aLiteral, "value": aValue,
}

// written looks at one member of the arguments as it is written in the document.
// A condition has the IRI or the literal in eq or in; other values are nobody's
// names.
func (m *mentions) written(name string, v *ast.Value) {
	switch v.Kind {
	case ast.Variable:
		m.member(name, m.variables[v.Raw])
	case ast.StringValue, ast.BlockValue:
		m.note(mentionMembers[name], v.Raw)
	case ast.ListValue:
		for _, child := range v.Children {
			m.written(name, child.Value)
		}
	case ast.ObjectValue:
		for _, child := range v.Children {
			if to := m.inside(name, child.Name); to != "" {
				m.written(to, child.Value)
			}
		}
	}
}

// inside tells under which name a member of a member is looked at, "" for not
// at all.
func (m *mentions) inside(name, member string) string {
	switch member {
	case "eq", "in":
		if name == "property" || name == "object" || name == "value" {
			return "literal"
		}
		return name
	case "ne", "nin":
		return ""
	}
	return member
}

// member is written for what came in a variable.
func (m *mentions) member(name string, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		m.note(mentionMembers[name], v)
	case []any:
		for _, e := range v {
			m.member(name, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if to := m.inside(name, k); to != "" {
				m.member(to, v[k])
			}
		}
	default: // a single value of a variable, which the library has made a list of its kind
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				m.member(name, list.Index(i).Interface())
			}
		}
	}
}

// note looks at what may be an IRI: no variable, and no text of several words.
func (m *mentions) note(what, text string) {
	if what == "" || text == "" || len(m.seen) >= maxMentions || text[0] == '?' {
		return
	}
	if what == aPath {
		m.steps(text)
		return
	}
	if strings.ContainsAny(text, "<|^*+ ") || !strings.Contains(text, ":") {
		return
	}
	if x := (mention{what, text}); !slices.Contains(m.seen, x) {
		m.seen = append(m.seen, x)
		m.look(x)
	}
}

// steps looks at the predicates of a path. That all of them occur is remembered
// of the path, which is not read again then.
func (m *mentions) steps(text string) {
	e, principal := m.run.engine, m.run.request.Principal.ID
	whole := mention{aPath, text}
	if e.occurring.has(principal, whole) {
		return
	}
	w, err := path.Parse(text, e.deps.Prefixes)
	if err != nil {
		return // told as an error
	}
	all := true
	for _, t := range w.Predicates() {
		m.note("predicate", t.Value())
		all = all && e.occurring.has(principal, mention{"predicate", t.Value()})
	}
	if all {
		e.occurring.add(principal, whole)
	}
}
