package hint

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/query/path"
	"koine/kg"
)

// mentionChecker checks the names in the arguments of an operation. Nearly always
// all of them occur, so the check must be almost free.
type mentionChecker struct {
	variables map[string]any
	path      []string
	seen      []mention
	fragments map[string]bool

	ctx       context.Context // the operation's context
	finder    *Finder
	principal kg.Principal
	snapshot  *kg.Snapshot
	guesser   nameSuggester
	hints     []operation.Hint
}

// mention is a name in an operation: a predicate, class, graph, entity, path
// of predicates, or a literal compared with a value.
type mention struct{ kind, text string }

// Kinds of mentions that never appear in a message.
const (
	mentionPath    = "path"
	mentionLiteral = "literal"           // in a condition that also has `iri`
	mentionValue   = "value of a triple" // in a triple that could have `o` instead
)

// mentionArguments are the arguments that contain names. The arguments of
// shortestPaths are handled apart, because elsewhere the same names are
// moments.
var mentionArguments = []string{"predicate", "predicates", "path", "iri", "where", "orderBy", "by", "compute", "pattern", "view"}

func namingArgument(f *ast.Field, argument string) (member string, ok bool) {
	if f.Name == "shortestPaths" && (argument == "from" || argument == "to") {
		return "iri", true
	}
	return argument, slices.Contains(mentionArguments, argument)
}

func (m *mentionChecker) checkSet(set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			m.path = append(m.path, sel.Alias)
			for _, a := range sel.Arguments {
				if member, ok := namingArgument(sel, a.Name); ok {
					m.checkLiteral(member, a.Value)
				}
			}
			m.checkSet(sel.SelectionSet)
			m.path = m.path[:len(m.path)-1]
		case *ast.InlineFragment:
			m.checkSet(sel.SelectionSet)
		case *ast.FragmentSpread:
			if !m.fragments[sel.Name] { // report once, at the first spread
				if m.fragments == nil {
					m.fragments = map[string]bool{}
				}
				m.fragments[sel.Name] = true
				m.checkSet(sel.Definition.SelectionSet)
			}
		}
	}
}

// mentionMembers maps the members of arguments that contain names to the kind
// of the name.
var mentionMembers = map[string]string{
	"predicate": "predicate", "predicates": "predicate", "property": "predicate", "path": mentionPath, "p": mentionPath,
	"type": "class", "graph": "graph", "graphs": "graph", "g": "graph",
	"iri": "entity", "subject": "entity", "s": "entity", "o": "entity",
	"literal": mentionLiteral, "value": mentionValue,
}

// checkLiteral checks one member of the arguments as written in the document. In a
// condition the IRI or literal is in eq or in. Other operators contain no
// names.
func (m *mentionChecker) checkLiteral(name string, v *ast.Value) {
	switch v.Kind {
	case ast.Variable:
		m.checkValue(name, m.variables[v.Raw])
	case ast.StringValue, ast.BlockValue:
		m.noteName(mentionMembers[name], v.Raw)
	case ast.ListValue:
		for _, child := range v.Children {
			m.checkLiteral(name, child.Value)
		}
	case ast.ObjectValue:
		for _, child := range v.Children {
			if to := m.nestedName(name, child.Name); to != "" {
				m.checkLiteral(to, child.Value)
			}
		}
	}
}

// nestedName returns the name under which a nested member is checked, "" to skip
// it.
func (m *mentionChecker) nestedName(name, member string) string {
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

// checkValue is written for a value passed in a variable.
func (m *mentionChecker) checkValue(name string, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		m.noteName(mentionMembers[name], v)
	case []any:
		for _, e := range v {
			m.checkValue(name, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if to := m.nestedName(name, k); to != "" {
				m.checkValue(to, v[k])
			}
		}
	default: // a single value, which the library has converted to a list
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				m.checkValue(name, list.Index(i).Interface())
			}
		}
	}
}

// noteName checks a text that may be an IRI: not a variable, and not several
// words.
func (m *mentionChecker) noteName(what, text string) {
	if what == "" || text == "" || len(m.seen) >= maxMentions || text[0] == '?' {
		return
	}
	if what == mentionPath {
		m.checkPath(text)
		return
	}
	if strings.ContainsAny(text, "<|^*+ ") || !strings.Contains(text, ":") {
		return
	}
	if x := (mention{what, text}); !slices.Contains(m.seen, x) {
		m.seen = append(m.seen, x)
		m.lookUp(x)
	}
}

// checkPath checks the predicates of a path. If all of them occur, the result is
// cached for the whole path, which is not parsed again.
func (m *mentionChecker) checkPath(text string) {
	known, principal := &m.finder.occurrences, m.principal.ID
	whole := mention{mentionPath, text}
	if known.has(principal, whole) {
		return
	}
	w, err := path.Parse(text, m.finder.prefixes)
	if err != nil {
		return // reported as an error elsewhere
	}
	all := true
	for _, t := range w.Predicates() {
		m.noteName("predicate", t.Value())
		all = all && known.has(principal, mention{"predicate", t.Value()})
	}
	if all {
		known.add(principal, whole)
	}
}
