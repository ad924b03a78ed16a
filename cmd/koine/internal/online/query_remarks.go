package online

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/graph/limit"
)

// maxCutsShown bounds the cut lists that are reported one by one.
const maxCutsShown = 10

// printRemarks reports the server's remarks on an answer to standard error: lists cut by a
// budget, and unknown names in the query.
func printRemarks(t cli.Terminal, m *client.QueryMetadata) {
	for _, cut := range m.Truncated[:min(len(m.Truncated), maxCutsShown)] {
		more := ""
		if cut.Cursor != "" {
			more = fmt.Sprintf("; continue with after: %q", cut.Cursor)
		}
		t.Notef("truncated: %s, limited by the budget's %s%s", fieldPath(cut.Path), strings.ToLower(cut.Reason), more)
	}
	if more := len(m.Truncated) - maxCutsShown; more > 0 {
		t.Notef("truncated: %d more lists", more)
	}
	for _, hint := range m.Hints {
		meant := ""
		if len(hint.Nearest) > 0 {
			meant = "; did you mean " + strings.Join(hint.Nearest, " or ") + "?"
		}
		t.Notef("hint: %s: %s%s", fieldPath(hint.Path), hint.Message, meant)
	}
}

// fieldPath is the path to a field of an answer: names and list indexes.
type fieldPath []any

func (p fieldPath) String() string {
	parts := make([]string, len(p))
	for i, part := range p {
		parts[i] = fmt.Sprint(part)
	}
	return strings.Join(parts, ".")
}

// joinNames returns the path without list indexes and without edges and nodes.
func (p fieldPath) joinNames() string {
	var parts []string
	for _, part := range p {
		if name, ok := part.(string); ok && name != "nodes" && name != "edges" && name != "node" {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, ".")
}

// shortList is a list of which the answer may not show all elements.
type shortList struct {
	path   string
	shown  int
	total  uint64 // 0 if unknown
	known  bool   // more is certain; otherwise the list has the length of a page
	more   bool   // the list continues
	cursor string // end cursor, if selected
}

// shortLists returns the lists of an answer that continue: by pageInfo or totalCount, or
// because a list without the argument first has the length of a page. Each path occurs once.
func shortLists(data json.RawMessage, selected *selection) []shortList {
	f := shortFinder{seen: map[string]bool{}}
	f.findIn("", data, selected)
	return f.lists
}

type shortFinder struct {
	lists []shortList
	seen  map[string]bool
}

func (f *shortFinder) findIn(path string, value json.RawMessage, selected *selection) {
	if cli.IsNull(value) || selected.isLeaf() {
		return
	}
	if elements := jsonElements(value); elements != nil {
		if !selected.holdsElements() {
			f.addIfShort(shortList{path: path, shown: len(elements)}, selected)
		}
		for _, e := range elements {
			f.findIn(path, e, selected)
		}
		return
	}
	members := jsonMembers(value)
	if selected.isConnection() {
		f.addIfShort(connectionList(path, members, selected), selected)
	}
	for _, s := range selected.fields {
		at := s.key
		switch {
		case s.holdsElements(), selected.field == "edges":
			at = path
		case path != "":
			at = path + "." + s.key
		}
		f.findIn(at, members[s.key], s)
	}
}

// connectionList returns the list of a connection with its page information.
func connectionList(path string, members map[string]json.RawMessage, selected *selection) shortList {
	l := shortList{path: path}
	for _, s := range selected.fields {
		switch value := members[s.key]; s.field {
		case "nodes", "edges":
			l.shown = len(jsonElements(value))
		case "totalCount":
			l.total, _ = strconv.ParseUint(string(value), 10, 64)
		case "pageInfo":
			info := jsonMembers(value)
			for _, i := range s.fields {
				switch i.field {
				case "hasNextPage":
					l.known, l.more = true, string(info[i.key]) == "true"
				case "endCursor":
					l.cursor = leafText(info[i.key])
				}
			}
		}
	}
	if !l.known && l.total > 0 && !selected.after {
		l.known, l.more = true, l.total > uint64(l.shown)
	}
	return l
}

// addIfShort adds a list that continues, or may continue.
func (f *shortFinder) addIfShort(l shortList, selected *selection) {
	isPage := !selected.first && (l.shown == limit.DefaultPageSize || l.shown == limit.DefaultListSize)
	if (l.more || !l.known && isPage) && !f.seen[l.path] {
		f.seen[l.path] = true
		f.lists = append(f.lists, l)
	}
}

func (l *shortList) String() string {
	text := fmt.Sprintf("%s: %d shown", l.path, l.shown)
	switch {
	case l.more && l.total > uint64(l.shown):
		text = fmt.Sprintf("%s: %d of %s shown", l.path, l.shown, cli.FormatCount(l.total))
	case l.more:
		text += ", and more exist"
	default:
		text += ", and more may exist"
	}
	text += "; request more with first: N"
	if l.more && l.cursor != "" {
		text += fmt.Sprintf(", or continue with after: %q", l.cursor)
	}
	return text
}

// printShortLists reports the lists that continue. Lists cut by a budget are left to
// printRemarks.
func printShortLists(t cli.Terminal, lists []shortList, meta *client.QueryMetadata) {
	lists = slices.DeleteFunc(lists, func(l shortList) bool {
		return slices.ContainsFunc(meta.Truncated, func(cut client.Truncation) bool { return fieldPath(cut.Path).joinNames() == l.path })
	})
	for i := range lists[:min(len(lists), maxCutsShown)] {
		t.Notef("%s", &lists[i])
	}
	if more := len(lists) - maxCutsShown; more > 0 {
		t.Notef("%d more lists continue", more)
	}
}
