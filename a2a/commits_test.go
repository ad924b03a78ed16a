package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/kg"
)

// selected returns the selection of the subscription in an event.
func selected(t *testing.T, block string) (op, data, position string) {
	t.Helper()
	var e struct {
		Result struct {
			Op             string
			ChangeMetadata struct {
				Data     json.RawMessage
				Position string
			}
		}
	}
	for line := range strings.SplitSeq(block, "\n") {
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatalf("%v in %s", err, block)
			}
		}
	}
	return e.Result.Op, string(e.Result.ChangeMetadata.Data), e.Result.ChangeMetadata.Position
}

// A subscription by commits has an event for each change of a commit. The selection
// goes with the last, so that a client that is cut off in between and resumes gets it
// once.
func TestSubscribeCommitByCommit(t *testing.T) {
	for name, row := range map[string]struct{ query, snapshot, data string }{
		"an entity": {
			`subscription { entityChanged(iri: "urn:s") { ... on EntityChange { entity { iri } changes { op } snapshot } } }`,
			"",
			`{"entityChanged":{"entity":{"iri":"urn:s"},"changes":[%s],"snapshot":false}}`,
		},
		"a pattern": {
			`subscription { matchChanged(pattern: {triples: [{s: "?s", p: "<urn:p>", o: "?o"}]}) { ... on MatchChange { added { values } removed { values } changes { op } snapshot } } }`,
			"",
			`{"matchChanged":{"added":[{"values":["urn:s","1"]},{"values":["urn:s","2"]}],"removed":[],"changes":[%s],"snapshot":false}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(t)
			sub := s.subscribeTo(t, row.query, `{"koine":{"resume":"snapshot"}}`)
			block := sub.block()
			op, data, start := selected(t, block)
			if data != row.snapshot || strings.Contains(block, `"statement"`) {
				t.Fatalf("the snapshot is %s %s", op, block)
			}
			if row.snapshot == "" { // the position alone
				start = strings.TrimSuffix(strings.TrimPrefix(block, "id: "), "\n\n")
			}
			receipt, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
				if err := tx.Apply(patch(kg.Add, "urn:s", kg.String("1"), "")); err != nil {
					return err
				}
				return tx.Apply(patch(kg.Add, "urn:s", kg.String("2"), ""))
			})
			if err != nil {
				t.Fatal(err)
			}
			end := s.store.FormatPosition(receipt.Position)
			const one = `{"op":"add"}`
			_, data, within := selected(t, sub.block())
			if data != "" || within == end {
				t.Errorf("with the first change: %q at %s", data, within)
			}
			if _, data, at := selected(t, sub.block()); data != fmt.Sprintf(row.data, one+","+one) || at != end {
				t.Errorf("with the last change: %q at %s, want it at %s", data, at, end)
			}
			// Again from each position, and over the plain subscription.
			for from, want := range map[string]string{start: one + "," + one, within: one} {
				again := s.subscribeTo(t, row.query, `{"koine":{"resume":"`+from+`"}}`)
				if from == start {
					again.block()
				}
				if _, data, at := selected(t, again.block()); data != fmt.Sprintf(row.data, want) || at != end {
					t.Errorf("resumed: got %q at %s, want %q", data, at, fmt.Sprintf(row.data, want))
				}
			}
			rest := s.subscribe(t, `{"koine":{"resume":"`+within+`"}}`)
			if e := rest.event(); e.Statement.Object.Value != "2" {
				t.Errorf("behind %s statementChanged tells %s", within, e.say())
			}
		})
	}
}
