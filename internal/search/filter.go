package search

import (
	"context"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/internal/textindex"
	"koine/kg"
)

// MaxFilterValues bounds each list of a Filter.
const MaxFilterValues = 100

// Filter is a condition on hits. All fields that are given must hold, a list by one of its
// elements; nil is not given, and an empty list holds for nothing. Hits with a filter are
// some of those without, and each of their texts has the same score: a filter does not change
// how often words count as used.
type Filter struct {
	// Classes are those of the entity, in the snapshot.
	Classes []kg.Term
	// Predicates and Graphs are those of the statement with the text.
	Predicates, Graphs []kg.Term
	// Channels are those that the message is in.
	Channels []channel.ID
	AssertionFilter
	// Match is a condition on the surroundings of the entity, nil for none.
	Match *MatchFilter
}

// AssertionFilter is a condition on the assertions of the statement with the text: one of them
// must meet all of it. A message is asserted by its author when it is sent.
type AssertionFilter struct {
	Authors []kg.AgentID
	// Recorded is the span of time in which it was asserted; the zero span is not given.
	Recorded kg.TimeSpan
	// MinCertainty is from 0 to 1. An assertion without a certainty counts as 1.
	MinCertainty float64
}

func (f *AssertionFilter) isZero() bool {
	return f.Authors == nil && f.Recorded.IsZero() && f.MinCertainty == 0
}

// admitsAssertion reports whether an assertion meets the condition.
func (f *AssertionFilter) admitsAssertion(a *kg.Assertion) bool {
	return (f.Authors == nil || slices.Contains(f.Authors, a.Source)) && f.Recorded.Contains(a.Time) && a.EffectiveCertainty() >= f.MinCertainty
}

// MatchFilter is the condition that an entity is the value of a variable in a solution of a pattern.
type MatchFilter struct {
	Var      string // without "?"
	Pattern  *query.PatternInput
	Compiler query.Compiler
	Limits   pattern.Limits
}

// check returns an error if the filter is not valid.
func (f *Filter) check() error {
	for _, list := range []struct {
		name string
		n    int
	}{
		{"classes", len(f.Classes)}, {"predicates", len(f.Predicates)}, {"graphs", len(f.Graphs)}, {"channelIds", len(f.Channels)}, {"authorIds", len(f.Authors)},
	} {
		if list.n > MaxFilterValues {
			e := kg.Errorf(kg.CodeLimitExceeded, "%s lists %d values; a filter has at most %d", list.name, list.n, MaxFilterValues)
			e.Hint = "Search several times, or use match for conditions on entities."
			return e.At(list.name)
		}
	}
	if !(f.MinCertainty >= 0 && f.MinCertainty <= 1) {
		return kg.Errorf(kg.CodeInvalid, "minCertainty is %v; it must be from 0 to 1", f.MinCertainty).At("minCertainty")
	}
	if r := f.Recorded; !r.From.IsZero() && !r.Until.IsZero() && r.Until.Before(r.From) {
		return kg.Errorf(kg.CodeInvalid, "until %s is before since %s", r.Until.Format(time.RFC3339), r.From.Format(time.RFC3339)).At("until")
	}
	return nil
}

// compiledFilter is a Filter for the statements of one snapshot. Its methods are for one
// goroutine.
type compiledFilter struct {
	*Filter
	ctx      context.Context
	snapshot *kg.Snapshot

	classes, predicates, graphs idSet
	inChannel                   map[kg.ID]bool // whether a graph belongs to one of the channels
	typeID                      kg.ID          // of rdf:type; zero if no statement has it
	match                       *compiledMatch
}

// idSet is a set of ids; nil has all.
type idSet map[kg.ID]struct{}

func (s idSet) has(id kg.ID) bool {
	if s == nil {
		return true
	}
	_, ok := s[id]
	return ok
}

// idsOf returns the ids of terms. Unknown terms have none.
func idsOf(snapshot *kg.Snapshot, terms []kg.Term) (idSet, error) {
	if terms == nil {
		return nil, nil
	}
	set := idSet{}
	for _, t := range terms {
		id, known, err := snapshot.ID(t)
		if err != nil {
			return nil, err
		}
		if known {
			set[id] = struct{}{}
		}
	}
	return set, nil
}

