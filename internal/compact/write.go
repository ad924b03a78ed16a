package compact

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// MaxLabelBytes bounds a label behind an object or a predicate, which is for the eyes only. A longer one is
// cut and ends with "…".
const MaxLabelBytes = 80

// Options are the conditions of Write.
type Options struct {
	Prefixes *kg.Prefixes
	// MaxTokens bounds the text, as Tokens counts; 0 stands for no bound. At least one line
	// is written.
	MaxTokens int
	// More returns the last line, which says that facts are left out and how to go on. It is
	// called with the number of facts left out.
	More func(left int) string
}

// Written is the result of Write.
type Written struct {
	Text string
	// Facts is how many of the facts are in the text: the first ones.
	Facts int
}

// Write writes facts in their order, so that facts with the same graph, subject and
// predicate share a line if they follow each other. A blank node that is the object of one
// fact is written with the facts about it in its place. Past MaxTokens it ends between two
// facts.
func Write(facts []Fact, o Options) Written {
	w := &writer{prefixes: o.Prefixes.Fixed(), used: map[string]bool{}}
	w.nameNamespaces(facts)
	units := unitsOf(facts)
	rest := func(left int) string {
		if left == 0 || o.More == nil {
			return ""
		}
		return "# " + o.More(left) + "\n"
	}
	written, shared := 0, ""
	for i := range units {
		u := &units[i]
		begins := i == 0 || !u.follows(&units[i-1])
		if begins {
			shared = sharedBrackets(units[i:])
		}
		before := w.saveMark()
		w.writeUnit(u, begins, shared)
		left := len(facts) - written - u.size()
		if o.MaxTokens > 0 && i > 0 && w.countTokens()+Tokens(rest(left)) > o.MaxTokens {
			w.resetTo(before)
			break
		}
		written += u.size()
	}
	w.endLine()
	return Written{Text: w.prefixLines() + string(w.body) + rest(len(facts)-written), Facts: written}
}

// writer holds the text so far, and the graph, subject and predicate of its last line.
type writer struct {
	prefixes *kg.Prefixes
	body     []byte
	names    []string // the prefixes in use, in the order of their use
	used     map[string]bool
	counted  int // tokens of body[:line] and of the header
	line     int // where the last, unfinished line begins
	last     struct{ graph, subject, predicate, inner kg.Term }
	own      map[string]string // the prefixes that the text declares for namespaces without one
	begun    bool
}

// mark is a state of the writer to go back to.
type mark struct {
	w     writer
	names int
}

func (w *writer) saveMark() mark { return mark{w: *w, names: len(w.names)} }

func (w *writer) resetTo(m mark) {
	for _, name := range w.names[m.names:] {
		delete(w.used, name)
	}
	body, names, used := w.body[:len(m.w.body)], w.names[:m.names], w.used
	*w = m.w
	w.body, w.names, w.used = body, names, used
}

// countTokens is the cost of the text so far, with the end of its last line.
func (w *writer) countTokens() int { return w.counted + Tokens(string(w.body[w.line:])+"\n") }

func (w *writer) endLine() {
	if len(w.body) > w.line {
		w.body = append(w.body, '\n')
	}
	w.counted += Tokens(string(w.body[w.line:]))
	w.line = len(w.body)
}

// writeUnit writes a unit behind the last one. The first one of a subject begins it, with the
// brackets that most of its units share.
func (w *writer) writeUnit(u *unit, begins bool, shared string) {
	f := u.fact
	if w.begun && f.Graph != w.last.graph || !w.begun && f.Graph != kg.DefaultGraph {
		w.endLine()
		w.body = append(w.body, "@graph "...)
		if f.Graph != kg.DefaultGraph {
			w.appendName(f.Graph)
		} else {
			w.body = append(w.body, "default"...)
		}
	}
	brackets := string(f.appendBrackets(nil))
	switch brackets {
	case shared:
		brackets = ""
	case "":
		brackets = noBrackets
	}
	if begins {
		w.endLine()
		w.appendName(f.Subject.Term)
		w.last.predicate, w.last.inner = kg.Term{}, kg.Term{}
		label := f.isPlainLabel() && brackets == ""
		if label {
			w.body = appendLabel(append(w.body, ' '), f.Object.Term.Value())
			if lang := f.Object.Term.Lang(); lang != "" {
				w.body = append(append(w.body, '@'), lang...)
			}
		}
		w.body = append(w.body, shared...)
		if label {
			w.notePlace(f, kg.Term{}, kg.Term{})
			return
		}
	}
	inner := kg.Term{}
	if len(u.inner) == 1 {
		inner = u.inner[0].Predicate.Term
	}
	if begins || f.Predicate.Term != w.last.predicate || inner != w.last.inner {
		w.endLine()
		w.body = append(w.body, "  "...)
		w.appendPredicate(f.Predicate.Term)
		if f.Predicate.Label != "" && len(u.inner) == 0 { // before "[" it would be an object
			w.body = appendLabel(append(w.body, ' '), kg.Excerpt(f.Predicate.Label, MaxLabelBytes))
		}
		if !inner.IsZero() {
			w.body = append(w.body, " / "...)
			w.appendPredicate(inner)
		}
	} else {
		w.body = append(w.body, ',')
	}
	w.body = append(w.body, ' ')
	switch {
	case len(u.inner) == 0:
		w.appendObject(f)
	case !inner.IsZero():
		w.appendObject(u.inner[0])
	default:
		for i, in := range u.inner {
			if i == 0 {
				w.body = append(w.body, '[')
			} else {
				w.body = append(w.body, "; "...)
			}
			w.appendPredicate(in.Predicate.Term)
			w.body = append(w.body, ' ')
			w.appendObject(in)
		}
		w.body = append(w.body, ']')
	}
	w.body = append(w.body, brackets...)
	w.notePlace(f, f.Predicate.Term, inner)
}

