package a2a

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"koine/internal/tasks"
	"koine/kg"
)

// order is the request in a part: params of one of koine's own methods, or a direct
// reply.
type order struct {
	method  string // "" for a direct reply
	params  map[string]json.RawMessage
	say     string
	summary func(result []byte) summary // nil for no summary
	// parts returns the parts of the artifact; nil for the result as data.
	parts func(result []byte) []tasks.Part
}

// summary is a result in words, for people.
type summary struct {
	text    string
	refused bool // the order was refused
}

// help is the answer to "help".
const help = `I keep a knowledge graph. Send me
- words, to be told what is known about them: lovelace mathematician
- a GraphQL document to execute: { entities(first: 5) { nodes { iri label types } } }
- data with a query: {"query": "query($i: IRI!) { entity(iri: $i) { label } }", "variables": {"i": "urn:x:ada"}}
- a GraphQL subscription, as a streaming message, to receive changes: subscription { statementChanged(where: {predicate: {eq: "rdfs:label"}}) { __typename } }
- data with mutations, to change something: {"mutations": [{"op": "add", "statement": {"subject": {"id": "urn:x:ada"}, "predicate": {"id": "rdfs:label"}, "object": {"value": "Ada"}}}]}
- data with a method of mine and its params: {"method": "channels/create", "params": {"name": "lab"}}
Data may come as text too. What there is to ask for: { vocabulary { classes { nodes { iri count } } predicates { nodes { iri count } } } }`

// askHelp ends the errors about a part without an order.
const askHelp = `Send "help" for what can be asked.`

// orderOf parses a part.
func (s self) orderOf(p *tasks.Part) (*order, error) {
	switch {
	case p.Text != nil:
		return s.orderInText(*p.Text)
	case p.Data != nil:
		return orderInData(p.Data)
	}
	return nil, errNoFiles()
}

func (s self) orderInText(text string) (*order, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.EqualFold(strings.TrimRight(text, "?!. "), "help"):
		return &order{say: help}, nil
	case json.Valid([]byte(text)) && text[0] == '{':
		return orderInData(json.RawMessage(text))
	case subscription.MatchString(text):
		o := &order{method: subscribeMethod, params: map[string]json.RawMessage{"subscriptionQuery": quoteJSON(text)}}
		return o.inWords(), nil
	case document.MatchString(text):
		return &order{method: "knowledge/query", params: map[string]json.RawMessage{"query": quoteJSON(text)}}, nil
	}
	if s.h.options.Recall {
		return recallOf(text)
	}
	return searchFor(text)
}

// document matches a text that looks like a GraphQL document, valid or not: an invalid
// one gets GraphQL's errors.
var document = regexp.MustCompile(`(?s)^(#[^\n]*\n\s*)*(\{|(query|mutation|subscription|fragment)\b[^{]*\{)`)

// subscription matches a document whose first operation is a subscription.
var subscription = regexp.MustCompile(`(?s)^(#[^\n]*\n\s*)*subscription\b[^{]*\{`)

// subscribeMethod is followed for a streaming message, and answered with its snapshot
// for any other.
const subscribeMethod = "knowledge/subscribe"

// dataMethods maps a characteristic member of data to its method.
var dataMethods = []struct{ member, method string }{
	{"query", "knowledge/query"}, {"mutations", "knowledge/update"}, {"subscriptionQuery", subscribeMethod}, {"parts", "channels/publish"},
}

func orderInData(data json.RawMessage) (*order, error) {
	o := &order{params: map[string]json.RawMessage{}}
	if kindOf(data) != "an object" {
		return nil, kg.Errorf(kg.CodeInvalid, "data must be an object with a query or mutations, not %s. %s", kindOf(data), askHelp)
	}
	if err := json.Unmarshal(data, &o.params); err != nil {
		return nil, err
	}
	if method, named := o.params["method"]; named {
		return orderByName(method, o.params)
	}
	for _, d := range dataMethods {
		if _, there := o.params[d.member]; !there {
			continue
		}
		if o.method != "" {
			return nil, kg.Errorf(kg.CodeInvalid, "data must have either a query or mutations. %s", askHelp)
		}
		o.method = d.method
	}
	if o.method == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "data must have a query, mutations, or a method with its params. %s", askHelp)
	}
	return o.inWords(), nil
}

// orderByName parses data that names a method of koine's extensions.
func orderByName(method json.RawMessage, data map[string]json.RawMessage) (*order, error) {
	o := &order{params: map[string]json.RawMessage{}}
	if json.Unmarshal(method, &o.method) != nil || extensionOf(o.method) == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "method must be knowledge/… or channels/…. %s", askHelp).At("method")
	}
	for name, raw := range data {
		switch {
		case name == "method":
		case name != "params":
			return nil, kg.Errorf(kg.CodeInvalid, "data with a method may have only params beside it").At(clipText(name))
		case isAbsent(raw):
		case json.Unmarshal(raw, &o.params) != nil:
			return nil, kg.Errorf(kg.CodeInvalid, "params must be an object, not %s", kindOf(raw)).At("params")
		}
	}
	return o.inWords(), nil
}

// inWords sets the summary of the method.
func (o *order) inWords() *order {
	switch o.method {
	case "knowledge/update":
		o.summary = summarizeUpdate
	case subscribeMethod:
		o.summary = summarizeSnapshot
	}
	return o
}

// ofTask adds the task to the params of methods that accept one.
func (o *order) ofTask(id tasks.TaskID) {
	switch o.method {
	case "knowledge/query", "knowledge/update", subscribeMethod, "channels/publish":
		o.params["taskId"] = quoteJSON(string(id))
	}
}

// summarizeUpdate summarizes the result of an update.
func summarizeUpdate(result []byte) summary {
	var r struct {
		Success             bool
		StatementsAffected  int
		VerificationStatus  string
		VerificationDetails string
	}
	if json.Unmarshal(result, &r) != nil {
		return summary{}
	}
	text := fmt.Sprintf("%s: %s changed.", r.VerificationStatus, countOf(r.StatementsAffected, "statement"))
	if r.VerificationDetails != "" {
		text += " " + r.VerificationDetails
	}
	return summary{text, !r.Success}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func quoteJSON(text string) json.RawMessage {
	raw, err := appendJSON(nil, text)
	if err != nil {
		panic(err) // a text
	}
	return raw
}

// graphQLTexts formats GraphQL errors with their locations, for people.
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
