package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"koine/kg"
)

const salary = "https://example.org/salary"

// mostPending is how many proposals one reviewWitness leaves undecided.
const mostPending = 10

// reviewWitness proposes updates, which a rule holds, and has them approved or
// rejected, at once or later.
type reviewWitness struct {
	name             string
	dice             *rand.Rand
	author, reviewer string // keys
	asked            int
	proposals        map[string]*heldUpdate
	order, pending   []*heldUpdate
	// Interrupted requests.
	holding, deciding *heldUpdate
}

// heldUpdate is the known state of a proposal.
type heldUpdate struct {
	id, key, subject string
	decision         string // that was acknowledged or is under way
	now              proposal
}

type proposal struct {
	Status          string
	ApprovalCount   int
	AppliedRevision kg.Revision
	Reviews         []struct{ Decision string }
}

func (p proposal) String() string {
	return fmt.Sprintf("%s with %d approvals, applied in %d, reviews %v", p.Status, p.ApprovalCount, p.AppliedRevision, p.Reviews)
}

// ended is the status that a decision leads to.
var ended = map[string]string{"": "PENDING", "APPROVE": "APPLIED", "REJECT": "REJECTED"}

func (w *reviewWitness) act(c asker) error {
	if len(w.pending) < mostPending && (len(w.pending) == 0 || w.dice.IntN(2) == 0) {
		w.asked++
		key := fmt.Sprint(w.name, "/", w.asked)
		w.holding = &heldUpdate{key: key, subject: "urn:kill:" + key, now: proposal{Status: "PENDING"}}
		id, err := w.hold(c, w.holding)
		if err != nil {
			return err
		}
		w.keep(id)
		return nil
	}
	i := w.dice.IntN(len(w.pending))
	p := w.pending[i]
	w.pending = append(w.pending[:i], w.pending[i+1:]...)
	p.decision = "APPROVE"
	if w.dice.IntN(3) == 0 {
		p.decision = "REJECT"
	}
	w.deciding = p
	now, err := w.decide(c, p)
	if err != nil {
		return err
	}
	p.now, w.deciding = now, nil
	return w.whole(p)
}

// hold requests an update, and returns its proposal.
func (w *reviewWitness) hold(c asker, p *heldUpdate) (id string, err error) {
	var out struct {
		ApplyPatches struct{ VerificationStatus, ProposalID string }
	}
	err = c.ask(w.author, fmt.Sprintf(`mutation { applyPatches(input: {idempotencyKey: %q, patches: [{op: add, statement: {subject: {id: %q}, predicate: {id: %q}, object: {value: 5000}}}]}) { verificationStatus proposalId } }`,
		p.key, p.subject, salary), &out)
	if err == nil && (out.ApplyPatches.VerificationStatus != "Pending Review" || out.ApplyPatches.ProposalID == "") {
		err = fmt.Errorf("%s was not held: %+v", p.key, out)
	}
	return out.ApplyPatches.ProposalID, err
}

// keep takes note of the proposal that the update under way became.
func (w *reviewWitness) keep(id string) {
	p := w.holding
	p.id, w.holding = id, nil
	w.proposals[id] = p
	w.order, w.pending = append(w.order, p), append(w.pending, p)
}

const proposalFields = `{ status approvalCount appliedRevision reviews { decision } }`

