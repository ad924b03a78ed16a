package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"koine/graph/limit"
)

// A list gives the same elements in pages of every size, forward and backward, whose
// cursors are those of their edges, and counts them. What follows an element is the
// same from its edge's cursor.
func TestListsGiveTheSameElementsInPages(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	scope := c.id("ann", `mutation { createScope(input: {title: "whole"}) { scope { id } } }`)
	for i := range 4 {
		c.told("ann", `mutation { createScope(input: {title: "part %d", parentId: "%s"}) { scope { id } } }`, i, scope)
	}
	id := c.lab("PUBLIC")
	for _, agent := range []string{"cy", "dee", "eve"} {
		c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "%s", role: %s}) { channel { id } } }`, id, agent, map[string]string{"cy": "OBSERVER", "dee": "MEMBER", "eve": "MEMBER"}[agent])
	}
	for i := range 6 {
		c.lab("PUBLIC")
		c.say([]string{"ann", "bob"}[i%2], id, fmt.Sprint("message ", i), fmt.Sprintf(`, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p%d"}, object: {value: %d}}}]`, i, i))
	}
	c.say("ann", id, "classes", `, patches: [{op: add, statement: {subject: {id: "ex:c", type: "ex:C"}, predicate: {id: "ex:p"}, object: {value: 1}}}, {op: add, statement: {subject: {id: "ex:d", type: "ex:D"}, predicate: {id: "ex:p"}, object: {value: 1}}}]`)
	root := c.say("ann", id, "root", "")
	for i := range 3 {
		c.say("bob", id, fmt.Sprint("reply ", i), fmt.Sprintf(`, replyToId: "%s"`, root))
	}
	many := c.say("ann", id, "facts", `, patches: [{op: add, statement: {subject: {id: "ex:f"}, predicate: {id: "ex:p"}, object: {value: 1}}}, {op: add, statement: {subject: {id: "ex:f"}, predicate: {id: "ex:p"}, object: {value: 2}}}, {op: add, statement: {subject: {id: "ex:f"}, predicate: {id: "ex:p"}, object: {value: 3}}}]`)
	for i := range 2 { // which cy and eve may not read
		c.say("ann", id, fmt.Sprint("to bob ", i), fmt.Sprintf(`, recipient: "bob", patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:whispered"}, object: {value: %d}}}]`, i))
	}
	c.id("ann", `mutation { createChannel(input: {name: "hidden", visibility: PRIVATE, members: [{agentId: "bob"}]}) { channel { id } } }`)
	task, _ := c.asks("count", "")
	for i := range 3 {
		c.told("ann", `mutation { sendMessage(input: {taskId: "%s", parts: [{text: "more %d"}]}) { replayed } }`, task, i)
		c.asks(fmt.Sprint("task ", i), "")
	}
	of := func(field, list, args, node string) func(string) string {
		return func(page string) string {
			return fmt.Sprintf(`{ c: %s { l: %s(%s %s) { edges { cursor node { k: %s } } nodes { k: %s } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } totalCount } } }`, field, list, args, page, node, node)
		}
	}
	root1 := func(list, args, node string) func(string) string {
		return func(page string) string {
			return fmt.Sprintf(`{ l: %s(%s %s) { edges { cursor node { k: %s } } nodes { k: %s } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } totalCount } }`, list, args, page, node, node)
		}
	}
	channel, message := `channel(id: "`+id+`")`, func(id string) string { return `message(id: "` + id + `")` }
	for _, list := range []struct {
		name     string
		query    func(page string) string
		backward bool
	}{
		{"entities", root1("entities", "", "iri"), true},
		{"entities by condition", root1("entities", `where: {property: {predicate: "ex:p1", exists: true}}`, "iri"), true},
		{"entities by an order", root1("entities", `orderBy: [{by: OUT_DEGREE, direction: DESC}]`, "iri"), true},
		{"statements", root1("statements", "", "id"), true},
		{"statements by condition", root1("statements", "where: {object: {gte: 2}}", "id"), true},
		{"statements by an order", root1("statements", "orderBy: [{by: OBJECT, direction: DESC}]", "id"), true},
		{"of an entity", of(`entity(iri: "ex:s")`, "out", "", "id"), true},
		{"follow", of(`entity(iri: "ex:s")`, "follow", `path: "^<https://example.org/x>|<https://example.org/y>"`, "iri"), false},
		{"history", of(`entity(iri: "ex:s")`, "history", "", "changeId"), false},
		{"changes", root1("changes", "", "changeId"), false},
		{"diff", root1("diff", "from: 0", "statement { id }"), false},
		{"match", root1("match", `pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}`, "values"), false},
		{"channels", root1("channels", "", "id"), true},
		{"scopes", root1("scopes", "", "id"), true},
		{"scope.tasks", of(`scope(id: "`+scope+`")`, "tasks", "", "id"), true},
		{"members", of(channel, "members", "", "role"), true},
		{"messages", of(channel, "messages", "", "id"), true},
		{"messages, the newest first", of(channel, "messages", "order: DESC", "id"), true},
		{"messages by a filter", of(channel, "messages", `order: DESC, where: {forMe: true}`, "id"), true},
		{"replies", of(message(root), "replies", "", "id"), false},
		{"facts", of(message(many), "facts", "", "id"), false},
		{"receipts", of(message(root), "receipts", "", "status"), true},
		{"inbox", root1("inbox", "", "id"), false},
		{"tasks", root1("tasks", "", "id"), false},
		{"task.messages", of(`task(id: "`+task+`")`, "messages", "", "text"), true},
		{"classes", of("vocabulary", "classes", "", "iri"), true},
		{"predicates", of("vocabulary", "predicates", "", "iri"), true},
		{"vocabulary.graphs", of("vocabulary", "graphs", "", "count"), true},
	} {
		for _, who := range []string{"bob", "cy"} {
			w := &listWalk{conversing: c, query: list.query, who: who}
			if all := w.page(t, "first: 100"); all != nil && (all.TotalCount == nil || *all.TotalCount != len(all.Nodes)) {
				t.Errorf("%s, for %s: totalCount is %v of %d", list.name, who, *all.TotalCount, len(all.Nodes))
			}
		}
		t.Run(list.name, func(t *testing.T) {
			w := &listWalk{conversing: c, query: list.query, who: "ann"}
			all := w.page(t, "first: 100")
			if all.TotalCount == nil || *all.TotalCount != len(all.Nodes) {
				t.Errorf("totalCount is %v of %d", all.TotalCount, len(all.Nodes))
			}
			if len(all.Nodes) < 2 && list.name != "follow" && list.name != "vocabulary.graphs" && list.name != "entities by condition" {
				t.Fatalf("the list has only %d elements", len(all.Nodes))
			}
			for size := 1; size <= min(len(all.Nodes)+1, 6); size++ {
				w.walk(t, all, size, false)
				if list.backward {
					w.walk(t, all, size, true)
				}
			}
			for i, e := range all.Edges {
				rest := w.page(t, fmt.Sprintf("first: 100, after: %q", e.Cursor))
				if got, want := rest.keys(), all.keys()[i+1:]; !slices.Equal(got, want) {
					t.Errorf("behind element %d: got %q, want %q", i, got, want)
				}
				if !list.backward {
					continue
				}
				rest = w.page(t, fmt.Sprintf("last: 100, before: %q", e.Cursor))
				if got, want := rest.keys(), all.keys()[:i]; !slices.Equal(got, want) {
					t.Errorf("before element %d: got %q, want %q", i, got, want)
				}
			}
			if list.backward {
				w.refuse(t, `first: 1, last: 1`, "INVALID last")
				w.refuse(t, `last: 1, after: "x"`, "INVALID after")
				w.refuse(t, `before: "x"`, "INVALID before")
				w.refuse(t, `last: 1, before: "x"`, "CURSOR_FOREIGN before")
				w.refuse(t, `last: 1001`, "LIMIT_EXCEEDED")
			}
		})
	}
}

