package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"koine/internal/compact"
	"koine/kg"
)

// The bounds of the lists in one answer.
const (
	MaxListed     = 100
	defaultListed = 10
	// MaxParts bounds the parts of one item: the sources of a fact, the changes of a proposal.
	MaxParts = 50
	// MaxTextBytes bounds the text of a message in a list. The tool query reads all of it.
	MaxTextBytes = 8 << 10
)

// cutText shortens a text to MaxTextBytes, between two characters, and reports whether it did.
func cutText(text string) (string, bool) {
	if len(text) <= MaxTextBytes {
		return text, false
	}
	end := MaxTextBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], true
}

// cutParts returns at most MaxParts elements of a list, and how many it leaves out.
func cutParts[T any](list []T) (kept []T, left int) {
	if len(list) <= MaxParts {
		return list, 0
	}
	return list[:MaxParts], len(list) - MaxParts
}

// pageArgs are the arguments of lists.
type pageArgs struct {
	Limit int    `json:"limit,omitempty" jsonschema:"how many, 1 to 100; 10 if absent"`
	After string `json:"after,omitempty" jsonschema:"next of the answer before, to go on"`
}

// pageVariables returns the variables first and after, and those given by name and value. Empty
// values are absent.
func (a pageArgs) pageVariables(more ...any) (map[string]any, error) {
	if a.Limit == 0 {
		a.Limit = defaultListed
	}
	if a.Limit < 1 || a.Limit > MaxListed {
		return nil, fmt.Errorf("limit is %d; it must be from 1 to %d", a.Limit, MaxListed)
	}
	v := map[string]any{"first": a.Limit}
	for i, more := 0, append(more, "after", a.After); i < len(more); i += 2 {
		if more[i+1] != "" {
			v[more[i].(string)] = more[i+1]
		}
	}
	return v, nil
}

// connection is a paged list of GraphQL.
type connection[T any] struct {
	Nodes    []T
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

// pageInfo selects the PageInfo of a connection.
const pageInfo = ` pageInfo { hasNextPage endCursor }`

// list is the structured answer of tools that list.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" jsonschema:"there are more: pass it as after"`
}

// listOf returns the answer for a page, a text of each item and the rest as its last line.
func listOf[T any](c connection[T], none string, line func(*T) string) (string, list[T], error) {
	l := list[T]{Items: c.Nodes}
	var b strings.Builder
	for i := range l.Items {
		b.WriteString(strings.TrimSuffix(line(&l.Items[i]), "\n") + "\n")
	}
	if len(l.Items) == 0 {
		l.Items = []T{}
		b.WriteString(none)
	}
	if c.PageInfo.HasNextPage {
		l.Next = c.PageInfo.EndCursor
		fmt.Fprintf(&b, "# more: call again with after %q\n", l.Next)
	}
	return b.String(), l, nil
}

// runRead runs a query, decodes its data, and returns the registered prefixes.
func (t tools) runRead(ctx context.Context, query string, variables map[string]any, into any) (*kg.Prefixes, error) {
	var data json.RawMessage
	query = query[:strings.LastIndexByte(query, '}')] + ` names: vocabulary { prefixes { name namespace } } }`
	if err := t.GraphQL(ctx, query, variables, &data); err != nil {
		return nil, err
	}
	var named struct {
		Names struct {
			Prefixes []struct{ Name, Namespace string }
		}
	}
	for _, to := range []any{&named, into} {
		if err := json.Unmarshal(data, to); err != nil {
			return nil, fmt.Errorf("answer is not readable: %w", err)
		}
	}
	more := map[string]string{}
	for _, p := range named.Names.Prefixes {
		more[p.Name] = p.Namespace
	}
	return kg.NewPrefixes(more)
}

// readPrefixes returns the registered prefixes of the server.
func (t tools) readPrefixes(ctx context.Context) (*kg.Prefixes, error) {
	return t.runRead(ctx, `{ __typename }`, nil, &struct{}{})
}

type recallArgs struct {
	Topic     string `json:"topic" jsonschema:"a few words, or a name such as lab:run-7"`
	MaxTokens int    `json:"maxTokens,omitempty" jsonschema:"bound of the answer in tokens, 50 to 50000; 1000 if absent"`
}

type recallAnswer struct {
	Text     string `json:"text" jsonschema:"lines of facts"`
	Facts    int    `json:"facts" jsonschema:"how many facts are in the text"`
	Left     int    `json:"left" jsonschema:"how many were found beyond"`
	Revision int64  `json:"revision" jsonschema:"of the graph"`
}

func (t tools) recallTopic(ctx context.Context, a recallArgs) (string, recallAnswer, error) {
	variables := map[string]any{"topic": a.Topic}
	if a.MaxTokens != 0 {
		variables["most"] = a.MaxTokens
	}
	var answer struct{ Recall recallAnswer }
	if err := t.GraphQL(ctx, `query($topic: String!, $most: Int) { recall(topic: $topic, maxTokens: $most) { text facts left revision } }`, variables, &answer); err != nil {
		return "", answer.Recall, err
	}
	if answer.Recall.Text == "" {
		return fmt.Sprintf("Nothing is known about %q. Other words may find more.", a.Topic), answer.Recall, nil
	}
	return answer.Recall.Text, answer.Recall, nil
}

