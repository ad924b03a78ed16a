package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// GraphQL runs an operation at /graphql. It is for administration (keys, shapes, policies)
// and for mutations, which Query does not support. It decodes the data into into. Any
// error in the response is returned as an *Error. Operations without a mutation are
// retried.
func (c *Client) GraphQL(ctx context.Context, query string, variables map[string]any, into any) error {
	_, err := c.GraphQLHints(ctx, query, variables, into)
	return err
}

// GraphQLHints is GraphQL, and returns the hints about names that do not occur in the graph.
func (c *Client) GraphQLHints(ctx context.Context, query string, variables map[string]any, into any) (hints []Hint, err error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	run := func() error {
		text, err := c.exchangeJSON(ctx, http.MethodPost, c.base+"/graphql", body, nil)
		if err != nil {
			return err
		}
		var answer struct {
			Data       json.RawMessage `json:"data"`
			Errors     []GraphQLError  `json:"errors"`
			Extensions struct {
				Hints []Hint `json:"hints"`
			} `json:"extensions"`
		}
		if err := decodeAnswer(text, &answer); err != nil {
			return err
		}
		hints = answer.Extensions.Hints
		switch {
		case len(answer.Errors) > 0:
			return graphqlError(answer.Errors)
		case into == nil:
			return nil
		}
		return decodeAnswer(answer.Data, into)
	}
	if isReadOnly(query) {
		err = c.retry.runAttempts(ctx, run)
	} else {
		err = run()
	}
	return hints, err
}

// isReadOnly reports whether a GraphQL document has no mutation. It may report false for a
// document without one, if an operation or a fragment is named "mutation".
func isReadOnly(document string) bool {
	depth := 0
	for rest := document; rest != ""; {
		switch c := rest[0]; {
		case c == '#':
			_, rest, _ = strings.Cut(rest, "\n")
		case c == '"':
			rest = skipString(rest)
		case isNameByte(c):
			name := rest[:len(rest)-len(strings.TrimLeftFunc(rest, isNameRune))]
			if depth == 0 && name == "mutation" {
				return false
			}
			rest = rest[len(name):]
		default:
			switch c {
			case '{', '(', '[':
				depth++
			case '}', ')', ']':
				depth--
			}
			rest = rest[1:]
		}
	}
	return true
}

// skipString returns the rest of the document after the string literal that it begins with.
func skipString(document string) string {
	if rest, block := strings.CutPrefix(document, `"""`); block {
		for {
			end := strings.Index(rest, `"""`)
			if end < 0 {
				return ""
			}
			escaped := strings.HasSuffix(rest[:end], `\`)
			if rest = rest[end+len(`"""`):]; !escaped {
				return rest
			}
		}
	}
	for i := 1; i < len(document); i++ {
		switch document[i] {
		case '\\':
			i++
		case '"', '\n':
			return document[i+1:]
		}
	}
	return ""
}

func isNameByte(c byte) bool { return c < 0x80 && isNameRune(rune(c)) }

func isNameRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
