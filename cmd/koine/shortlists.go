package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"koine/client"
	"koine/graph"
)

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
	if isNull(value) || selected.isLeaf() {
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
	isPage := !selected.first && (l.shown == graph.DefaultPageSize || l.shown == graph.DefaultVocabularySize)
	if (l.more || !l.known && isPage) && !f.seen[l.path] {
		f.seen[l.path] = true
		f.lists = append(f.lists, l)
	}
}

func (l *shortList) String() string {
	text := fmt.Sprintf("%s: %d shown", l.path, l.shown)
	switch {
	case l.more && l.total > uint64(l.shown):
		text = fmt.Sprintf("%s: %d of %s shown", l.path, l.shown, countText(l.total))
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
func printShortLists(t terminal, lists []shortList, meta *client.QueryMetadata) {
	lists = slices.DeleteFunc(lists, func(l shortList) bool {
		return slices.ContainsFunc(meta.Truncated, func(cut client.Truncation) bool { return fieldPath(cut.Path).joinNames() == l.path })
	})
	for i := range lists[:min(len(lists), maxCutsShown)] {
		t.sayf("%s", &lists[i])
	}
	if more := len(lists) - maxCutsShown; more > 0 {
		t.sayf("%d more lists continue", more)
	}
}
