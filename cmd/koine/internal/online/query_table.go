package online

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"koine/cmd/koine/internal/cli"
)

// selection is a field selected by a GraphQL operation, or the operation itself.
type selection struct {
	key    string // the field's name in the answer
	field  string // the field's name in the schema; "" of an operation
	first  bool   // has the argument first
	after  bool   // has the argument after
	fields []*selection
}

// newSelection returns the selection of an operation, in the order of the answer. Fragments
// count whatever their type; fields excluded by @skip or @include do not.
func newSelection(text, operation string, variables map[string]any) (*selection, error) {
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return nil, err
	}
	chosen := document.Operations.ForName(operation)
	if chosen == nil {
		return nil, fmt.Errorf("there is no operation %q", operation)
	}
	values, err := variableValues(chosen, variables)
	if err != nil {
		return nil, err
	}
	r := selectionReader{fragments: document.Fragments, variables: values}
	root := new(selection)
	r.addFields(root, chosen.SelectionSet)
	return root, nil
}

// variableValues returns the values of an operation's variables, with defaults.
func variableValues(o *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	values := map[string]any{}
	for _, v := range o.VariableDefinitions {
		raw, ok := given[v.Variable].(json.RawMessage)
		if !ok {
			if v.DefaultValue != nil {
				value, err := v.DefaultValue.Value(nil)
				if err != nil {
					return nil, err
				}
				values[v.Variable] = value
			}
			continue
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		values[v.Variable] = value
	}
	return values, nil
}

type selectionReader struct {
	fragments ast.FragmentDefinitionList
	variables map[string]any
	within    []string // open fragments; a cyclic spread is ignored
}

// addFields adds the fields of a selection set to the selection, each key once.
func (r *selectionReader) addFields(to *selection, set ast.SelectionSet) {
	for _, one := range set {
		switch s := one.(type) {
		case *ast.Field:
			if !r.isSkipped(s.Directives) {
				into := to.childField(s)
				into.first, into.after = into.first || r.hasArgument(s, "first"), into.after || r.hasArgument(s, "after")
				r.addFields(into, s.SelectionSet)
			}
		case *ast.InlineFragment:
			if !r.isSkipped(s.Directives) {
				r.addFields(to, s.SelectionSet)
			}
		case *ast.FragmentSpread:
			f := r.fragments.ForName(s.Name)
			if f == nil || slices.Contains(r.within, s.Name) || r.isSkipped(s.Directives) {
				continue
			}
			r.within = append(r.within, s.Name)
			r.addFields(to, f.SelectionSet)
			r.within = r.within[:len(r.within)-1]
		}
	}
}

// hasArgument reports whether a field has an argument that is not null.
func (r *selectionReader) hasArgument(f *ast.Field, argument string) bool {
	a := f.Arguments.ForName(argument)
	if a == nil {
		return false
	}
	value, err := a.Value.Value(r.variables)
	return err == nil && value != nil
}

func (r *selectionReader) isSkipped(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		if a := d.Arguments.ForName("if"); a != nil {
			value, err := a.Value.Value(r.variables)
			if err == nil && value == (d.Name == "skip") {
				return true
			}
		}
	}
	return false
}

// childField returns the child for the field's key, creating it if needed.
func (s *selection) childField(f *ast.Field) *selection {
	key := f.Alias // the parser sets it for every field
	for _, c := range s.fields {
		if c.key == key {
			return c
		}
	}
	c := &selection{key: key, field: f.Name}
	s.fields = append(s.fields, c)
	return c
}

// isLeaf reports whether the field is a scalar, a list of scalars or JSON.
func (s *selection) isLeaf() bool { return len(s.fields) == 0 }

// isConnection reports whether the field is a connection with a selection of its elements.
func (s *selection) isConnection() bool {
	return slices.ContainsFunc(s.fields, (*selection).holdsElements)
}

// holdsElements reports whether the field is the list of a connection.
func (s *selection) holdsElements() bool { return s.field == "nodes" || s.field == "edges" }

// columnPaths returns the paths to the leaves, without edges and nodes.
func (s *selection) columnPaths(path string) (list []string) {
	if s.isLeaf() {
		return []string{path}
	}
	connection := s.isConnection()
	for _, c := range s.fields {
		at := c.key
		switch {
		case connection && c.holdsElements(), s.field == "edges" && c.field == "node":
			at = path
		case path != "":
			at = path + "." + c.key
		}
		list = append(list, c.columnPaths(at)...)
	}
	return list
}

