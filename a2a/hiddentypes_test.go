package a2a_test

import (
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
	"koine/kg/kgtest"
)

// hidesTypes hides the types in all graphs from eve.
type hidesTypes struct{ kg.AllowAll }

func (hidesTypes) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	return func(predicate, _ kg.Term) bool { return p.ID == "agent://eve" && predicate == kg.IRI(kg.RDFType) }
}

// An event repeats the types that its commit asserted to readers of these assertions only: not
// to one from whom a rule hides them, and not those of an agent under quarantine.
func TestHiddenTypesAreNotRepeated(t *testing.T) {
	distrust := kgtest.NewDistrust(kg.Doubts{"agent://b": time.Time{}})
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: hidesTypes{}, Distrust: distrust}}, sse.Options{}, a2a.Options{})
	doors := map[string]func(agent string) *subscriber{
		"/changes": func(agent string) *subscriber { return s.changes(t, "?predicate=urn:p", "X-Agent-ID: "+agent) },
		"knowledge/subscribe": func(agent string) *subscriber {
			return s.subscribeTo(t, `subscription { statementChanged(where: {predicate: {eq: "urn:p"}}) { __typename } }`, `{}`, "X-Agent-ID: "+agent)
		},
	}
	for door, open := range doors {
		ann, eve := open("ann"), open("eve")
		for _, row := range []struct {
			name, subject string
			typedBy       kg.AgentID
			times         int // to ann
		}{{"a type", "urn:s:1" + door, "agent://a", 2}, {"a type under quarantine", "urn:s:2" + door, "agent://b", 0}} {
			if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
				for _, p := range []kg.Patch{
					{Op: kg.Add, Source: row.typedBy, Quad: kg.Quad{Subject: kg.IRI(row.subject), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:Type")}},
					{Op: kg.Add, Source: "agent://a", Quad: kg.Quad{Subject: kg.IRI(row.subject), Predicate: kg.IRI("urn:p"), Object: kg.IRI(row.subject)}},
				} {
					if err := tx.Apply(p); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			shown, hidden := ann.block(), eve.block()
			if got := strings.Count(shown, `"type":"urn:Type"`); got != row.times {
				t.Errorf("%s, %s is repeated %d times to one who may see types: %s", door, row.name, got, shown)
			}
			if strings.Contains(hidden, "urn:Type") || !strings.Contains(hidden, `"urn:p"`) {
				t.Errorf("%s, %s, to one who may not see types: %s", door, row.name, hidden)
			}
		}
	}
}
