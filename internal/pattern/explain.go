package pattern

import "fmt"

// Step is one step of a plan, in the order in which they are taken: each does
// its part for every row of the one before it.
type Step struct {
	// Kind is scan (the first of a group), join (a scan for each row), merge
	// (a scan or join that walks other triples beside it), path, filter, union,
	// optional, notExists or compare.
	Kind string
	// Pattern is what the step is about, as SPARQL writes it.
	Pattern string
	// Index is the order of the index that is read, "" for none.
	Index string
	// Merged are the triples that a merge walks beside Pattern.
	Merged []string
	// Estimate is how many rows were expected behind the step, for one run of
	// the group that it is in.
	Estimate float64
	// Runs, Statements and Rows are how often the step was taken, what it read
	// and how many rows it gave.
	Runs, Statements, Rows int64
	Groups                 [][]Step
}

// Explain is the plan with what has been done so far.
func (e *Evaluation) Explain() []Step { return e.explain(e.plan) }

// StatementsRead is how many statements were read so far, for the plan as well.
func (e *Evaluation) StatementsRead() int64 { return e.machine.read }

// RowsMade is how many rows all steps have handed on so far.
func (e *Evaluation) RowsMade() int64 { return e.machine.made }

func (e *Evaluation) explain(p *plan) []Step {
	out := make([]Step, 0, len(p.steps))
	joined := false
	for _, s := range p.steps {
		step := Step{Index: s.order, Estimate: s.estimate, Runs: s.runs, Statements: s.read, Rows: s.rows}
		switch s.kind {
		case scanStep, pathStep:
			step.Pattern = s.triple.of.String()
			step.Kind = "scan"
			if joined {
				step.Kind = "join"
			}
			if s.kind == pathStep {
				step.Kind = "path"
			}
			for _, c := range s.merged {
				step.Kind = "merge"
				step.Merged = append(step.Merged, c.triple.of.String())
			}
			joined = true
		case filterStep:
			step.Kind, step.Pattern = "filter", s.filter.text
		case unionStep:
			step.Kind = "union"
			joined = true
		case optionalStep:
			step.Kind = "optional"
		case absentStep:
			step.Kind = "notExists"
		case mergeStep:
			step.Kind = "compare"
			step.Pattern = fmt.Sprintf("?%s", e.nameOf(s.merge.outer))
		}
		for _, g := range s.groups {
			step.Groups = append(step.Groups, e.explain(g))
		}
		out = append(out, step)
	}
	return out
}

// nameOf is the variable with this slot.
func (e *Evaluation) nameOf(slot int) string {
	if slot < len(e.pattern.names) {
		return e.pattern.names[slot]
	}
	return fmt.Sprint(slot)
}