func (w *writer) appendPredicate(t kg.Term) {
	if t == kg.IRI(kg.RDFType) {
		w.body = append(w.body, 'a')
	} else {
		w.appendName(t)
	}
}

// appendObject appends the object of a fact with its label.
func (w *writer) appendObject(f *Fact) {
	w.appendName(f.Object.Term)
	if f.Object.Label != "" {
		w.body = appendLabel(append(w.body, ' '), kg.Excerpt(f.Object.Label, MaxLabelBytes))
	}
}

// notePlace remembers the place of a fact that was written.
func (w *writer) notePlace(f *Fact, predicate, inner kg.Term) {
	w.begun = true
	w.last.graph, w.last.subject, w.last.predicate, w.last.inner = f.Graph, f.Subject.Term, predicate, inner
}

// isPlainLabel reports whether the fact can stand in parentheses behind its subject.
func (f *Fact) isPlainLabel() bool {
	t := f.Object.Term
	return f.Predicate.Term == kg.IRI(kg.RDFSLabel) && t.IsLiteral() && (t.ExplicitDatatype() == "" || t.Lang() != "") &&
		t.Value() != "" && t.Value() == strings.TrimSpace(t.Value())
}

// appendBrackets appends the certainty, sources and times of a fact.
func (f *Fact) appendBrackets(b []byte) []byte {
	var parts []string
	if f.HasCertainty {
		parts = append(parts, strconv.FormatFloat(f.Certainty, 'g', -1, 64))
	}
	for _, source := range f.Sources {
		parts = append(parts, "by "+agentName(source))
	}
	for _, at := range []struct {
		word string
		time time.Time
	}{{"at", f.Time}, {"from", f.Validity.From}, {"until", f.Validity.Until}} {
		if !at.time.IsZero() {
			parts = append(parts, at.word+" "+formatTime(at.time))
		}
	}
	if len(parts) == 0 {
		return b
	}
	return append(b, " ["+strings.Join(parts, ", ")+"]"...)
}

// agentScheme is the part of an agent's id that a text leaves out.
const agentScheme = "agent://"

func agentName(id kg.AgentID) string {
	if name, ok := strings.CutPrefix(string(id), agentScheme); ok && isBare(name) && !strings.Contains(name, ":") {
		return name
	}
	return "<" + string(id) + ">"
}

// formatTime is the day alone if the time is its beginning.
func formatTime(t time.Time) string {
	t = t.UTC()
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339Nano)
}

// appendName appends a term, and counts its prefix where it is used first.
func (w *writer) appendName(t kg.Term) {
	begin := len(w.body)
	w.body = w.appendTerm(w.body, t)
	name, _, short := strings.Cut(string(w.body[begin:]), ":")
	if t.IsLiteral() {
		_, kind, typed := strings.Cut(string(w.body[begin:]), `"^^`)
		name, _, short = strings.Cut(kind, ":")
		short = short && typed
	}
	if !short || strings.HasPrefix(name, "<") || name == "_" || w.used[name] {
		return
	}
	if namespace, ok := w.namespaceOf(name); ok {
		w.used[name] = true
		w.names = append(w.names, name)
		w.counted += Tokens(prefixLine(name, namespace))
	}
}

func prefixLine(name, namespace string) string {
	return "@prefix " + name + ": <" + namespace + ">\n"
}

// prefixLines returns the lines of the prefixes in use, in their order.
func (w *writer) prefixLines() string {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(w.names)) {
		namespace, _ := w.namespaceOf(name)
		b.WriteString(prefixLine(name, namespace))
	}
	return b.String()
}