func (w *reviewWitness) decide(c asker, p *heldUpdate) (proposal, error) {
	var out struct{ ReviewProposal struct{ Proposal proposal } }
	err := c.ask(w.reviewer, fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: %s}) { proposal `+proposalFields+` } }`, p.id, p.decision), &out)
	return out.ReviewProposal.Proposal, err
}

// whole reports whether the decision is there completely, or not at all.
func (w *reviewWitness) whole(p *heldUpdate) error {
	applied, decided := p.now.Status == "APPLIED", p.now.Status != "PENDING"
	if p.now.Status != "PENDING" && p.now.Status != ended[p.decision] ||
		applied != (p.now.AppliedRevision > 0) || applied != (p.now.ApprovalCount == 1) || decided != (len(p.now.Reviews) == 1) ||
		decided && p.now.Reviews[0].Decision != p.decision {
		return fmt.Errorf("the proposal %s (decision %q) is %s", p.id, p.decision, p.now)
	}
	return nil
}

func (w *reviewWitness) check(c asker) error {
	if p := w.holding; p != nil {
		id, err := w.hold(c, p)
		if err != nil {
			return err
		}
		if again, err := w.hold(c, p); err != nil || again != id {
			return fmt.Errorf("%s became the proposals %s and %s: %w", p.key, id, again, err)
		}
		w.keep(id)
	}
	if p := w.deciding; p != nil {
		if err := w.settle(c, p); err != nil {
			return err
		}
		w.deciding = nil
	}
	for _, i := range newest(w.dice, len(w.order)) {
		if err := w.stands(c, w.order[i]); err != nil {
			return err
		}
	}
	for _, p := range w.pending {
		if err := w.stands(c, p); err != nil {
			return err
		}
	}
	return nil
}

// settle repeats the interrupted decision, if it was not made.
func (w *reviewWitness) settle(c asker, p *heldUpdate) (err error) {
	if p.now, err = w.read(c, p); err != nil {
		return err
	}
	if err := errors.Join(w.whole(p), w.stands(c, p)); err != nil {
		return err
	}
	before := p.now
	again, err := w.decide(c, p)
	if codeOf(err) == "PROPOSAL_CLOSED" && before.Status != "PENDING" {
		return nil
	}
	if err != nil {
		return err
	}
	if p.now = again; before.Status != "PENDING" && again.AppliedRevision != before.AppliedRevision {
		return fmt.Errorf("the proposal %s was %s and is %s", p.id, before, again)
	}
	if p.now.Status == "PENDING" {
		return fmt.Errorf("the proposal %s is not decided: %s", p.id, p.now)
	}
	return w.whole(p)
}

func (w *reviewWitness) read(c asker, p *heldUpdate) (proposal, error) {
	var out struct{ Proposal proposal }
	err := c.ask(w.author, fmt.Sprintf(`{ proposal(id: %q) `+proposalFields+` }`, p.id), &out)
	return out.Proposal, err
}

// stands reports whether the proposal is as acknowledged, and its statement there exactly
// if it was applied.
func (w *reviewWitness) stands(c asker, p *heldUpdate) error {
	now, err := w.read(c, p)
	if err != nil {
		return err
	}
	if fmt.Sprint(now) != fmt.Sprint(p.now) {
		return fmt.Errorf("the proposal %s was %s when it was acknowledged, and is %s", p.id, p.now, now)
	}
	var out struct{ Statements struct{ TotalCount int } }
	if err := c.ask(w.author, fmt.Sprintf(`{ statements(where: {subject: {eq: %q}}) { totalCount } }`, p.subject), &out); err != nil {
		return err
	}
	if (out.Statements.TotalCount == 1) != (now.Status == "APPLIED") || out.Statements.TotalCount > 1 {
		return fmt.Errorf("the proposal %s is %s, and %d statements of it are there", p.id, now, out.Statements.TotalCount)
	}
	return nil
}

// replay finds the patches of each applied proposal in exactly one commit, the reported
// one, and those of the others in none.
func (w *reviewWitness) replay(commits []*kg.Commit) error {
	applied := map[string][]kg.Revision{}
	for _, c := range commits {
		for i := range c.Changes {
			if q := &c.Changes[i].Quad; q.Graph == kg.DefaultGraph && q.Predicate.Value() == salary {
				applied[q.Subject.Value()] = append(applied[q.Subject.Value()], c.Revision)
				if p := w.proposals[c.ProposalID]; p != nil && p.subject != q.Subject.Value() {
					return fmt.Errorf("revision %d applied %s for the proposal %s", c.Revision, q.Subject, p.id)
				}
			}
		}
	}
	for _, p := range w.order {
		got := applied[p.subject]
		sure := p != w.deciding
		if len(got) > 1 || sure && (len(got) == 1) != (p.now.Status == "APPLIED") || sure && len(got) == 1 && got[0] != p.now.AppliedRevision {
			return fmt.Errorf("the proposal %s, %s, was applied in the revisions %v", p.id, p.now, got)
		}
	}
	return nil
}

// updateWitness makes updates of two statements with idempotency keys, and repeats some.
type updateWitness struct {
	name, agent  string
	dice         *rand.Rand
	asked        int
	keys         []string
	acknowledged map[string]kg.Revision
	flying       string
}

func (w *updateWitness) act(c asker) error {
	if len(w.keys) > 0 && w.dice.IntN(4) == 0 {
		return w.again(c, w.keys[w.dice.IntN(len(w.keys))])
	}
	w.asked++
	w.flying = fmt.Sprint(w.name, "/", w.asked)
	return w.settle(c)
}

func (w *updateWitness) settle(c asker) error {
	r, err := w.put(c, w.flying)
	if err != nil {
		return err
	}
	w.acknowledged[w.flying] = r
	w.keys, w.flying = append(w.keys, w.flying), ""
	return nil
}

func (w *updateWitness) put(c asker, key string) (kg.Revision, error) {
	var out struct {
		ApplyPatches struct{ Revision kg.Revision }
	}
	statement := func(predicate string) string {
		return fmt.Sprintf(`{op: add, statement: {subject: {id: "urn:kill:%s"}, predicate: {id: %q}, object: {value: 1}}}`, key, predicate)
	}
	err := c.ask(w.agent, fmt.Sprintf(`mutation { applyPatches(input: {idempotencyKey: %q, patches: [%s, %s]}) { revision } }`, key, statement("urn:kill:one"), statement("urn:kill:two")), &out)
	return out.ApplyPatches.Revision, err
}

func (w *updateWitness) again(c asker, key string) error {
	r, err := w.put(c, key)
	if err == nil && r != w.acknowledged[key] {
		err = fmt.Errorf("the update %s was acknowledged as revision %d, and asked again it is %d", key, w.acknowledged[key], r)
	}
	return err
}

func (w *updateWitness) check(c asker) error {
	if w.flying != "" {
		if err := w.settle(c); err != nil {
			return err
		}
	}
	for _, i := range newest(w.dice, len(w.keys)) {
		if err := w.again(c, w.keys[i]); err != nil {
			return err
		}
	}
	return nil
}

// replay finds both statements of each update in exactly one commit, the reported one.
func (w *updateWitness) replay(commits []*kg.Commit) error {
	made := map[string]kg.Revision{}
	for _, c := range commits {
		if c.IdempotencyKey == "" || len(c.Changes) == 0 || c.Changes[0].Quad.Subject.Value() != "urn:kill:"+c.IdempotencyKey || c.ProposalID != "" {
			continue
		}
		if before, twice := made[c.IdempotencyKey]; twice || len(c.Changes) != 2 {
			return fmt.Errorf("the update %s is %d changes of revision %d, and revision %d", c.IdempotencyKey, len(c.Changes), c.Revision, before)
		}
		made[c.IdempotencyKey] = c.Revision
	}
	for key, r := range w.acknowledged {
		if made[key] != r {
			return fmt.Errorf("the update %s was acknowledged as revision %d, the log has it as %d", key, r, made[key])
		}
	}
	return nil
}