// listWalk reads one list.
type listWalk struct {
	*conversing
	query func(page string) string
	who   string
}

type listedPage struct {
	Edges []struct {
		Cursor string
		Node   struct{ K any }
	}
	Nodes    []struct{ K any }
	PageInfo struct {
		StartCursor, EndCursor       *string
		HasNextPage, HasPreviousPage bool
	}
	TotalCount *int
}

func (p *listedPage) keys() []string {
	out := []string{}
	for _, n := range p.Nodes {
		out = append(out, fmt.Sprint(n.K))
	}
	return out
}

func (w *listWalk) page(t *testing.T, args string) (p *listedPage) {
	t.Helper()
	var data struct {
		L *listedPage
		C struct{ L *listedPage }
	}
	result := w.ask(w.who, "%s", w.query(args))
	if len(result.Errors) > 0 && w.who != "ann" {
		return nil // of an object that others may not see
	}
	if len(result.Errors) > 0 {
		t.Fatalf("%s: %v", args, result.Errors)
	}
	text := string(result.Data)
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err, text)
	}
	if p = data.L; p == nil {
		p = data.C.L
	}
	if p == nil && w.who != "ann" {
		return nil
	}
	if p == nil || len(p.Edges) != len(p.Nodes) {
		t.Fatalf("%s: %s", args, text)
	}
	for i, e := range p.Edges {
		if fmt.Sprint(e.Node.K) != fmt.Sprint(p.Nodes[i].K) {
			t.Errorf("edge %d is %v, node %v", i, e.Node.K, p.Nodes[i].K)
		}
	}
	return p
}

