package graph

import (
	"context"

	"koine/channels/message"
	"koine/graph/executor"
	"koine/graph/limit"
	"koine/internal/proposals"
	"koine/kg"
)

// readFacts answers Message.facts and TaskCommit.facts: the statements that
// commits asserted and that the operation's view still shows.
func readFacts(ctx context.Context, f *executor.Selected, first *int, find func(context.Context, *run) ([]*kg.Commit, error)) (executor.Value, error) {
	r, err := readInside(ctx, f)
	if err != nil {
		return nil, err
	}
	n, err := r.run.engine.limits.CheckFirst(first, limit.DefaultPageSize)
	if err != nil {
		return nil, err
	}
	plan, err := r.planStatement(r.field.Selections)
	if err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	commits, err := find(ctx, r.run)
	if err != nil {
		return nil, err
	}
	var rows []kg.Row
	for _, c := range commits {
		if rows, err = factsOf(l.snapshot, c, rows, n); err != nil {
			return nil, err
		}
	}
	nodes, err := l.loadStatements(plan, rows)
	if err != nil {
		return nil, err
	}
	return r.answer(statementNodes(nodes)), nil
}

// commitsOf returns the commits that asserted a message's facts: its own and
// that of its proposal, as far as the log has them and the caller may see
// them.
func (r *run) commitsOf(ctx context.Context, m *message.Message) (list []*kg.Commit, err error) {
	revisions := []kg.Revision{m.Revision}
	if m.ProposalID != "" && r.engine.deps.Reviews != nil {
		// The proposal is read as the system: the caller may see its result
		// without being allowed to see the proposal.
		p, err := unlessGone(r.engine.deps.Reviews.Get(ctx, proposals.Caller{Principal: kg.SystemPrincipal()}, m.ProposalID))
		if err != nil {
			return nil, err
		}
		if p != nil && p.AppliedIn != 0 {
			revisions = append(revisions, p.AppliedIn)
		}
	}
	for _, revision := range revisions {
		c, err := r.commitSeen(ctx, revision)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// factsOf appends up to n statements asserted by a commit that the snapshot
// shows with that assertion.
func factsOf(s *kg.Snapshot, c *kg.Commit, rows []kg.Row, n int) ([]kg.Row, error) {
	seen := map[kg.Quad]bool{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if len(rows) == n {
			break
		}
		if ch.Op == kg.Remove || kg.IsOwnGraph(ch.Quad.Graph) || seen[ch.Quad] {
			continue
		}
		seen[ch.Quad] = true
		row, stands, err := assertedIn(s, ch.Quad, c.Revision)
		if err != nil {
			return rows, err
		}
		if stands {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// assertedIn finds a statement that has an assertion made by the commit.
func assertedIn(s *kg.Snapshot, q kg.Quad, revision kg.Revision) (row kg.Row, found bool, err error) {
	p, known, err := s.PatternIDs(kg.Pattern(q))
	if !known || err != nil {
		return row, false, err
	}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return row, false, err
		}
		st, err := s.Statement(row)
		if err != nil {
			return row, false, err
		}
		for _, a := range st.Assertions {
			if a.Revision == revision {
				return row, true, nil
			}
		}
	}
	return row, false, nil
}
