package graph

import (
	"context"
	"iter"

	"koine/channels/message"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/proposals"
	"koine/kg"
)

// readFacts answers Message.facts and TaskCommit.facts: the statements that
// commits asserted and that the operation's view still shows. of names the
// object that has the list.
func readFacts(ctx context.Context, f *executor.Selected, of string, a knowledge.PageArgs, find func(context.Context, *run) ([]*kg.Commit, error)) (executor.Value, error) {
	return knowledge.ReadFacts(ctx, f, of, a, func(s *kg.Snapshot) (iter.Seq2[kg.Row, error], error) {
		commits, err := find(ctx, runOf(ctx))
		return factsOf(s, commits), err
	})
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

// factsOf yields the statements asserted by commits that the snapshot shows with
// those assertions, each once.
func factsOf(s *kg.Snapshot, commits []*kg.Commit) iter.Seq2[kg.Row, error] {
	return func(yield func(kg.Row, error) bool) {
		seen := map[kg.Quad]bool{}
		for _, c := range commits {
			for i := range c.Changes {
				ch := &c.Changes[i]
				if ch.Op == kg.Remove || kg.IsOwnGraph(ch.Quad.Graph) || seen[ch.Quad] {
					continue
				}
				row, stands, err := assertedIn(s, ch.Quad, c.Revision)
				if seen[ch.Quad] = stands; err != nil || stands {
					if !yield(row, err) || err != nil {
						return
					}
				}
			}
		}
	}
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
