package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// dataTables turns the data of a GraphQL answer into tables. Their columns follow the
// selection and its order, even where the data has fewer fields:
//
//   - a list, or a connection with nodes or edges, is a table with a column for each
//     path to a leaf, such as object.iri;
//   - an object is a table of fields and values, and the lists within it are tables of
//     their own, titled by their path;
//   - within a row, a list is its values with commas between them.
func dataTables(data json.RawMessage, selected *selection) []table {
	var c collector
	c.addObject("", data, selected)
	tables := c.tables
	if len(c.fields.rows) > 0 {
		c.fields.columns = []string{"FIELD", "VALUE"}
		tables = append([]table{c.fields}, tables...)
	}
	if len(tables) == 1 {
		tables[0].title = ""
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
	case isNull(value):
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
	fields table // values outside lists
	tables []table
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
	case !selected.isLeaf() && !isNull(value):
		c.addObject(path, value, selected)
	default:
		c.fields.rows = append(c.fields.rows, []string{path, leafText(value)})
	}
}

func (c *collector) addList(path string, elements []json.RawMessage, selected *selection) {
	t := table{title: path, columns: []string{"value"}}
	if !selected.isLeaf() {
		t.columns = selected.columnPaths("")
	}
	for _, e := range elements {
		t.rows = append(t.rows, selected.cellTexts(e))
	}
	c.tables = append(c.tables, t)
}

// errManyTables refuses CSV for an answer without a single table.
func errManyTables(n int) error {
	return usageError{fmt.Errorf("the response has %d tables, but CSV can hold one: select one list, or use --json", n)}
}
