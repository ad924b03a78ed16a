package pattern

import (
	"fmt"

	"koine/kg"
)

// Step describes one step of a plan. Steps run in order, each once for every row
// of the step before it.
type Step struct {
	// Kind is range (a scan of the values that a filter admits), prefix (a scan of the values
	// that begin with a text), order (a scan in the order of the values that ends with the page),
	// text (finds all hits), text test (tests whether a row is one), scan (the first of a group), join (a scan for each row), merge
	// (a scan or join that walks other triples beside it), leapfrog (joins the triples of a
	// cycle, of which it reads the whole predicates), path, filter, union,
	// optional, notExists or compare.
	Kind string
	// Pattern is the subject of the step in SPARQL syntax.
	Pattern string
	// Index is the order of the index that the step reads, "" for none.
	Index string
	// Merged are the triples that a merge scans beside Pattern, or that a leapfrog joins
	// with it.
	Merged []string
	// Estimate is the expected number of rows behind the step for one run of its
	// group.
	Estimate float64
	// Runs is how often the step ran; Statements and Rows are the numbers read and
	// passed on.
	Runs, Statements, Rows int64
	Groups                 [][]Step
}

// Explain returns the plan with its counters so far.
func (e *Evaluation) Explain() []Step { return e.explainPlan(e.plan) }

// StatementsRead returns the number of statements read so far, including
// planning.
func (e *Evaluation) StatementsRead() int64 { return e.machine.read }

// RowsMade returns the number of rows that all steps have passed on so far.
func (e *Evaluation) RowsMade() int64 { return e.machine.made }

func (e *Evaluation) explainPlan(p *plan) []Step {
	out := make([]Step, 0, len(p.steps))
	joined := false
	for _, s := range p.steps {
		step := Step{Index: s.order, Estimate: s.estimate, Runs: s.runs, Statements: s.read, Rows: s.rows}
		switch s.kind {
		case scanStep, pathStep:
			step.Pattern = s.triple.source.String()
			switch step.Kind = "scan"; {
			case joined:
				step.Kind = "join"
			case s.walked:
				step.Kind = "order"
			case s.ranged && s.triple.objects.Prefix != nil:
				step.Kind = "prefix"
			case s.ranged:
				step.Kind = "range"
			}
			if s.kind == pathStep {
				step.Kind = "path"
			}
			for _, c := range s.merged {
				if step.Merged = append(step.Merged, c.triple.source.String()); !s.walked {
					step.Kind = "merge"
				}
			}
			joined = true
		case textStep:
			step.Pattern, step.Kind = s.text.source.String(), "text"
			if s.tests {
				step.Kind = "text test"
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
		case leapStep:
			step.Kind = "leapfrog"
			step.Pattern = s.leap.triples[0].source.String()
			for _, t := range s.leap.triples[1:] {
				step.Merged = append(step.Merged, t.source.String())
			}
			joined = true
		case mergeStep:
			step.Kind = "compare"
			step.Pattern = fmt.Sprintf("?%s", e.nameOf(s.merge.outer))
		}
		for _, g := range s.groups {
			step.Groups = append(step.Groups, e.explainPlan(g))
		}
		out = append(out, step)
	}
	return out
}

// Bounds of Shape: its lines, and the bytes of a predicate or variable in them.
const (
	MaxShapeLines = 40
	maxShapePart  = 200
)

// Shape returns the plan with its counters so far, a line for each step, those of groups
// indented. For the operator of a server: it has the predicates, and no other term of the
// pattern.
func (e *Evaluation) Shape() []string { return e.appendShape(nil, e.plan, "") }

func (e *Evaluation) appendShape(lines []string, p *plan, indent string) []string {
	for i, step := range e.explainPlan(p) {
		if len(lines) == MaxShapeLines {
			return lines
		}
		line := indent + step.Kind
		if s := p.steps[i]; s.triple != nil && (s.kind == scanStep || s.kind == pathStep) {
			line += " " + s.triple.source.shape()
		}
		if step.Index != "" {
			line += " by " + step.Index
		}
		lines = append(lines, fmt.Sprintf("%s: %.0f rows expected, %d runs, %d statements, %d rows", line, step.Estimate, step.Runs, step.Statements, step.Rows))
		for _, g := range p.steps[i].groups {
			lines = e.appendShape(lines, g, indent+"  ")
		}
	}
	return lines
}

// shape returns the triple with its predicate and variables, and … for other terms.
func (t *Triple) shape() string {
	hide := func(n Node) string {
		if n.name == "" {
			return "…"
		}
		return kg.Excerpt(n.String(), maxShapePart)
	}
	predicate := t.Predicate.String()
	if t.Path != nil {
		predicate = "path"
	} else if t.except != nil {
		predicate = t.formatExcept()
	}
	return hide(t.Subject) + " " + kg.Excerpt(predicate, maxShapePart) + " " + hide(t.Object)
}

// nameOf returns the variable with the given slot.
func (e *Evaluation) nameOf(slot int) string {
	if slot < len(e.pattern.names) {
		return e.pattern.names[slot]
	}
	return fmt.Sprint(slot)
}
