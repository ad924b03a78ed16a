package a2a_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// A search matches whole words in any script, and not parts of words.
func TestSearchFindsWholeWords(t *testing.T) {
	s := newTestServer(t)
	for _, text := range []string{"a white wall", "Hi there", "oh, hi", "hi2u", "Überzug", "der Über-Bau", "C++ and C"} {
		s.set(t, kg.Add, "urn:s", kg.String(text), "agent://ann")
	}
	for word, want := range map[string]string{
		"hi": "Found 2 statements", "white": "Found 1 statement ", "wall": "Found 1 statement ", "all.": "Nothing in the graph", "über": "Found 1 statement ",
		"C++": "Found 1 statement ", "bau": "Found 1 statement ", "hi2": "Nothing in the graph",
	} {
		got := s.self(t, "SendMessage", `{"message":{"messageId":"m-`+word+`","role":"ROLE_USER","parts":[{"text":"`+word+`"}]}}`)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// secretOfEve lets only Eve read her graph.
type secretOfEve struct{}

func (secretOfEve) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != kg.IRI("urn:eve") || p.ID == "agent://eve" || p.ID == kg.SystemPrincipal().ID
}

// newSearching is a server that finds by words, with statements for everybody.
func newSearching(t *testing.T) *testServer {
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: secretOfEve{}}}, sse.Options{}, a2a.Options{Recall: true})
	s.set(t, kg.Add, "urn:wall", kg.String("a white wall of dry stones"), "agent://ann")
	s.set(t, kg.Add, "urn:house", kg.String("a white house"), "agent://ann")
	return s
}

// A search is followed over knowledge/subscribe: events tell the statements about new hits.
func TestSubscribeToSearch(t *testing.T) {
	s := newSearching(t)
	sub := s.subscribeTo(t, `subscription { searchChanged(query: "walls -wet") { ... on SearchChange { hits { entity { iri } matches { text } } } } }`, `{"koine":{"resume":"earliest"}}`)
	if _, data, _ := selected(t, sub.block()); data != `{"searchChanged":{"hits":[{"entity":{"iri":"urn:wall"},"matches":[{"text":"a white wall of dry stones"}]}]}}` {
		t.Errorf("the first hit is %s", data)
	}
	if _, err := s.store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://eve"}}, func(tx *kg.Tx) error {
		for subject, text := range map[string]string{"urn:a": "nothing", "urn:b": "two walls", "urn:wall": "two walls"} {
			if err := tx.Apply(patch(kg.Add, subject, kg.String(text), "")); err != nil {
				return err
			}
		}
		p := patch(kg.Add, "urn:c", kg.String("the walls of Eve"), "")
		p.Quad.Graph = kg.IRI("urn:eve")
		return tx.Apply(p)
	}); err != nil {
		t.Fatal(err)
	}
	block := sub.block()
	if _, data, _ := selected(t, block); data != `{"searchChanged":{"hits":[{"entity":{"iri":"urn:b"},"matches":[{"text":"two walls"}]}]}}` || !strings.Contains(block, `"subject":{"id":"urn:b"}`) {
		t.Errorf("the next hit is %s", block)
	}
}

// tell sends koine a text as Ann, and returns the texts of the answer.
func (s *testServer) tell(t *testing.T, text string) (status string, parts []string) {
	t.Helper()
	client := s.selfClient(t)
	result, err := client.SendMessage(t.Context(), sending(sdk.NewTextPart(text)))
	if err != nil {
		t.Fatal(err)
	}
	task, ok := result.(*sdk.Task)
	if !ok {
		t.Fatalf("the answer to %q is %T", text, result)
	}
	if task.Status.Message != nil {
		status = task.Status.Message.Parts[0].Text()
	}
	for _, a := range task.Artifacts {
		for _, p := range a.Parts {
			parts = append(parts, p.Text())
		}
	}
	return status, parts
}

// Plain words are answered with facts as text for a language model, and their revision.
func TestPlainWords(t *testing.T) {
	s := newSearching(t)
	for text, want := range map[string][2]string{
		"What is known about stones?": {"1 fact about: stones (revision ", "<urn:wall>\n  <urn:p> \"a white wall of dry stones\"\n"},
		"white hose -wall":            {"1 fact about: white hose -wall (revision ", "<urn:house>\n  <urn:p> \"a white house\"\n"},
		`"of dry"`:                    {`1 fact about: "of dry" (revision `, "<urn:wall>\n  <urn:p> \"a white wall of dry stones\"\n"},
		"urn:house":                   {"1 fact about: urn:house (revision ", "<urn:house>\n  <urn:p> \"a white house\"\n"},
		"unheardof":                   {"Nothing is known about: unheardof (revision ", ""},
	} {
		status, parts := s.tell(t, text)
		if !strings.HasPrefix(status, want[0]) || len(parts) == 0 || want[1] != "" && parts[0] != want[1] {
			t.Errorf("%q is answered by %q and %q, want %q", text, status, parts, want)
		}
	}
	if status, parts := s.tell(t, strings.Repeat("stone ", 2000)); !strings.Contains(status, "at most 1024") || parts != nil {
		t.Errorf("a long text is answered by %q and %q", status, parts)
	}
}

// A graph that the caller may not read changes no byte of the answers to plain words, and to
// search in knowledge/query.
func TestSearchesHideOthers(t *testing.T) {
	both, own := newSearching(t), newSearching(t)
	for i := range 20 {
		p := patch(kg.Add, "urn:wall", kg.String(fmt.Sprint(i, strings.Repeat(" white stones unheardof", 1000))), "agent://eve")
		p.Quad.Graph = kg.IRI("urn:eve")
		if _, err := both.store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://eve"}}, func(tx *kg.Tx) error { return tx.Apply(p) }); err != nil {
			t.Fatal(err)
		}
	}
	revision := regexp.MustCompile(`(?i)("?(indexed)?revision"?:? ?)\d+|"position":"[^"]*"|"durationMs":[0-9.]+|"timestamp":"[^"]*"|01[0-9a-f]{6}-[0-9a-f-]{27}`)
	for _, text := range []string{"white", "stone", "unheardof", "whit*"} {
		for _, params := range []string{
			`/self SendMessage {"message":{"messageId":"m-` + text + `","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}`,
			`/ knowledge/query {"query":"query($q: String!) { search(query: $q) { totalCount nodes { score entity { iri } matches { pieces } } facets(by: [GRAPH, AUTHOR]) { values { iri nodeId count } distinct } } }","variables":{"q":"` + text + `"}}`,
		} {
			path, params, _ := strings.Cut(params, " ")
			method, params, _ := strings.Cut(params, " ")
			ask := func(s *testServer) string {
				request := "POST " + path + "\nContent-Type: application/json\nX-Agent-ID: ann\n\n" + `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
				return revision.ReplaceAllString(answer(t, s.send(t, []byte(request), nil)), "$1")
			}
			got, want := ask(both), ask(own)
			if got != want {
				t.Errorf("%s %s answers\n%s\nand without Eve's graph\n%s", method, text, got, want)
			}
			if text == "white" && !strings.Contains(want, "urn:house") {
				t.Errorf("%s answers %s", method, want)
			}
		}
	}
}
