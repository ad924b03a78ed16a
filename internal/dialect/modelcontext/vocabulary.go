package modelcontext

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

type vocabularyArgs struct {
	After string `json:"after,omitempty" jsonschema:"next of the answer before, to go on"`
}

type term struct {
	Name  string `json:"name"`
	Count int64  `json:"count" jsonschema:"of its entities or statements"`
}

type vocabularyAnswer struct {
	Prefixes   map[string]string `json:"prefixes"`
	Classes    []term            `json:"classes"`
	Predicates []term            `json:"predicates"`
	Next       string            `json:"next,omitempty" jsonschema:"there are more: pass it as after"`
}

// maxTerms bounds the classes, and the predicates, of one answer.
const maxTerms = 50

// listVocabulary lists classes and predicates, a page of each. Its cursor is that of both.
func (t tools) listVocabulary(ctx context.Context, a vocabularyArgs) (string, vocabularyAnswer, error) {
	variables := map[string]any{"first": maxTerms}
	classes, predicates, _ := strings.Cut(a.After, " ")
	for name, cursor := range map[string]string{"classes": classes, "predicates": predicates} {
		if cursor != "" {
			variables[name] = cursor
		}
	}
	type counted struct {
		IRI   string
		Count int64
	}
	var answer struct {
		Vocabulary struct{ Classes, Predicates connection[counted] }
	}
	const query = `query($first: Int, $classes: Cursor, $predicates: Cursor) { vocabulary { classes(first: $first, after: $classes) { nodes { iri count }` + pageInfo + ` } predicates(first: $first, after: $predicates) { nodes { iri count }` + pageInfo + ` } } }`
	prefixes, err := t.runRead(ctx, query, variables, &answer)
	if err != nil {
		return "", vocabularyAnswer{}, err
	}
	var b strings.Builder
	out := vocabularyAnswer{Prefixes: map[string]string{}, Classes: []term{}, Predicates: []term{}}
	for _, p := range prefixes.All() {
		out.Prefixes[p.Name] = p.Namespace
		fmt.Fprintf(&b, "@prefix %s: <%s>\n", p.Name, p.Namespace)
	}
	for _, part := range []struct {
		title string
		from  connection[counted]
		to    *[]term
	}{{"Classes (entities)", answer.Vocabulary.Classes, &out.Classes}, {"Predicates (statements)", answer.Vocabulary.Predicates, &out.Predicates}} {
		fmt.Fprintf(&b, "\n%s:\n", part.title)
		for _, n := range part.from.Nodes {
			*part.to = append(*part.to, term{prefixes.Shorten(n.IRI), n.Count})
			fmt.Fprintf(&b, "%s %d\n", prefixes.Shorten(n.IRI), n.Count)
		}
	}
	if c, p := answer.Vocabulary.Classes.PageInfo, answer.Vocabulary.Predicates.PageInfo; c.HasNextPage || p.HasNextPage {
		// A list that has ended goes on after its last term, with nothing.
		out.Next = cmp.Or(c.EndCursor, classes) + " " + cmp.Or(p.EndCursor, predicates)
		fmt.Fprintf(&b, "# more: call again with after %q\n", out.Next)
	}
	return b.String(), out, nil
}
