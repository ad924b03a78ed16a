package a2a_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"koine/a2a"
	"koine/internal/proposals"
	"koine/internal/sse"
	"koine/kg"
)

// doubting holds, rejects or forbids statements that name the outcome.
type doubting struct{ rules }

func (d doubting) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	for _, c := range j.Changes {
		if c.Quad.Object == kg.String("doubtful") {
			return kg.Verdict{Outcome: kg.Held, Reason: kg.ReasonHeld, Details: "somebody has to look at it"}, nil
		}
	}
	return d.rules.Verify(ctx, j)
}

func fact(value, more string) string {
	return fmt.Sprintf(`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":%q}%s}}`, value, more)
}

// Facts of a message are judged like an update: a message is published while its held
// facts wait, and rejected facts reject it.
func TestMessagesWithFacts(t *testing.T) {
	reviews := proposals.New(proposals.Options{})
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: reviews.Guard(kg.AllowAll{}), Holder: reviews, Verifier: doubting{}, OnSystemChange: reviews.Follow}}, sse.Options{}, a2a.Options{})
	if err := reviews.Open(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	id := s.channel(t, `{"members":[{"principalId":"bob"}]}`)
	publish := func(patches, more string) string {
		t.Helper()
		return mask(s.call(t, "ann", "channels/publish", `{"channelId":"`+id+`","parts":[{"type":"text","text":"see"}],"patches":[`+patches+`]`+more+`}`))
	}
	event := func(sequence int, more, facts string) string {
		return fmt.Sprintf(`"result":{"event":{"id":"<uuid>","channelId":"<uuid>","sequence":%d,"timestamp":1767323045000,"author":"agent://ann","parts":[{"type":"text","text":"see"}],%s"kind":"messageEvent"%s}`, sequence, more, facts)
	}
	wrong := func(field, rest string) string {
		return `"error":{"code":-32602,"message":"Invalid parameters","data":{"reason":"INVALID","domain":"koine","field":"` + field + `",` + rest + `}}`
	}
	for _, row := range []struct{ name, patches, more, want string }{
		{"facts", fact("fine", `,"certainty":0.5`) + "," + strings.Replace(fact("good", ""), `"urn:s"`, `"urn:s","type":"urn:C"`, 1), `,"idempotencyKey":"k","justification":"because"`,
			event(1, `"idempotencyKey":"k",`, `,"factCount":2`) + `,"statementsAffected":3,"verificationStatus":"Verified"}`},
		{"the same again", fact("fine", `,"certainty":0.5`) + "," + strings.Replace(fact("good", ""), `"urn:s"`, `"urn:s","type":"urn:C"`, 1), `,"idempotencyKey":"k"`,
			event(1, `"idempotencyKey":"k",`, `,"factCount":2`) + `,"replayed":true,"verificationStatus":"Verified"}`},
		{"nothing new", fact("fine", `,"certainty":0.5`), "", event(2, "", `,"factCount":1`) + `,"statementsAffected":0,"verificationStatus":"Verified"}`},
		{"held", fact("doubtful", ""), "", event(3, "", `,"factCount":1,"proposalId":"<uuid>"`) + `,"statementsAffected":0,"verificationStatus":"Pending Review","verificationDetails":"somebody has to look at it","proposalId":"<uuid>"}`},
		{"rejected", fact("unlikely", ""), "",
			`"error":{"code":-32013,"message":"Constraint Violation: nothing is unlikely","data":{"reason":"CONSTRAINT_VIOLATION","domain":"koine","hint":"Nothing was published. Correct the message or its facts, or leave them out.","verificationStatus":"Rejected - Constraint Violation"}}`},
		{"a violation", fact("forbidden", ""), "",
			`"error":{"code":-32013,"message":"Forbidden: one does not say that","data":{"reason":"CONSTRAINT_VIOLATION","domain":"koine"}}`},
		{"a reserved graph", fact("x", "") + "," + strings.Replace(fact("x", `,"graph":"urn:koine:graph:system"`), `"urn:s"`, `"urn:s","type":"urn:C"`, 1), "",
			`"error":{"code":-31102,"message":"*","data":{"reason":"RESERVED","domain":"koine","field":"patches[1]*`},
		{"a patch that is none", fact("x", "") + `,{"op":"upsert"}`, "", wrong("patches[1].op", `"detail":"must be add, remove or replace, not \"upsert\""`)},
		{"a literal with a type", strings.Replace(fact("x", ""), `"value":"x"`, `"value":"x","type":"xsd:integer"`, 1), "", wrong("patches[0].statement.object.type", `*`)},
		{"validity the wrong way", fact("x", `,"validFrom":"2026-01-02T00:00:00Z","validTo":"2026-01-01T00:00:00Z"`), "", wrong("patches[0].statement.validTo", "*")},
		{"no facts", "", "", event(4, "", "") + "}"},
	} {
		got, want := publish(row.patches, row.more), "200 application/json\n"+`{"jsonrpc":"2.0","id":1,`+row.want+"}\n"
		if before, rest, any := strings.Cut(want, "*"); any {
			between, _, _ := strings.Cut(rest, "*")
			if !strings.HasPrefix(got, before) || !strings.Contains(got[len(before):], strings.TrimSuffix(between, "}}}\n")) {
				t.Errorf("%s:\ngot  %swant %s", row.name, got, want)
			}
		} else if got != want {
			t.Errorf("%s:\ngot  %swant %s", row.name, got, want)
		}
	}
	history := s.call(t, "bob", "channels/history", `{"channelId":"`+id+`"}`)
	if n := strings.Count(history, `"sequence":`); n != 4 {
		t.Errorf("%d messages: %s", n, history)
	}
	// An implied type does not change an existing assertion of its source.
	typing := `{"op":"add","statement":{"subject":{"id":"urn:t"},"predicate":{"id":"rdf:type"},"object":{"id":"urn:C"},"certainty":0.3}}`
	if got := publish(typing, ""); !strings.Contains(got, `"statementsAffected":1`) {
		t.Error(got)
	}
	if got := publish(strings.Replace(fact("x", ""), `"urn:s"`, `"urn:t","type":"urn:C"`, 1), ""); !strings.Contains(got, `"statementsAffected":1`) {
		t.Errorf("a type on the side: got %s", got)
	}
}