type searchArgs struct {
	Query string `json:"query" jsonschema:"words, \"a phrase\", begin*, -unwanted"`
	pageArgs
}

type hit struct {
	Name  string `json:"name"`
	Label string `json:"label,omitempty"`
	Text  string `json:"text,omitempty" jsonschema:"the text that was found"`
}

func (t tools) searchWords(ctx context.Context, a searchArgs) (string, list[hit], error) {
	variables, err := a.pageVariables("query", a.Query)
	if err != nil {
		return "", list[hit]{}, err
	}
	var answer struct {
		Search connection[struct {
			Entity  struct{ IRI, Label string }
			Matches []struct{ Text string }
		}]
	}
	const query = `query($query: String!, $first: Int, $after: Cursor) { search(query: $query, first: $first, after: $after) { nodes { entity { iri label } matches { text } }` + pageInfo + ` } }`
	prefixes, err := t.runRead(ctx, query, variables, &answer)
	if err != nil {
		return "", list[hit]{}, err
	}
	hits := connection[hit]{PageInfo: answer.Search.PageInfo}
	for _, n := range answer.Search.Nodes {
		h := hit{Name: prefixes.Shorten(n.Entity.IRI), Label: n.Entity.Label}
		if len(n.Matches) > 0 && n.Matches[0].Text != h.Label {
			h.Text = n.Matches[0].Text
		}
		hits.Nodes = append(hits.Nodes, h)
	}
	return listOf(hits, fmt.Sprintf("Nothing has words of %q. Try fewer or other words.", a.Query), func(h *hit) string {
		line := h.Name
		if h.Label != "" {
			line += " (" + h.Label + ")"
		}
		if h.Text != "" {
			line += ": " + h.Text
		}
		return line
	})
}

type queryArgs struct {
	Query     string         `json:"query" jsonschema:"a GraphQL query"`
	Variables map[string]any `json:"variables,omitempty" jsonschema:"its variables"`
}

type queryAnswer struct {
	Data  map[string]any `json:"data"`
	Hints []string       `json:"hints,omitempty" jsonschema:"names of the query that do not occur, with the nearest"`
}

func (t tools) runQuery(ctx context.Context, a queryArgs) (string, queryAnswer, error) {
	if document, err := parser.ParseQuery(&ast.Source{Input: a.Query}); err == nil {
		for _, o := range document.Operations {
			if o.Operation != ast.Query {
				return "", queryAnswer{}, fmt.Errorf("the tool only reads, and the document has a %s", o.Operation)
			}
		}
	}
	var data json.RawMessage
	hints, err := t.Hinted(ctx, a.Query, a.Variables, &data)
	if err != nil {
		return "", queryAnswer{}, err
	}
	answer := queryAnswer{Hints: hints}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	err = d.Decode(&answer.Data)
	return withHints(string(data), hints), answer, err
}

// record is a statement in an answer of GraphQL.
type record struct {
	Subject, Predicate struct{ ID string }
	Object             struct {
		ID             string
		Value          json.RawMessage
		Type, Language string
	}
	Graph string
}

// recordFields selects the members of a record.
const recordFields = `{ subject { id } predicate { id } object { id value type language } graph }`

// assertion is an assertion in an answer of GraphQL.
type assertion struct {
	SourceID  string
	Certainty *float64
}

const assertionFields = `{ sourceId certainty }`

// asFact returns a record with its assertions as a fact.
func (r *record) asFact(assertions ...assertion) (f compact.Fact, err error) {
	terms := map[*compact.Ref]string{&f.Subject: r.Subject.ID, &f.Predicate: r.Predicate.ID, &f.Object: r.Object.ID}
	for ref, id := range terms {
		if id == "" {
			ref.Term, err = kg.LiteralFromJSON(r.Object.Value, r.Object.Type, r.Object.Language)
		} else {
			ref.Term, err = kg.ResourceFromID(id)
		}
		if err != nil {
			return f, err
		}
	}
	f.Graph = kg.DefaultGraph
	if r.Graph != "" {
		if f.Graph, err = kg.ResourceFromID(r.Graph); err != nil {
			return f, err
		}
	}
	for _, a := range assertions {
		f.Sources = append(f.Sources, kg.AgentID(a.SourceID))
		if a.Certainty != nil && (!f.HasCertainty || *a.Certainty > f.Certainty) {
			f.Certainty, f.HasCertainty = *a.Certainty, true
		}
	}
	return f, nil
}

// writeFact returns a record as one line of text, after one with its graph if that is not the
// default graph.
func writeFact(r *record, p *kg.Prefixes, assertions ...assertion) string {
	f, err := r.asFact(assertions...)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(compact.Write([]compact.Fact{f}, compact.Options{Prefixes: p}).Text) {
		switch {
		case strings.HasPrefix(line, "@prefix"):
		case strings.HasPrefix(line, "@graph"):
			b.WriteString(line)
		default:
			b.WriteString(strings.TrimSpace(line) + " ")
		}
	}
	return strings.TrimSpace(b.String())
}
