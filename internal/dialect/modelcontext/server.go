package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"koine/kg"
)

// Options configure a server.
type Options struct {
	Version string
	// ReadOnly leaves out the tools that change the graph.
	ReadOnly bool
}

// instructions tell a model how the tools belong together.
const instructions = `koine is a shared memory: a graph of facts that agents and people write with their sources and certainties.
Look before you write: "recall" a topic, or "search" by words. "remember" facts with the names that you were shown.
Facts are lines of text: a line that is not indented begins a subject; lines below it, indented, have a predicate and its objects, separated by commas. A text in parentheses behind a name is its label.`

// NewServer returns a server whose tools act as the caller of a Querier.
func NewServer(q Querier, o Options) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "koine", Version: o.Version}, &mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	t := tools{q}
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(s, &mcp.Tool{
		Name: "recall", Title: "Recall a topic", Annotations: reads,
		Description: `What is known about a topic, as lines of facts within a budget of tokens. The topic is a few words, or a name that you were shown, such as lab:run-7. The last line says if there is more. Use it before you answer from memory.`,
	}, t.recallTopic)
	mcp.AddTool(s, &mcp.Tool{
		Name: "search", Title: "Search by words", Annotations: reads,
		Description: `Finds entities and messages by words, the best first: name, label and the text that was found. "words in this order", begin* and -unwanted are understood; word forms and small misspellings are found too.`,
	}, t.searchWords)
	mcp.AddTool(s, &mcp.Tool{
		Name: "vocabulary", Title: "Show the vocabulary", Annotations: reads,
		Description: `The prefixes, classes and predicates in use, with their numbers of entities and statements. Use existing predicates when you remember something.`,
	}, t.listVocabulary)
	mcp.AddTool(s, &mcp.Tool{
		Name: "query", Title: "Query with GraphQL", Annotations: reads,
		Description: `Runs a GraphQL query, for counts, filters, orders and paths that the other tools do not have. Example: { entities(where: {type: {eq: "lab:Finding"}}, first: 5) { nodes { iri label } totalCount } }. Errors have a hint with the right form.`,
	}, t.runQuery)
	if !o.ReadOnly {
		mcp.AddTool(s, &mcp.Tool{
			Name: "remember", Title: "Remember facts", Annotations: &mcp.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: true, OpenWorldHint: new(bool)},
			Description: `Adds facts to the graph, all or none. Example:
lab:run-9 (Run 9: 50 cycles at 2C)
  a lab:Measurement
  lab:used lab:cell-7
  lab:quality "doubtful" [0.4]
A label in parentheses instead of a name, as in "(Run 8) lab:used lab:cell-7", stands for the entity with that label. [0.4] is your certainty; without it you state a fact. Numbers and dates stand as they are, texts in quotes.`,
		}, t.rememberFacts)
	}
	return s
}

// tools are the tools of a server.
type tools struct{ Querier }

// textResult is the result of a tool that answers with text.
func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

type recallArgs struct {
	Topic     string `json:"topic" jsonschema:"a few words, or a name such as lab:run-7"`
	MaxTokens int    `json:"maxTokens,omitempty" jsonschema:"bound of the answer in tokens, 50 to 50000; 1000 if absent"`
}

func (t tools) recallTopic(ctx context.Context, _ *mcp.CallToolRequest, a recallArgs) (*mcp.CallToolResult, any, error) {
	variables := map[string]any{"topic": a.Topic}
	if a.MaxTokens != 0 {
		variables["most"] = a.MaxTokens
	}
	var answer struct{ Recall struct{ Text string } }
	if err := t.GraphQL(ctx, `query($topic: String!, $most: Int) { recall(topic: $topic, maxTokens: $most) { text } }`, variables, &answer); err != nil {
		return nil, nil, err
	}
	if answer.Recall.Text == "" {
		return textResult(fmt.Sprintf("Nothing is known about %q. Other words may find more.", a.Topic)), nil, nil
	}
	return textResult(answer.Recall.Text), nil, nil
}

type searchArgs struct {
	Query string `json:"query" jsonschema:"words, \"a phrase\", begin*, -unwanted"`
	Limit int    `json:"limit,omitempty" jsonschema:"number of hits, 1 to 100; 10 if absent"`
}