// walk reads the list in pages and compares them with the whole.
func (w *listWalk) walk(t *testing.T, all *listedPage, size int, backward bool) {
	t.Helper()
	var got []string
	args := fmt.Sprint("first: ", size)
	if backward {
		args = fmt.Sprint("last: ", size)
	}
	for n, from := 0, ""; n <= len(all.Nodes)+1; n++ {
		p := w.page(t, args+from)
		begun, more, end := p.PageInfo.HasPreviousPage, p.PageInfo.HasNextPage, p.PageInfo.EndCursor
		if backward {
			begun, more, end = more, begun, p.PageInfo.StartCursor
			got = append(p.keys(), got...)
		} else {
			got = append(got, p.keys()...)
		}
		if begun != (n > 0) || len(p.Nodes) > size || *p.TotalCount != len(all.Nodes) {
			t.Errorf("%s, page %d: begun %v, %d of %d elements", args, n, begun, len(p.Nodes), *p.TotalCount)
		}
		if !more {
			break
		}
		if from = fmt.Sprintf(", after: %q", *end); backward {
			from = fmt.Sprintf(", before: %q", *end)
		}
	}
	if !slices.Equal(got, all.keys()) {
		t.Errorf("%s: got %q\nwant %q", args, got, all.keys())
	}
}

func (w *listWalk) refuse(t *testing.T, args, want string) {
	t.Helper()
	if got := w.refused("ann", "%s", w.query(args)); got != want {
		t.Errorf("%s: got %s, want %s", args, got, want)
	}
}

// An empty page has the cursor at its end, where more may come, and none at its start.
func TestEmptyPage(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	got := c.told("ann", `{ inbox { nodes { id } pageInfo { startCursor endCursor hasNextPage } } }`)
	var data struct {
		Inbox struct {
			Nodes    []json.RawMessage
			PageInfo struct{ StartCursor, EndCursor *string }
		}
	}
	if err := json.Unmarshal([]byte(got), &data); err != nil {
		t.Fatal(err)
	}
	if in := data.Inbox; len(in.Nodes) > 0 || in.PageInfo.StartCursor != nil || in.PageInfo.EndCursor == nil {
		t.Errorf("got %s", got)
	}
}