// compile prepares the filter for a snapshot.
func (f *Filter) compile(ctx context.Context, snapshot *kg.Snapshot) (c *compiledFilter, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c = &compiledFilter{Filter: f, ctx: ctx, snapshot: snapshot, inChannel: map[kg.ID]bool{}}
	if c.classes, err = idsOf(snapshot, f.Classes); err != nil {
		return nil, err
	}
	if c.predicates, err = idsOf(snapshot, f.Predicates); err != nil {
		return nil, err
	}
	if c.graphs, err = idsOf(snapshot, f.Graphs); err != nil {
		return nil, err
	}
	if c.typeID, _, err = snapshot.ID(query.RDFType); err != nil {
		return nil, err
	}
	if f.Match != nil {
		c.match, err = f.Match.compile(ctx, snapshot)
	}
	return c, err
}

// admitsGroup reports whether texts of a predicate in a graph may be those of hits.
func (c *compiledFilter) admitsGroup(graph, predicate kg.ID) (bool, error) {
	if !c.graphs.has(graph) || !c.predicates.has(predicate) {
		return false, nil
	}
	if c.Channels == nil {
		return true, nil
	}
	in, known := c.inChannel[graph]
	if !known {
		name, err := c.snapshot.Term(graph)
		if err != nil {
			return false, err
		}
		if channel.HoldsMessages(name) {
			id, _ := channel.OfGraph(name)
			in = slices.Contains(c.Channels, id)
		}
		c.inChannel[graph] = in
	}
	return in, nil
}

// admitsText reports whether a statement that the snapshot shows may be that of a hit, apart
// from its group.
func (c *compiledFilter) admitsText(q kg.IDQuad) (bool, error) {
	if c.AssertionFilter.isZero() {
		return true, nil
	}
	list, err := c.assertionsOf(q)
	return len(list) > 0, err
}

// assertionsOf returns the assertions of a statement that the filter admits.
func (c *compiledFilter) assertionsOf(q kg.IDQuad) (list []kg.Assertion, err error) {
	for row, err := range c.snapshot.MatchAsserted(kg.IDPattern(q), nil) {
		if err != nil {
			return nil, err
		}
		all, err := c.snapshot.Assertions(row)
		if err != nil || c.AssertionFilter.isZero() {
			return all, err
		}
		for i := range all {
			if c.AssertionFilter.admitsAssertion(&all[i]) {
				list = append(list, all[i])
			}
		}
	}
	return list, nil
}

// admitsSubject reports whether an entity or a message may be a hit, apart from its texts.
func (c *compiledFilter) admitsSubject(subject kg.ID) (bool, error) {
	if c.classes != nil {
		if c.typeID.IsZero() {
			return false, nil
		}
		some := false
		for class := range c.classes {
			shown, err := query.Shows(c.snapshot, kg.IDPattern{Subject: subject, Predicate: c.typeID, Object: class})
			if err != nil {
				return false, err
			}
			if some = shown; some {
				break
			}
		}
		if !some {
			return false, nil
		}
	}
	return c.match.admitsSubject(subject)
}

// ofTexts returns the filter as the index of texts uses it. The functions note the first
// error of a decision about groups in failed.
func (c *compiledFilter) ofTexts(failed *error) (out textindex.Filter) {
	if c.Predicates != nil || c.Graphs != nil || c.Channels != nil {
		out.Group = func(graph, predicate kg.ID) bool {
			ok, err := c.admitsGroup(graph, predicate)
			if err != nil && *failed == nil {
				*failed = err
			}
			return ok && err == nil
		}
	}
	if !c.AssertionFilter.isZero() {
		out.Text = func(subject kg.ID, text textindex.Ref) (bool, error) { return c.admitsText(rowOf(subject, text)) }
	}
	if c.classes != nil || c.match != nil {
		out.Subject = c.admitsSubject
	}
	return out
}