func (t tools) searchWords(ctx context.Context, _ *mcp.CallToolRequest, a searchArgs) (*mcp.CallToolResult, any, error) {
	if a.Limit == 0 {
		a.Limit = 10
	}
	if a.Limit < 1 || a.Limit > 100 {
		return nil, nil, fmt.Errorf("limit is %d; it must be from 1 to 100", a.Limit)
	}
	var answer struct {
		Search struct {
			Nodes []struct {
				Entity  struct{ IRI, Label string }
				Matches []struct{ Text string }
			}
		}
	}
	const query = `query($query: String!, $first: Int) { search(query: $query, first: $first) { nodes { entity { iri label } matches { text } } } }`
	if err := t.GraphQL(ctx, query, map[string]any{"query": a.Query, "first": a.Limit}, &answer); err != nil {
		return nil, nil, err
	}
	prefixes, err := t.readPrefixes(ctx)
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	for _, hit := range answer.Search.Nodes {
		b.WriteString(prefixes.Shorten(hit.Entity.IRI))
		if hit.Entity.Label != "" {
			fmt.Fprintf(&b, " (%s)", hit.Entity.Label)
		}
		if len(hit.Matches) > 0 && hit.Matches[0].Text != hit.Entity.Label {
			b.WriteString(": " + hit.Matches[0].Text)
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return textResult(fmt.Sprintf("Nothing has words of %q. Try fewer or other words.", a.Query)), nil, nil
	}
	return textResult(b.String()), nil, nil
}

// readPrefixes returns the registered prefixes of the server.
func (t tools) readPrefixes(ctx context.Context) (*kg.Prefixes, error) {
	var answer struct {
		Vocabulary struct {
			Prefixes []struct{ Name, Namespace string }
		}
	}
	if err := t.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } } }`, nil, &answer); err != nil {
		return nil, err
	}
	more := map[string]string{}
	for _, p := range answer.Vocabulary.Prefixes {
		more[p.Name] = p.Namespace
	}
	return kg.NewPrefixes(more)
}

// maxListed bounds the classes and predicates of one answer.
const maxListed = 50

func (t tools) listVocabulary(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	type list struct {
		Nodes []struct {
			IRI   string
			Count int64
		}
		PageInfo struct{ HasNextPage bool }
	}
	var answer struct {
		Vocabulary struct{ Classes, Predicates list }
	}
	query := fmt.Sprintf(`{ vocabulary { classes(first: %d) { nodes { iri count } pageInfo { hasNextPage } } predicates(first: %d) { nodes { iri count } pageInfo { hasNextPage } } } }`, maxListed, maxListed)
	if err := t.GraphQL(ctx, query, nil, &answer); err != nil {
		return nil, nil, err
	}
	prefixes, err := t.readPrefixes(ctx)
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	for _, p := range prefixes.All() {
		fmt.Fprintf(&b, "@prefix %s: <%s>\n", p.Name, p.Namespace)
	}
	for _, part := range []struct {
		title string
		list
	}{{"Classes (entities)", answer.Vocabulary.Classes}, {"Predicates (statements)", answer.Vocabulary.Predicates}} {
		fmt.Fprintf(&b, "\n%s:\n", part.title)
		for _, n := range part.Nodes {
			fmt.Fprintf(&b, "%s %d\n", prefixes.Shorten(n.IRI), n.Count)
		}
		if part.PageInfo.HasNextPage {
			b.WriteString("# more: use the tool query\n")
		}
	}
	return textResult(b.String()), nil, nil
}

type queryArgs struct {
	Query     string         `json:"query" jsonschema:"a GraphQL query"`
	Variables map[string]any `json:"variables,omitempty" jsonschema:"its variables"`
}

func (t tools) runQuery(ctx context.Context, _ *mcp.CallToolRequest, a queryArgs) (*mcp.CallToolResult, any, error) {
	if document, err := parser.ParseQuery(&ast.Source{Input: a.Query}); err == nil {
		for _, o := range document.Operations {
			if o.Operation != ast.Query {
				return nil, nil, fmt.Errorf("the tool only reads, and the document has a %s", o.Operation)
			}
		}
	}
	var data json.RawMessage
	if err := t.GraphQL(ctx, a.Query, a.Variables, &data); err != nil {
		return nil, nil, err
	}
	return textResult(string(data)), nil, nil
}
