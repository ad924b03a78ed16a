package kgtest

import (
	"fmt"
	"slices"

	"koine/kg"
)

// Model is an executable specification of the store in plain maps. It keeps the whole
// history, scans it for every question, and ignores time, disks and goroutines: a store
// must give the same answers. It is not safe for concurrent use.
type Model struct {
	// Commits are all commits, oldest first: Commits[i] has revision i+1.
	Commits []*kg.Commit
	// Doubts are the agents under quarantine.
	Doubts kg.Doubts

	access  kg.Access
	epoch   kg.Epoch
	past    map[kg.Quad][]version
	changed map[pair]kg.Revision
	// floors are the revisions at which graphs were replaced as a whole, which changed
	// every subject in them. began are those at which graphs were dropped.
	floors, began map[kg.Term]kg.Revision
	answers       map[answerKey]answer
}

// version has the assertions of a statement from a revision on; without assertions, the
// statement is absent.
type version struct {
	from       kg.Revision
	assertions []kg.Assertion
}

type pair struct{ graph, subject kg.Term }

type answerKey struct {
	principal kg.AgentID
	key       string
}

type answer struct {
	hash    [32]byte
	receipt kg.Receipt
}

// NewModel returns the model of an empty store with this epoch and access.
func NewModel(epoch kg.Epoch, access kg.Access) *Model {
	if access == nil {
		access = kg.AllowAll{}
	}
	return &Model{
		access:  access,
		epoch:   epoch,
		past:    map[kg.Quad][]version{},
		changed: map[pair]kg.Revision{},
		floors:  map[kg.Term]kg.Revision{},
		began:   map[kg.Term]kg.Revision{},
		answers: map[answerKey]answer{},
	}
}

// Head returns the newest revision.
func (m *Model) Head() kg.Revision { return kg.Revision(len(m.Commits)) }

// stateAt returns the assertions of the statement in that revision, and since when they
// are unchanged.
func (m *Model) stateAt(q kg.Quad, r kg.Revision) ([]kg.Assertion, kg.Revision) {
	versions := m.past[q]
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; v.from <= r {
			return v.assertions, v.from
		}
	}
	return nil, 0
}

// Answer is the expected result of an update.
type Answer struct {
	// Code is that of the error, "" if there is none.
	Code    kg.Code
	Receipt kg.Receipt
	Changes []kg.Change
}

// Update computes the result of Store.Update with a function that applies the patches.
// The commit, if any, has the revision and time of st.
func (m *Model) Update(meta kg.Meta, patches []kg.Patch, st Stamp) Answer {
	if first, ok := m.answers[m.answerKey(meta)]; ok && meta.IdempotencyKey != "" {
		if first.hash != meta.ContentHash {
			return Answer{Code: kg.CodeIdempotencyConflict}
		}
		first.receipt.Replayed = true
		return Answer{Receipt: first.receipt}
	}
	if meta.HasExpected && meta.ExpectedRevision > m.Head() {
		return Answer{Code: kg.CodeInvalid}
	}
	stage := m.Stage(meta, st)
	for _, p := range patches {
		if code := stage.Apply(p); code != "" {
			return Answer{Code: code}
		}
	}
	if meta.HasExpected && stage.changedAfter(meta.ExpectedRevision) {
		return Answer{Code: kg.CodeRevisionConflict}
	}
	return m.finishStage(stage)
}

func (m *Model) answerKey(meta kg.Meta) answerKey {
	return answerKey{meta.Principal.ID, meta.IdempotencyKey}
}

func (m *Model) finishStage(stage *Stage) Answer {
	meta, changes := stage.meta, stage.Changes
	receipt := kg.Receipt{Revision: m.Head(), DryRun: meta.DryRun, Affected: len(changes)}
	for _, c := range changes {
		if !slices.Contains(receipt.Subjects, c.Quad.Subject) {
			receipt.Subjects = append(receipt.Subjects, c.Quad.Subject)
		}
	}
	if !meta.DryRun && (len(changes) > 0 || meta.IdempotencyKey != "") {
		m.commitStage(stage)
		receipt.Committed, receipt.Revision, receipt.Time = true, m.Head(), stage.stamp.Time
	}
	receipt.Position = kg.Position{Epoch: m.epoch, Revision: receipt.Revision, Index: kg.EndOfCommit}
	if receipt.Committed && meta.IdempotencyKey != "" {
		m.answers[m.answerKey(meta)] = answer{meta.ContentHash, receipt}
	}
	return Answer{Receipt: receipt, Changes: changes}
}

func (m *Model) commitStage(stage *Stage) {
	meta := stage.meta
	m.Commits = append(m.Commits, &kg.Commit{
		Revision: m.Head() + 1, Time: stage.stamp.Time,
		Principal: meta.Principal.ID, Actor: actor(meta),
		Justification: meta.Justification, TaskID: meta.TaskID, SessionID: meta.SessionID, MessageID: meta.MessageID,
		IdempotencyKey: meta.IdempotencyKey, ContentHash: meta.ContentHash,
		Changes: stage.Changes,
	})
	for _, c := range stage.Changes {
		m.changed[pair{c.Quad.Graph, c.Quad.Subject}] = m.Head()
	}
	for q, assertions := range stage.current {
		m.past[q] = append(m.past[q], version{m.Head(), assertions})
	}
}

// Replay applies a commit that a store reports. It fails if the commit does not follow from the
// previous state.
func (m *Model) Replay(c *kg.Commit) error {
	if c.Revision != m.Head()+1 {
		return fmt.Errorf("commit %d comes after commit %d", c.Revision, m.Head())
	}
	if n := len(m.Commits); n > 0 && c.Time.Before(m.Commits[n-1].Time) {
		return fmt.Errorf("commit %d is older than the one before it", c.Revision)
	}
	stage := m.Stage(metaOf(c), Stamp{Revision: c.Revision, Time: c.Time})
	for i, change := range c.Changes {
		before, since := stage.assertionsOf(change.Quad)
		got := fmt.Sprintf("%s since %d", assertionsText(change.Before), change.Since)
		if want := fmt.Sprintf("%s since %d", assertionsText(before), since); got != want {
			return fmt.Errorf("commit %d, change %d: before is %s, but was %s", c.Revision, i, got, want)
		}
		stage.current[change.Quad] = change.After
		stage.Changes = append(stage.Changes, change)
	}
	m.commitStage(stage)
	return nil
}

func metaOf(c *kg.Commit) kg.Meta {
	return kg.Meta{
		Principal: kg.Principal{ID: c.Principal}, Actor: c.Actor,
		Justification: c.Justification, TaskID: c.TaskID, SessionID: c.SessionID, MessageID: c.MessageID,
		IdempotencyKey: c.IdempotencyKey, ContentHash: c.ContentHash,
	}
}

func actor(m kg.Meta) kg.AgentID {
	if m.Actor != "" {
		return m.Actor
	}
	return m.Principal.ID
}
