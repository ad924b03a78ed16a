package proposals

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Hold turns a held update into a proposal (kg.Holder). It fails with CodeLimitExceeded
// if its author has too many open proposals or its patches are too large. Submitting it
// again with the same message (kg.Meta.WhenHeld) returns the existing proposal.
func (s *Service) Hold(tx *kg.Tx, h *kg.HeldUpdate) (string, error) {
	pieces, err := encodePatches(h.Patches)
	if err != nil {
		return "", err
	}
	if first, err := findPending(tx, h, pieces); err != nil || first != "" {
		return first, err
	}
	if err := s.expireOne(tx); err != nil {
		return "", err
	}
	return s.writeProposal(tx, h, pieces)
}

// writeProposal writes a new proposal, unless its author has too many.
func (s *Service) writeProposal(tx *kg.Tx, h *kg.HeldUpdate, pieces []string, more ...property) (string, error) {
	author := h.Meta.Principal
	if open := s.table.lists.countOpen(author.ID, tx.Time()); open >= s.options.OpenPerAgent {
		e := kg.Errorf(kg.CodeLimitExceeded, "the author has %d proposals waiting for review, the limit", open)
		e.Hint = "Wait until some are decided, or withdraw some."
		return "", e
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("an id for a proposal: %w", err)
	}
	w := &writer{tx: tx, graph: graphOf(id.String()), source: author.ID}
	w.writeDescription(h, s.options.Expires)
	w.addProperty(propPatchCount, kg.Integer(int64(len(h.Patches))))
	for _, at := range placesOf(h.Patches) {
		w.addProperty(propAbout, at.toTerm())
	}
	for _, piece := range pieces {
		w.addProperty(propPatches, kg.String(piece))
	}
	for _, p := range more {
		w.addText(p.name, p.text)
	}
	w.writePending(pendingOf(id.String()), h.Patches)
	return id.String(), w.err
}

// property is a further text property of a proposal.
type property struct {
	name kg.Term
	text string
}

// writer writes statements about a proposal.
type writer struct {
	tx     *kg.Tx
	graph  kg.Term // of the proposal
	source kg.AgentID
	err    error
}

// addAbout adds a statement about a subject in the proposal's graph.
func (w *writer) addAbout(subject, property, object kg.Term) {
	w.applyPatch(kg.Patch{Op: kg.Add, Source: w.source, Quad: kg.Quad{Subject: subject, Predicate: property, Object: object, Graph: w.graph}})
}

// addProperty adds a statement about the proposal.
func (w *writer) addProperty(property, object kg.Term) { w.addAbout(w.graph, property, object) }

// addText adds a text property, unless it is empty.
func (w *writer) addText(property kg.Term, text string) {
	if text != "" {
		w.addProperty(property, kg.String(text))
	}
}

func (w *writer) applyPatch(p kg.Patch) {
	if w.err == nil {
		w.err = w.tx.ApplyOwn(p)
	}
}

// writeDescription writes everything but the patches.
func (w *writer) writeDescription(h *kg.HeldUpdate, expires time.Duration) {
	m, hold := &h.Meta, h.Verdict.Hold
	if hold == nil {
		hold = &kg.Hold{}
	}
	if hold.Expires > 0 {
		expires = hold.Expires
	}
	rights, err := json.Marshal(authority{Roles: m.Principal.Roles, ActFor: m.Principal.ActFor, Method: m.Principal.Method, Key: m.Principal.Key})
	if err != nil {
		w.err = err
		return
	}
	w.addProperty(rdfType, classProposal)
	w.addProperty(propAuthor, kg.IRI(string(m.Principal.ID)))
	w.addProperty(propActor, kg.IRI(string(m.Actor)))
	w.addProperty(propAuthority, kg.String(string(rights)))
	w.addProperty(propCreated, kg.DateTime(w.tx.Time()))
	w.addProperty(propExpires, kg.DateTime(w.tx.Time().Add(expires)))
	w.addProperty(propRequired, kg.Integer(int64(max(1, hold.Approvals))))
	roles := hold.Roles
	if roles == nil {
		roles = []string{kg.RoleReviewer}
	}
	for _, role := range roles {
		w.addText(propReviewerRole, role)
	}
	for _, rule := range hold.Rules {
		w.addText(propRule, rule)
	}
	w.addText(propReason, h.Verdict.Details)
	w.addText(propJustification, m.Justification)
	w.addText(propTask, m.TaskID)
	w.addText(propSession, m.SessionID)
	w.addText(propMessage, m.MessageID)
	if m.HasExpected {
		w.addProperty(propExpected, kg.Integer(int64(m.ExpectedRevision)))
	}
	w.addProperty(propStatus, kg.String(string(Pending)))
}

