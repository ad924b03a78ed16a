package a2a_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"koine/a2a"
	"koine/internal/policy"
	"koine/internal/sse"
	"koine/kg"
)

// random matches the parts of a stream that differ between stores: positions and
// derived ids.
var random = regexp.MustCompile(`(?m)^id: .*$|"(position|oldestPosition|changeId|commitId)":"[^"]*"`)

// Streams survive the deletion and re-creation of a graph under the same name. The
// former owner must resync and sees none of the new content; a stranger gets the same
// bytes as for a name that was never used.
func TestStreamsAcrossAGraphMadeAgain(t *testing.T) {
	const name = "agent://dora/notes"
	run := func(again bool) map[string]string {
		policies := policy.New(policy.Options{DefaultGraph: policy.ReadWrite})
		s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow}}, sse.Options{}, a2a.Options{})
		if err := policies.Load(t.Context(), s.store); err != nil {
			t.Fatal(err)
		}
		graphs := policy.NewGraphs(s.store, policies)
		dora := kg.Meta{Principal: kg.Principal{ID: "agent://dora", ActFor: []kg.AgentID{kg.Anybody}, Method: "open"}}
		used := "agent://dora/before"
		if again {
			used = name
		}
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		create := func(graph string) {
			t.Helper()
			_, _, err := graphs.Create(t.Context(), dora, policy.Creation{Graph: kg.IRI(graph)})
			must(nil, err)
		}
		say := func(graph, text string) {
			t.Helper()
			must(s.store.Update(t.Context(), dora, func(tx *kg.Tx) error {
				q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(text)}
				if graph != "" {
					q.Graph = kg.IRI(graph)
				}
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: q})
			}))
		}
		create(used)
		start := s.store.FormatPosition(s.store.Head())
		say(used, "secret")
		must(s.store.ReplaceGraph(t.Context(), dora, kg.IRI(used), func(yield func(kg.Quad, error) bool) {
			for i := range kg.MaxPatches + 1 {
				if !yield(kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(fmt.Sprint("secret ", i)), Graph: kg.IRI(used)}, nil) {
					return
				}
			}
		}, kg.ReplaceOptions{}))
		streams := map[string]*subscriber{}
		follow := func(when, from string) {
			for _, who := range []string{"dora", "eve"} {
				header := []string{"X-Agent-ID: " + who, "Last-Event-ID: " + from}
				streams[who+" "+when] = s.subscribe(t, `{}`, header...)
				streams[who+" entity "+when] = s.subscribeTo(t, `subscription { entityChanged(iri: "urn:s", depth: 1) { __typename } }`, `{}`, header...)
				if from != "" {
					streams[who+" feed "+when] = s.changes(t, "", header...)
				}
			}
		}
		follow("live", "")
		must(graphs.Delete(t.Context(), dora, kg.IRI(used)))
		deleted := s.store.FormatPosition(s.store.Head())
		if !again { // the revisions of the new beginning: the content of commits is not shown
			for _, text := range []string{"1", "2"} {
				must(s.store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://frank", Method: "open"}}, func(tx *kg.Tx) error {
					return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(text), Graph: kg.IRI("agent://frank/notes")}})
				}))
			}
		}
		create(name)
		say(name, "new")
		must(s.store.ReplaceGraph(t.Context(), dora, kg.IRI(name), func(yield func(kg.Quad, error) bool) {
			for i := range kg.MaxPatches + 1 {
				if !yield(kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(fmt.Sprint("new ", i)), Graph: kg.IRI(name)}, nil) {
					return
				}
			}
		}, kg.ReplaceOptions{}))
		say("", "end")
		follow("from before", start)
		follow("from the deletion", deleted)
		out := map[string]string{}
		for what, stream := range streams {
			var all strings.Builder
			for block := stream.block(); block != ""; block = stream.block() {
				all.WriteString(block)
				if strings.Contains(block, `"value":"end"`) {
					break
				}
			}
			out[what] = random.ReplaceAllString(all.String(), "#")
		}
		return out
	}
	again, never := run(true), run(false)
	for what, got := range again {
		if got != never[what] {
			t.Errorf("%s: told is\n%s\nof a name that was never used\n%s", what, got, never[what])
		}
		if strings.Contains(got, "secret") || strings.Contains(never[what], "before\"") {
			t.Errorf("%s: told is of what was before:\n%s", what, got)
		}
		owner := strings.HasPrefix(what, "dora")
		switch resync := strings.Contains(got, `"RESYNC"`); {
		case owner != resync:
			t.Errorf("%s: told is\n%s", what, got)
		case !owner && (strings.Contains(got, "notes") || strings.Contains(got, `"new`) || !strings.Contains(got, `"value":"end"`)):
			t.Errorf("%s: a stranger is told\n%s", what, got)
		case owner && strings.HasSuffix(what, "from the deletion") && !strings.Contains(got, `"graphReplaced"`):
			t.Errorf("%s: the new graph's replacement is not told\n%s", what, got)
		}
	}
}
