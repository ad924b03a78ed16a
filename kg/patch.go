package kg

import (
	"encoding/json"
	"time"
)

// Op is what a patch asks for, and what a change is seen as.
type Op uint8

// The operations (knowledge graph extension, section 3, PatchOperationType).
const (
	// Add asserts the statement for its source. Again: updates that source's
	// assertion.
	Add Op = iota + 1
	// Remove takes the statement away with all its assertions, or, where the
	// patch names a source, that source's assertion only: the statement lives
	// while another source backs it.
	Remove
	// Replace removes every statement with the same subject, predicate and
	// graph and adds this one.
	Replace
)

func (o Op) String() string {
	switch o {
	case Add:
		return "add"
	case Remove:
		return "remove"
	case Replace:
		return "replace"
	}
	return "none"
}

// Patch is one wish for a change.
type Patch struct {
	Op   Op
	Quad Quad
	// Source is whose assertion is made or withdrawn. For Add and Replace ""
	// stands for Meta.Actor; for Remove "" means the whole statement.
	Source       AgentID
	Certainty    float64
	HasCertainty bool
	// Validity is when what is said holds: see Assertion.Validity.
	Validity   TimeSpan
	Provenance []byte // JSON, or nil
	// Time is when the assertion of an Add was recorded, for one that comes from
	// another store; zero means the commit's time. Only an administrator sets it, for
	// any source but koine itself. An update with such a patch is not held for review.
	Time time.Time

	normal   bool      // Normalise has passed it
	foreseen *foreseen // by Foresight.See, nil without
}

// Bounds of one commit.
const (
	MaxPatches     = 10_000   // patches that one caller may ask for
	MaxChanges     = 100_000  // what they may come to: a replace removes many
	MaxCommitBytes = 12 << 20 // of the log entry before compression
)

// Normalise checks a patch and brings it into the one form in which it is
// applied and compared: graph and source spelled out. source is whose assertion
// an Add or Replace makes when the patch names none. It may be called ahead of
// Tx.Apply, which otherwise does it while other updates wait.
func (p *Patch) Normalise(source AgentID) error {
	if p.normal {
		return nil
	}
	if p.Quad.Graph.IsZero() {
		p.Quad.Graph = DefaultGraph
	}
	if err := p.Quad.valid(p.check()); err != nil {
		return err
	}
	switch p.Op {
	case Add, Replace:
		if p.Source == "" {
			p.Source = source
		}
	case Remove:
	default:
		return Errorf(CodeInvalid, "a patch adds, removes or replaces").At("op")
	}
	if p.Source != "" {
		p.Source = CanonicalAgent(string(p.Source))
		if err := p.Source.Valid(); err != nil {
			return AsError(err).At("source")
		}
	}
	if p.HasCertainty && !(p.Certainty >= 0 && p.Certainty <= 1) {
		return Errorf(CodeInvalid, "a certainty is between 0 and 1").At("certainty")
	}
	if err := p.Validity.normalise(); err != nil {
		return err
	}
	if err := p.normaliseTime(); err != nil {
		return err
	}
	if len(p.Provenance) > MaxProvenanceBytes {
		return Errorf(CodeLimitExceeded, "provenance of %d bytes is longer than the %d that are stored", len(p.Provenance), MaxProvenanceBytes).At("provenance")
	}
	if p.Provenance != nil && !json.Valid(p.Provenance) {
		return Errorf(CodeInvalid, "provenance is not JSON").At("provenance")
	}
	p.normal = true
	return nil
}

// normaliseTime brings the time of an assertion into the form in which it is stored.
func (p *Patch) normaliseTime() error {
	if p.Time.IsZero() {
		return nil
	}
	if p.Op != Add {
		return Errorf(CodeInvalid, "only an assertion that is added has a time of its own").At("time")
	}
	var err *Error
	if p.Time, err = normalEnd(p.Time); err != nil {
		return err.At("time")
	}
	if p.Time.IsZero() { // the first millisecond of the year 1 stands for none
		return Errorf(CodeInvalid, "a time is in the years 1 to 9999").At("time")
	}
	return nil
}

// With is the patch about another property of the same subject, in normal form if p is.
func (p *Patch) With(predicate, object Term) (Patch, error) {
	with := *p
	with.Quad.Predicate, with.Quad.Object = predicate, object
	if !p.normal {
		return with, nil
	}
	return with, with.Quad.says(p.check())
}

// literalWithin refuses an object that is longer than the store takes.
func (p *Patch) literalWithin(most int) error {
	if err := p.Quad.Object.LiteralWithin(most); err != nil {
		return AsError(err).At("object")
	}
	return nil
}

// check is what the patch asks of its terms. What is removed may be from before IRIs
// were checked, and koine's own statements name agents that may be.
func (p *Patch) check() func(Term) error {
	if p.Op == Remove || Reserved(p.Quad) {
		return Term.Valid
	}
	return Term.ValidNew
}

// valid reports which part of a quad cannot be stored.
func (q Quad) valid(check func(Term) error) error {
	switch {
	case !q.Subject.IsResource():
		return Errorf(CodeInvalid, "a subject is an IRI or a blank node").At("subject")
	case !q.Graph.NamesGraph():
		return errNamesNoGraph()
	}
	if err := check(q.Subject); err != nil {
		return AsError(err).At("subject")
	}
	if err := q.says(check); err != nil {
		return err
	}
	return validGraph(q.Graph, check)
}

// validGraph refuses a term that names no graph, or that check refuses.
func validGraph(graph Term, check func(Term) error) error {
	if !graph.NamesGraph() {
		return errNamesNoGraph()
	}
	if err := check(graph); err != nil {
		return AsError(err).At("graph")
	}
	return nil
}

func errNamesNoGraph() *Error {
	return Errorf(CodeInvalid, "a graph is named by an IRI or a blank node").At("graph")
}

// says is valid of what is said of the subject.
func (q *Quad) says(check func(Term) error) error {
	switch {
	case q.Predicate.kind != KindIRI:
		return Errorf(CodeInvalid, "a predicate is an IRI").At("predicate")
	case !q.Object.IsResource() && !q.Object.IsLiteral():
		return Errorf(CodeInvalid, "an object is an IRI, a blank node or a literal").At("object")
	}
	if err := check(q.Predicate); err != nil {
		return AsError(err).At("predicate")
	}
	if err := check(q.Object); err != nil {
		return AsError(err).At("object")
	}
	return nil
}