// writePending writes the statements that the patches would add to the pending graph.
func (w *writer) writePending(graph kg.Term, patches []kg.Patch) {
	for _, p := range patches {
		if p.Op == kg.Remove {
			continue
		}
		q := p.Quad
		q.Graph = graph
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: q, Source: p.Source, Certainty: p.Certainty, HasCertainty: p.HasCertainty, Validity: p.Validity, Provenance: p.Provenance, Embedding: p.Embedding})
	}
}

// endProposal sets the final status of a proposal and clears its pending graph. why is for
// the author of a held message.
func (s *Service) endProposal(tx *kg.Tx, id string, status Status, by kg.AgentID, why string) error {
	if err := s.endMessage(tx, id, status, by, why); err != nil {
		return err
	}
	w := &writer{tx: tx, graph: graphOf(id), source: by}
	w.applyPatch(kg.Patch{Op: kg.Replace, Source: by, Quad: kg.Quad{Subject: w.graph, Predicate: propStatus, Object: kg.String(string(status)), Graph: w.graph}})
	w.addProperty(propEnded, kg.DateTime(tx.Time()))
	return cmp.Or(w.err, systemgraph.Remove(tx, kg.Pattern{Graph: pendingOf(id)}))
}

// expireOne records the expiry of one proposal, in a commit about proposals that is made
// anyway. It counts as expired before that. It is one only, because the commit must
// stay below kg.MaxCommitBytes with up to MaxPatchBytes of patches and its own content.
// The commit's own proposal is not expired.
func (s *Service) expireOne(tx *kg.Tx) error {
	if id := s.table.lists.firstExpired(tx.Time()); id != "" {
		return s.endProposal(tx, id, Expired, kg.System, "It was not reviewed in time.")
	}
	return nil
}

// findPending returns the pending proposal with the same patches, author and message, "" for
// none. Only a caller that handles the message of a held update (kg.Meta.WhenHeld)
// submits it again.
func findPending(tx *kg.Tx, h *kg.HeldUpdate, pieces []string) (id string, err error) {
	if h.Meta.MessageID == "" || h.Meta.WhenHeld == nil {
		return "", nil
	}
	with, err := systemgraph.Quads(tx.MatchOwn, kg.Pattern{Predicate: propMessage, Object: kg.String(h.Meta.MessageID)})
	if err != nil {
		return "", err
	}
	for _, q := range with {
		one, ok := strings.CutPrefix(q.Subject.Value(), kg.ProposalGraphPrefix)
		if !ok || q.Subject != q.Graph {
			continue
		}
		p, err := readProposal(tx.MatchOwn, one, false)
		if err != nil {
			return "", err
		}
		if p == nil || p.statusAt(tx.Time()).Status != Pending || p.Author != h.Meta.Principal.ID || p.Actor != h.Meta.Actor {
			continue
		}
		if same, err := hasPatches(tx, one, pieces); err != nil || same {
			return one, err
		}
	}
	return "", nil
}

// hasPatches reports whether the proposal has exactly these patches.
func hasPatches(tx *kg.Tx, id string, pieces []string) (bool, error) {
	quads, err := systemgraph.Quads(tx.MatchOwn, kg.Pattern{Subject: graphOf(id), Predicate: propPatches, Graph: graphOf(id)})
	if err != nil {
		return false, err
	}
	var has []string
	for i := range quads {
		has = append(has, quads[i].Object.Value())
	}
	return slices.Equal(slices.Sorted(slices.Values(has)), slices.Sorted(slices.Values(pieces))), nil
}
