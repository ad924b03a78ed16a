package a2a

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"koine/internal/tasks"
	"koine/kg"
)

// Limits of a search.
const (
	maxSearchBytes = 1000
	maxSearchWords = 8
	searchResults  = 25
	searchReads    = 200_000 // statements
)

// recallQuery asks for the facts about words.
const recallQuery = `query Recall($topic: String!) { recall(topic: $topic) { text facts left revision } }`

// recalled is the answer to recallQuery.
type recalled struct {
	Data struct {
		Recall struct {
			Text        string
			Facts, Left int
			Revision    int64
		}
	}
}

// recallOf returns an order for the facts about the words of a text. Filler words are left
// out of a text without "words in this order".
func recallOf(text string) (*order, error) {
	if !strings.Contains(text, `"`) {
		text = strings.TrimRight(strings.Join(tellingWords(strings.Fields(text)), " "), "?!., ")
	}
	variables, err := appendJSON(nil, map[string]any{"topic": text})
	if err != nil {
		return nil, err
	}
	return &order{
		method: "knowledge/query", params: map[string]json.RawMessage{"query": quoteJSON(recallQuery), "variables": variables},
		summary: func(result []byte) summary {
			var r recalled
			if json.Unmarshal(result, &r) != nil {
				return summary{}
			}
			found := r.Data.Recall
			if found.Facts == 0 {
				return summary{text: fmt.Sprintf("Nothing is known about: %s (revision %d). %s", clipText(text), found.Revision, askHelp)}
			}
			words := fmt.Sprintf("%s about: %s (revision %d).", countOf(found.Facts, "fact"), clipText(text), found.Revision)
			if found.Left > 0 {
				words += fmt.Sprintf(" %s more; ask with more words, or call recall in GraphQL with a larger maxTokens.", countOf(found.Left, "fact"))
			}
			return summary{text: words}
		},
		parts: func(result []byte) []tasks.Part {
			var r recalled
			if json.Unmarshal(result, &r) != nil || r.Data.Recall.Text == "" {
				return []tasks.Part{tasks.DataPart(result)}
			}
			return []tasks.Part{tasks.TextPart(r.Data.Recall.Text), tasks.DataPart(result)}
		},
	}, nil
}

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

// searchFor returns a search for statements that contain the words of a text in any
// order.
func searchFor(text string) (*order, error) {
	words := searchWords(text)
	switch {
	case len(words) == 0:
		return nil, kg.Errorf(kg.CodeInvalid, "the text has no words to search for. %s", askHelp)
	case len(text) > maxSearchBytes || len(words) > maxSearchWords:
		return nil, kg.Errorf(kg.CodeLimitExceeded, "a search accepts up to %d words and %d bytes; for more, send a GraphQL query. %s", maxSearchWords, maxSearchBytes, askHelp)
	}
	var all []map[string]any
	for _, word := range words {
		all = append(all, map[string]any{"object": map[string]any{"regex": wholeWord(word)}})
	}
	variables, err := appendJSON(nil, map[string]any{
		"where": map[string]any{"and": all}, "first": searchResults, "budget": map[string]any{"maxStatements": searchReads},
	})
	if err != nil {
		return nil, err
	}
	return &order{
		method: "knowledge/query", params: map[string]json.RawMessage{"query": quoteJSON(searchQuery), "variables": variables},
		summary: func(result []byte) summary { return summary{text: summarizeSearch(words, result)} },
	}, nil
}

// wholeWord matches a word with no letter, mark or digit next to it: \b knows those of
// ASCII only.
func wholeWord(word string) string {
	return `(?i)(?:^|[^\pL\pM\pN])` + regexp.QuoteMeta(word) + `(?:$|[^\pL\pM\pN])`
}

// searchWords returns the words of a text to search for.
func searchWords(text string) (list []string) {
	for _, word := range strings.Fields(text) {
		if word = trimPunctuation(word); word != "" {
			list = append(list, word)
		}
	}
	return tellingWords(list)
}

func trimPunctuation(word string) string { return strings.Trim(word, "?!.,;:…\"'()“”‘’«»") }

// tellingWords drops the filler words of a question or an order, unless there are no others.
func tellingWords(all []string) (telling []string) {
	for _, word := range all {
		if !slices.Contains(fillers, strings.ToLower(trimPunctuation(word))) {
			telling = append(telling, word)
		}
	}
	if len(telling) == 0 {
		return all
	}
	return telling
}

var fillers = strings.Fields(`a about all an and any anything are at by can could did do does everything find for from give had has have
	how i in is it know known knows look me of on or please search show some tell that the there this to was were what when where which who whom whose why with you`)

// summarizeSearch summarizes the search results.
func summarizeSearch(words []string, result []byte) string {
	var r struct {
		Data struct {
			Statements struct {
				Nodes    []json.RawMessage
				PageInfo struct{ HasNextPage, Truncated bool }
			}
		}
	}
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	found, page := len(r.Data.Statements.Nodes), r.Data.Statements.PageInfo
	list := strings.Join(words, ", ")
	switch {
	case page.Truncated:
		return fmt.Sprintf("Found %s with: %s. Only the first %d were searched; a GraphQL query can narrow the search.", countOf(found, "statement"), list, searchReads)
	case found == 0:
		return fmt.Sprintf("Nothing in the graph has: %s. %s", list, askHelp)
	case page.HasNextPage:
		return fmt.Sprintf("The first %s with: %s. There are more; a GraphQL query returns them page by page.", countOf(found, "statement"), list)
	}
	return fmt.Sprintf("Found %s with: %s.", countOf(found, "statement"), list)
}
