package a2a

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"koine/internal/tasks"
	"koine/kg"
)

// order is what a part asks for: params of one of koine's own methods, or something to
// say at once.
type order struct {
	method  string // "" where there is nothing to do
	params  map[string]json.RawMessage
	say     string
	summary func(result []byte) summary // nil where the result says it all
}

// summary is a result in words, for people.
type summary struct {
	text    string
	refused bool // what was ordered was not done
}

// help is what koine tells about itself.
const help = `I keep a knowledge graph. Send me
- words to find statements that have all of them: lovelace mathematician
- a GraphQL document to execute: { entities(first: 5) { nodes { iri label types } } }
- data with a query: {"query": "query($i: IRI!) { entity(iri: $i) { label } }", "variables": {"i": "urn:x:ada"}}
- data with mutations, to change something: {"mutations": [{"op": "add", "statement": {"subject": {"id": "urn:x:ada"}, "predicate": {"id": "rdfs:label"}, "object": {"value": "Ada"}}}]}
Data may come as text too. What there is to ask for: { vocabulary { classes { iri count } predicates { iri count } } }`

// askHelp ends what is said about a part that asks for nothing.
const askHelp = `Send "help" for what can be asked.`

// orderOf reads a part.
func orderOf(p *tasks.Part) (*order, error) {
	switch {
	case p.Text != nil:
		return orderInText(*p.Text)
	case p.Data != nil:
		return orderInData(p.Data)
	}
	return nil, errNoFiles()
}

func orderInText(text string) (*order, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.EqualFold(strings.TrimRight(text, "?!. "), "help"):
		return &order{say: help}, nil
	case json.Valid([]byte(text)) && text[0] == '{':
		return orderInData(json.RawMessage(text))
	case document.MatchString(text):
		return &order{method: "knowledge/query", params: map[string]json.RawMessage{"query": quoted(text)}}, nil
	}
	return searchFor(text)
}

// document matches a text that is meant as one of GraphQL, well formed or not: who
// sends it is told what is wrong with it.
var document = regexp.MustCompile(`(?s)^(#[^\n]*\n\s*)*(\{|(query|mutation|subscription|fragment)\b[^{]*\{)`)

func orderInData(data json.RawMessage) (*order, error) {
	o := &order{params: map[string]json.RawMessage{}}
	if kindOf(data) != "an object" {
		return nil, kg.Errorf(kg.CodeInvalid, "data is an object with a query or mutations, not %s. %s", kindOf(data), askHelp)
	}
	if err := json.Unmarshal(data, &o.params); err != nil {
		return nil, err
	}
	_, query := o.params["query"]
	_, mutations := o.params["mutations"]
	switch {
	case query && !mutations:
		o.method = "knowledge/query"
	case mutations && !query:
		o.method, o.summary = "knowledge/update", sayUpdate
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "data has either a query or mutations. %s", askHelp)
	}
	return o, nil
}

// sayUpdate says what became of an update.
func sayUpdate(result []byte) summary {
	var r struct {
		Success             bool
		StatementsAffected  int
		VerificationStatus  string
		VerificationDetails string
	}
	if json.Unmarshal(result, &r) != nil {
		return summary{}
	}
	text := fmt.Sprintf("%s: %s changed.", r.VerificationStatus, count(r.StatementsAffected, "statement"))
	if r.VerificationDetails != "" {
		text += " " + r.VerificationDetails
	}
	return summary{text, !r.Success}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func quoted(text string) json.RawMessage {
	raw, err := appendJSON(nil, text)
	if err != nil {
		panic(err) // a text
	}
	return raw
}

// graphQLTexts are errors of GraphQL for people: what is wrong, and where.
func graphQLTexts(raw json.RawMessage) (out []string) {
	var list []struct {
		Message   string
		Locations []struct{ Line, Column int }
	}
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, e := range list {
		text := e.Message
		if len(e.Locations) > 0 {
			text += fmt.Sprintf(" (line %d, column %d)", e.Locations[0].Line, e.Locations[0].Column)
		}
		out = append(out, text)
	}
	return out
}
