package channels_test

import (
	"context"
	"encoding/json"
	"fmt"

	"koine/kg"
)

type jsonText = json.RawMessage

// judge gives its verdict on updates that change anything but koine's own.
type judge struct{ verdict kg.Verdict }

func (j *judge) Verify(_ context.Context, of kg.Judgement) (kg.Verdict, error) {
	for _, c := range of.Changes {
		if !kg.Reserved(c.Quad) {
			return j.verdict, nil
		}
	}
	return kg.Verdict{}, nil
}

// holder stores held updates.
type holder struct{ held []*kg.HeldUpdate }

func (h *holder) Hold(tx *kg.Tx, held *kg.HeldUpdate) (string, error) {
	h.held = append(h.held, held)
	id := fmt.Sprint("p", len(h.held))
	graph := kg.IRI(kg.ProposalGraphPrefix + id)
	return id, tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: graph, Predicate: kg.IRI(kg.RDFType), Object: kg.IRI(kg.OwnVocabulary + "Proposal"), Graph: graph}})
}
