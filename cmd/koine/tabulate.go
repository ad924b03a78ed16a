package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// tabulate turns the data of a GraphQL answer into tables, in the order of the
// selection:
//
//   - a list, or a connection with nodes or edges, is a table with a column for each
//     path to a leaf, such as object.iri;
//   - an object is a table of fields and values, and the lists within it are tables of
//     their own, titled by their path;
//   - within a row, a list is its values with commas between them.
func tabulate(data json.RawMessage) ([]table, error) {
	root, err := parseOrdered(data)
	if err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	var c collector
	c.object("", root)
	tables := c.tables
	if len(c.fields.rows) > 0 {
		c.fields.columns = []string{"FIELD", "VALUE"}
		tables = append([]table{c.fields}, tables...)
	}
	if len(tables) == 1 {
		tables[0].title = ""
	}
	return tables, nil
}

// ordered is a JSON value whose members keep their order: null, text for a scalar,
// members or elements.
type ordered struct {
	kind     byte // 'n'ull, 's'calar, 'o'bject, 'l'ist
	text     string
	members  []orderedMember
	elements []ordered
}

type orderedMember struct {
	name  string
	value ordered
}

func parseOrdered(raw json.RawMessage) (ordered, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return decodeOrdered(d)
}

func decodeOrdered(d *json.Decoder) (v ordered, err error) {
	token, err := d.Token()
	if err != nil {
		return v, err
	}
	switch token {
	case nil:
		return ordered{kind: 'n'}, nil
	case json.Delim('{'):
		v.kind = 'o'
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return v, err
			}
			value, err := decodeOrdered(d)
			if err != nil {
				return v, err
			}
			v.members = append(v.members, orderedMember{fmt.Sprint(name), value})
		}
	case json.Delim('['):
		v.kind = 'l'
		for d.More() {
			element, err := decodeOrdered(d)
			if err != nil {
				return v, err
			}
			v.elements = append(v.elements, element)
		}
	default:
		return ordered{kind: 's', text: fmt.Sprint(token)}, nil
	}
	_, err = d.Token() // the closing delimiter
	return v, err
}

// listed are the elements of a list or of a connection.
func (v *ordered) listed() (elements []ordered, ok bool) {
	if v.kind == 'l' {
		return v.elements, true
	}
	for _, m := range v.members {
		if m.value.kind != 'l' {
			continue
		}
		switch m.name {
		case "nodes":
			return m.value.elements, true
		case "edges":
			for _, edge := range m.value.elements {
				elements = append(elements, edge.node())
			}
			return elements, true
		}
	}
	return nil, false
}

// node is that of an edge without its cursor, or the value itself.
func (v *ordered) node() ordered {
	for _, m := range v.members {
		if m.name == "node" {
			return m.value
		}
	}
	return *v
}

// collector gathers the tables of an answer.
type collector struct {
	fields table // of what is in no list
	tables []table
}

func (c *collector) object(path string, v ordered) {
	for _, m := range v.members {
		at := m.name
		if path != "" {
			at = path + "." + m.name
		}
		switch elements, isList := m.value.listed(); {
		case isList:
			c.list(at, elements)
			if m.value.kind == 'o' {
				c.object(at, m.value.without("nodes", "edges"))
			}
		case m.value.kind == 'o':
			c.object(at, m.value)
		default:
			c.fields.rows = append(c.fields.rows, []string{at, m.value.text})
		}
	}
}

func (v *ordered) without(names ...string) (rest ordered) {
	rest.kind = v.kind
next:
	for _, m := range v.members {
		for _, name := range names {
			if m.name == name {
				continue next
			}
		}
		rest.members = append(rest.members, m)
	}
	return rest
}

// list makes a table whose columns are the paths to the leaves of all elements.
func (c *collector) list(path string, elements []ordered) {
	t := table{title: path}
	at := map[string]int{}
	for _, e := range elements {
		var row []string
		e.leaves("", func(column, text string) {
			if column == "" {
				column = "value"
			}
			i, known := at[column]
			if !known {
				i = len(t.columns)
				at[column] = i
				t.columns = append(t.columns, column)
			}
			for len(row) <= i {
				row = append(row, "")
			}
			row[i] = text
		})
		t.rows = append(t.rows, row)
	}
	for i, row := range t.rows { // columns that came later
		t.rows[i] = append(row, make([]string, len(t.columns)-len(row))...)
	}
	c.tables = append(c.tables, t)
}

// leaves calls leaf with each leaf of a row and the path to it.
func (v *ordered) leaves(path string, leaf func(path, text string)) {
	if elements, ok := v.listed(); ok {
		texts := make([]string, len(elements))
		for i := range elements {
			texts[i] = elements[i].inline()
		}
		leaf(path, strings.Join(texts, ", "))
		return
	}
	if v.kind != 'o' {
		leaf(path, v.text)
		return
	}
	for _, m := range v.members {
		at := m.name
		if path != "" {
			at = path + "." + m.name
		}
		m.value.leaves(at, leaf)
	}
}

// inline is a value within a cell: its leaves with spaces between them.
func (v *ordered) inline() string {
	var texts []string
	v.leaves("", func(_, text string) {
		if text != "" {
			texts = append(texts, text)
		}
	})
	return strings.Join(texts, " ")
}

// errManyTables refuses CSV for an answer that has no single table.
func errManyTables(n int) error {
	return usageError{fmt.Errorf("the answer has %d tables, and CSV has one: select one list, or use --json", n)}
}
