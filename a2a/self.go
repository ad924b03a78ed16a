package a2a

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// Self is koine as an agent: whoever knows nothing of its extensions asks it with
// messages (WIRE §8). A data part with a query is executed, one with mutations is an
// update, as knowledge/query and knowledge/update have them; so is a text that is a
// GraphQL document, and any other text is looked for in the graph. What comes of it
// are artifacts.
func (h *Handler) Self() tasks.Worker { return self{h} }

type self struct{ h *Handler }

// Takes refuses files: what is asked for is text, or data.
func (self) Takes(m *tasks.Message) error {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Raw != nil || p.URL != nil {
			return errNoFiles().At(index("parts", i))
		}
	}
	return m.OfTypes("text/*", "application/json", "application/graphql")
}

func errNoFiles() *kg.Error {
	return kg.Errorf(kg.CodeContentType, "files are not taken: send data with a query or mutations, or text")
}

// Answer gives nothing: all that is asked of koine is a task, so that what came of it
// is kept.
func (self) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

// Work does what the parts of the message ask for, one after the other. The last
// result completes the task in the same commit.
func (s self) Work(ctx context.Context, j *tasks.Job) error {
	ctx = caller.With(ctx, j.By)
	for i := range j.Message.Parts {
		o, err := orderOf(&j.Message.Parts[i])
		if err != nil {
			return kg.AsError(err).At(index("parts", i))
		}
		o.params["taskId"] = quoted(string(j.Task.ID))
		if err := s.carryOut(ctx, j, i, o); err != nil {
			return domainError(err)
		}
	}
	return nil
}

// order is what a part asks for: params of one of koine's own methods.
type order struct {
	method string
	params map[string]json.RawMessage
}

// orderOf reads a part.
func orderOf(p *tasks.Part) (*order, error) {
	switch {
	case p.Text != nil && isDocument(*p.Text):
		return &order{method: "knowledge/query", params: map[string]json.RawMessage{"query": quoted(*p.Text)}}, nil
	case p.Text != nil:
		return searchFor(*p.Text)
	case p.Data == nil:
		return nil, errNoFiles()
	}
	o := &order{params: map[string]json.RawMessage{}}
	if kindOf(p.Data) != "an object" {
		return nil, kg.Errorf(kg.CodeInvalid, "data is an object with a query or mutations, not %s", kindOf(p.Data))
	}
	if err := json.Unmarshal(p.Data, &o.params); err != nil {
		return nil, err
	}
	_, query := o.params["query"]
	_, mutations := o.params["mutations"]
	switch {
	case query && !mutations:
		o.method = "knowledge/query"
	case mutations && !query:
		o.method = "knowledge/update"
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "data has either a query or mutations")
	}
	return o, nil
}

// carryOut does what was ordered, and hands over what came of it.
func (s self) carryOut(ctx context.Context, j *tasks.Job, n int, o *order) error {
	params, err := appendJSON(nil, o.params)
	if err != nil {
		return err
	}
	result, err := s.h.table[o.method].unary(ctx, &call{caller: j.By, method: o.method, params: params})
	if err != nil {
		return err
	}
	raw, err := appendJSON(nil, result)
	if err != nil {
		return err
	}
	return handOver(ctx, j, n, o.method, raw)
}

// domainError is an error of a method as one of the domain: what failed is said in
// the task, under the same code.
func domainError(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	d, _ := e.Data.(details)
	text := e.Message
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	if len(d.Errors) > 0 {
		text += ": " + string(d.Errors)
	}
	out := kg.Errorf(kg.Code(d.Reason), "%s", text)
	out.Hint = d.Hint
	return out
}

func quoted(text string) json.RawMessage {
	raw, err := appendJSON(nil, text)
	if err != nil {
		panic(err) // a text
	}
	return raw
}

// isDocument tells whether a text is a GraphQL document.
func isDocument(text string) bool {
	_, err := parser.ParseQuery(&ast.Source{Input: text})
	return err == nil && strings.ContainsRune(text, '{')
}

// handOver makes an artifact of a result: one part of data, or where that is too
// large, pieces of the JSON as a file, chunk by chunk.
func handOver(ctx context.Context, j *tasks.Job, n int, name string, result json.RawMessage) error {
	a := tasks.Artifact{ID: "result-" + strconv.Itoa(n+1), Name: name, Complete: true}
	if len(result) <= tasks.MaxMessageBytes {
		a.Parts = []tasks.Part{tasks.DataPart(result)}
		return j.Report(ctx, tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a}}, State: came(j, n)})
	}
	for more := false; len(result) > 0; more = true {
		piece := result[:min(len(result), pieceBytes)]
		result = result[len(piece):]
		raw := base64.StdEncoding.EncodeToString(piece)
		a.Parts = []tasks.Part{{Raw: &raw, MediaType: "application/json", Filename: "result.json"}}
		a.Complete = len(result) == 0
		r := tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a, Append: more}}}
		if a.Complete {
			r.State = came(j, n)
		}
		if err := j.Report(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// came is the state behind the result of a part: completed with the last.
func came(j *tasks.Job, n int) tasks.State {
	if n == len(j.Message.Parts)-1 {
		return tasks.Completed
	}
	return ""
}

// pieceBytes of a result are in one chunk: three bytes are four in base64.
const pieceBytes = tasks.MaxMessageBytes / 4 * 3 / 3 * 3

// Bounds of a search.
const (
	maxSearchBytes = 1000
	maxSearchWords = 8
	searchResults  = 25
	searchReads    = 200_000 // statements
)

// searchQuery finds the statements with all of the words in their object.
const searchQuery = `query Search($where: StatementFilter!, $first: Int!, $budget: BudgetInput!) {
  statements(where: $where, first: $first, budget: $budget) {
    nodes {
      subject { iri }
      predicate
      object { ... on Literal { value language datatype } }
      certainty
      assertedBy
    }
    pageInfo { hasNextPage truncated }
  }
}`

// searchFor asks for statements in which the words of a text come, in whatever order.
func searchFor(text string) (*order, error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return nil, kg.Errorf(kg.CodeInvalid, "an empty text asks for nothing")
	case len(text) > maxSearchBytes || len(words) > maxSearchWords:
		return nil, kg.Errorf(kg.CodeLimitExceeded, "a text is looked for of up to %d words and %d bytes; for more, send a GraphQL query", maxSearchWords, maxSearchBytes)
	}
	var all []map[string]any
	for _, word := range words {
		all = append(all, map[string]any{"object": map[string]any{"regex": "(?i)" + regexp.QuoteMeta(word)}})
	}
	variables, err := appendJSON(nil, map[string]any{
		"where": map[string]any{"and": all}, "first": searchResults, "budget": map[string]any{"maxStatements": searchReads},
	})
	if err != nil {
		return nil, err
	}
	return &order{method: "knowledge/query", params: map[string]json.RawMessage{"query": quoted(searchQuery), "variables": variables}}, nil
}