// cellTexts returns the texts of the columns in a value. The values of a list are joined by
// commas.
func (s *selection) cellTexts(value json.RawMessage) []string {
	if s.isLeaf() {
		return []string{leafText(value)}
	}
	if elements := jsonElements(value); elements != nil {
		cells := make([]string, len(s.columnPaths("")))
		for i, e := range elements {
			for j, text := range s.cellTexts(e) {
				if i > 0 {
					cells[j] += ", "
				}
				cells[j] += text
			}
		}
		return cells
	}
	members := jsonMembers(value)
	var cells []string
	for _, c := range s.fields {
		cells = append(cells, c.cellTexts(members[c.key])...)
	}
	return cells
}

// dataTables turns the data of a GraphQL answer into tables. Their columns follow the
// selection and its order, even where the data has fewer fields:
//
//   - a list, or a connection with nodes or edges, is a table with a column for each
//     path to a leaf, such as object.iri;
//   - an object is a table of fields and values, and the lists within it are tables of
//     their own, titled by their path;
//   - within a row, a list is its values with commas between them.
func dataTables(data json.RawMessage, selected *selection) []cli.Table {
	var c collector
	c.addObject("", data, selected)
	tables := c.tables
	if len(c.fields.Rows) > 0 {
		c.fields.Columns = []string{"FIELD", "VALUE"}
		tables = append([]cli.Table{c.fields}, tables...)
	}
	if len(tables) == 1 {
		tables[0].Title = ""
	}
	return tables
}

// jsonMembers returns the members of a JSON object, nil for any other value. The JSON is
// valid: the client decoded it.
func jsonMembers(value json.RawMessage) (members map[string]json.RawMessage) {
	if len(value) > 0 && value[0] == '{' {
		_ = json.Unmarshal(value, &members)
	}
	return members
}

// jsonElements returns the elements of a JSON array, never nil; nil for any other value.
func jsonElements(value json.RawMessage) (elements []json.RawMessage) {
	if len(value) > 0 && value[0] == '[' {
		_ = json.Unmarshal(value, &elements)
	}
	return elements
}

// leafText returns a scalar as text, null as the empty text, a list joined by commas, and an
// object as JSON.
func leafText(value json.RawMessage) string {
	switch {
	case cli.IsNull(value):
		return ""
	case value[0] == '"':
		var text string
		_ = json.Unmarshal(value, &text)
		return text
	case value[0] == '[':
		var texts []string
		for _, e := range jsonElements(value) {
			texts = append(texts, leafText(e))
		}
		return strings.Join(texts, ", ")
	}
	var b bytes.Buffer
	_ = json.Compact(&b, value)
	return b.String()
}

// collector gathers the tables of an answer.
type collector struct {
	fields cli.Table // values outside lists
	tables []cli.Table
}

func (c *collector) addObject(path string, value json.RawMessage, selected *selection) {
	members := jsonMembers(value)
	for _, s := range selected.fields {
		at := s.key
		switch {
		case selected.isConnection() && s.holdsElements():
			at = path
		case path != "":
			at = path + "." + s.key
		}
		if value, there := members[s.key]; there { // absent if the fragment is on another type
			c.addMember(at, value, s)
		}
	}
}

func (c *collector) addMember(path string, value json.RawMessage, selected *selection) {
	switch elements := jsonElements(value); {
	case elements != nil:
		c.addList(path, elements, selected)
	case !selected.isLeaf() && !cli.IsNull(value):
		c.addObject(path, value, selected)
	default:
		c.fields.Rows = append(c.fields.Rows, []string{path, leafText(value)})
	}
}

func (c *collector) addList(path string, elements []json.RawMessage, selected *selection) {
	t := cli.Table{Title: path, Columns: []string{"value"}}
	if !selected.isLeaf() {
		t.Columns = selected.columnPaths("")
	}
	for _, e := range elements {
		t.Rows = append(t.Rows, selected.cellTexts(e))
	}
	c.tables = append(c.tables, t)
}

// errManyTables refuses CSV for an answer without a single table.
func errManyTables(n int) error {
	return cli.Usagef("the response has %d tables, but CSV can hold one: select one list, or use --json", n)
}
