package kg_test

import (
	"context"
	"strings"
	"testing"

	"koine/kg"
)

func TestAgentIDsThatMayBeTaken(t *testing.T) {
	most := kg.MaxAgentIDBytes - len("agent://")
	for id, ok := range map[string]bool{
		"dora":                         true,
		"agent://dora":                 true,
		"żółw":                         true,
		"दोरा":                         true,
		"dora@example.org":             true,
		"a-b._~+1":                     true,
		"did:web:x":                    true,
		"https://example.org/agents/x": true,
		"urn:uuid:0192aaaa-0000-7000-8000-000000000001": true,
		strings.Repeat("x", most):                       true,
		strings.Repeat("x", most+1):                     false,
		"*":                                             false,
		"agent://*":                                     false,
		"role:admin":                                    false,
		"../x":                                          false,
		".":                                             false,
		"agent://..":                                    false,
		"dora/sub":                                      false,
		"agent://dora/sub":                              false,
		"agent://":                                      false,
		"a:b":                                           false,
		"a b":                                           false,
		"dora?x":                                        false,
		"dora#x":                                        false,
		"dora%2F":                                       false,
		"do\u202era":                                    false, // right-to-left override
		"do\u200bra":                                    false, // zero width space
		"do\u200fra":                                    false, // right-to-left mark
		"https://example.org/\u2066x":                   false,
		"do\u0301ra":                                    false, // o and a combining accent
		"d\u00f3ra":                                     true,  // the same, composed
		"https://example.org/do\u0301ra":                false,
		"urn:koine:graph:agents":                        false,
		"URN:Koine:x":                                   false,
		"chan:direct:x":                                 false,
		"a\x00":                                         false,
	} {
		if err := kg.CanonicalAgent(id).WellFormed(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "agent id") {
			t.Errorf("%+q: %v, want it taken: %v", id, err, ok)
		}
	}
}

// Existing agents stay, whatever their ids.
func TestAgentsThatAreThereStay(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	const recorded, source, stranger = kg.AgentID("agent://team/recorded"), kg.AgentID("agent://team/source"), kg.AgentID("agent://team/stranger")
	const member, actedFor, role = kg.AgentID("agent://team/member"), kg.AgentID("agent://team/acted-for"), kg.AgentID("role:admin")
	_, err = store.Update(ctx, kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		class := kg.Quad{Subject: kg.IRI(string(recorded)), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI(kg.OwnVocabulary + "Agent"), Graph: kg.IRI(kg.OwnGraphPrefix + "agents")}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: class}); err != nil {
			return err
		}
		for _, q := range []kg.Quad{
			{Subject: kg.IRI("urn:koine:key:x"), Predicate: kg.IRI(kg.OwnVocabulary + "keyActFor"), Object: kg.String(string(actedFor)), Graph: kg.SystemGraph},
			{Subject: kg.IRI("urn:g"), Predicate: kg.IRI(kg.OwnVocabulary + "graphReader"), Object: kg.String(string(role)), Graph: kg.SystemGraph},
			{Subject: kg.IRI("urn:c"), Predicate: kg.IRI(kg.OwnVocabulary + "channelMember"), Object: kg.IRI(string(member)), Graph: kg.IRI(kg.OwnGraphPrefix + "channel:c")},
		} {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		// A statement about a name does not make it an agent.
		for _, patch := range []kg.Patch{
			{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("x")}, Source: source},
			{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(string(stranger)), Predicate: kg.IRI("urn:p"), Object: kg.IRI(string(stranger))}},
		} {
			if err := tx.Apply(patch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, ok := range map[kg.AgentID]bool{recorded: true, source: true, member: true, actedFor: true, role: false, stranger: false, "agent://dora": true} {
		if err := store.CheckAgent(ctx, id); (err == nil) != ok {
			t.Errorf("%s: %v, want it taken: %v", id, err, ok)
		}
		_, err := store.Update(ctx, kg.Meta{Principal: kg.SystemPrincipal(), DryRun: true}, func(tx *kg.Tx) error { return tx.CheckAgent(id) })
		if (err == nil) != ok {
			t.Errorf("%s in an update: %v, want it taken: %v", id, err, ok)
		}
	}
}
