package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// SyntaxError is an error of Read. Its message names the expected form.
type SyntaxError struct {
	Line    int // from 1
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// MaxFacts bounds the facts of one text.
const MaxFacts = kg.MaxPatches

// Read returns the facts of a text in the form that Write writes. Its prefixes come before
// those of p. An indented line needs a subject above it; a line that is not indented may
// have a whole fact. The error is a *SyntaxError.
func Read(text string, p *kg.Prefixes) ([]Fact, error) {
	r := reader{prefixes: p, own: map[string]string{}, graph: kg.DefaultGraph, text: text}
	for line := range strings.Lines(text) {
		r.line++
		r.rest = strings.TrimRight(line, " \t\r\n")
		if err := r.readLine(); err != nil {
			return nil, err
		}
		if len(r.facts) > MaxFacts {
			return nil, r.errorf("more than %d facts; send the rest in another text", MaxFacts)
		}
	}
	return r.facts, nil
}

type reader struct {
	prefixes *kg.Prefixes
	own      map[string]string // the prefixes of the text
	line     int
	rest     string // of the line
	graph    kg.Term
	subject  Ref
	shared   Fact // has the brackets behind the subject
	facts    []Fact
	text     string // of which the names of new blank nodes are made
	tag      string
	blanks   int
}

func (r *reader) errorf(format string, args ...any) error {
	return &SyntaxError{Line: r.line, Message: fmt.Sprintf(format, args...)}
}

func (r *reader) skipSpace() { r.rest = strings.TrimLeft(r.rest, " \t") }

func (r *reader) readLine() error {
	indented := strings.HasPrefix(r.rest, " ") || strings.HasPrefix(r.rest, "\t")
	r.skipSpace()
	switch {
	case r.rest == "" || r.rest[0] == '#':
		return nil
	case strings.HasPrefix(r.rest, "@prefix "):
		return r.readPrefix()
	case strings.HasPrefix(r.rest, "@graph "):
		return r.readGraph()
	case !indented:
		if more, err := r.readSubject(); err != nil || !more {
			return err
		}
	}
	if r.subject == (Ref{}) {
		return r.errorf("there is no subject above the indented line; begin one at the start of a line")
	}
	return r.readObjects()
}

func (r *reader) readPrefix() error {
	name, iri, ok := strings.Cut(strings.TrimPrefix(r.rest, "@prefix "), ":")
	iri = strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(iri, ".")), ".")
	if len(iri) < 2 || !ok || iri[0] != '<' || iri[len(iri)-1] != '>' {
		return r.errorf("expected @prefix name: <iri>")
	}
	if _, err := kg.ParseIRI(iri[1 : len(iri)-1]); err != nil {
		return r.errorf("prefix %s: %s", strings.TrimSpace(name), kg.AsError(err).Message)
	}
	r.own[strings.TrimSpace(name)] = iri[1 : len(iri)-1]
	return nil
}

func (r *reader) readGraph() error {
	r.rest = strings.TrimSpace(strings.TrimPrefix(r.rest, "@graph "))
	r.subject, r.shared = Ref{}, Fact{}
	if r.rest == "default" {
		r.graph = kg.DefaultGraph
		return nil
	}
	t, err := r.readTerm()
	if err == nil && !t.NamesGraph() {
		err = r.errorf("a graph is named by an IRI")
	}
	r.graph = t
	return err
}

// readSubject reads the beginning of a line that is not indented, and reports whether more
// follows.
func (r *reader) readSubject() (more bool, err error) {
	r.shared = Fact{}
	labels := len(r.facts)
	if r.subject, err = r.readRef(); err != nil {
		return false, err
	}
	if r.subject.Term.IsLiteral() {
		return false, r.errorf("a subject is an IRI or a label in parentheses, and not a literal")
	}
	if r.subject.Label != "" && !r.subject.Term.IsZero() { // its label is a fact
		label := kg.String(r.subject.Label)
		if tag, ok := strings.CutPrefix(r.rest, "@"); ok {
			lang, rest, _ := strings.Cut(tag, " ")
			label, r.rest = kg.LangString(r.subject.Label, lang), rest
		}
		r.subject.Label = ""
		r.facts = append(r.facts, Fact{Graph: r.graph, Subject: r.subject, Predicate: Ref{Term: kg.IRI(kg.RDFSLabel)}, Object: Ref{Term: label}})
	}
	if r.skipSpace(); strings.HasPrefix(r.rest, "[") {
		if err := r.readBrackets(&r.shared); err != nil {
			return false, err
		}
		for i := range r.facts[labels:] {
			r.facts[labels+i].copyBrackets(&r.shared)
		}
		r.skipSpace()
	}
	return r.rest != "", nil
}

// readObjects reads a predicate, or two with a blank node between them, and objects.
func (r *reader) readObjects() error {
	predicate, err := r.readPredicate()
	if err != nil {
		return err
	}
	if !predicate.Term.IsZero() {
		predicate.Label = r.readPredicateLabel()
	}
	var inner Ref
	r.skipSpace()
	if rest, ok := strings.CutPrefix(r.rest, "/ "); ok {
		r.rest = strings.TrimLeft(rest, " \t")
		if inner, err = r.readPredicate(); err != nil {
			return err
		}
	}
	for {
		begin := len(r.facts)
		if err := r.readObject(predicate, inner); err != nil {
			return err
		}
		brackets := r.shared
		if r.skipSpace(); strings.HasPrefix(r.rest, "[") {
			brackets = Fact{}
			if err := r.readBrackets(&brackets); err != nil {
				return err
			}
			r.skipSpace()
		}
		for i := range r.facts[begin:] {
			r.facts[begin+i].copyBrackets(&brackets)
		}
		rest, more := strings.CutPrefix(r.rest, ",")
		if !more {
			if rest != "" && rest != "." && rest != ";" {
				return r.errorf("expected a comma or the end of the line before %q", kg.Excerpt(rest, 40))
			}
			return nil
		}
		r.rest = rest
	}
}

// readObject reads an object and adds its fact. An object in square brackets is a new blank
// node with the predicates and objects inside, and so is one behind a second predicate.
func (r *reader) readObject(predicate, inner Ref) (err error) {
	f := Fact{Graph: r.graph, Subject: r.subject, Predicate: predicate}
	if r.skipSpace(); r.rest == "" {
		return r.errorf("expected an object behind the predicate")
	}
	if rest, ok := strings.CutPrefix(r.rest, "["); ok && inner == (Ref{}) {
		r.rest = rest
		f.Object.Term = r.newBlank()
		r.facts = append(r.facts, f)
		return r.readInside(f.Object)
	}
	if inner != (Ref{}) {
		f.Object.Term = r.newBlank()
		r.facts = append(r.facts, f)
		f.Subject, f.Predicate, f.Object = f.Object, inner, Ref{}
	}
	if f.Object, err = r.readRef(); err == nil {
		r.facts = append(r.facts, f)
	}
	return err
}

// readInside reads the predicates and objects of a blank node up to the closing bracket.
func (r *reader) readInside(node Ref) error {
	for {
		r.skipSpace()
		predicate, err := r.readPredicate()
		if err != nil {
			return err
		}
		f := Fact{Graph: r.graph, Subject: node, Predicate: predicate}
		if f.Object, err = r.readRef(); err != nil {
			return err
		}
		r.facts = append(r.facts, f)
		r.skipSpace()
		if rest, ok := strings.CutPrefix(r.rest, "]"); ok {
			r.rest = rest
			return nil
		}
		rest, ok := strings.CutPrefix(r.rest, ";")
		if !ok {
			return r.errorf("expected a semicolon or the closing bracket before %q", kg.Excerpt(r.rest, 40))
		}
		r.rest = rest
	}
}

// newBlank returns a blank node. The same text has the same ones each time.
func (r *reader) newBlank() kg.Term {
	if r.tag == "" {
		sum := sha256.Sum256([]byte(r.text))
		r.tag = "t" + hex.EncodeToString(sum[:8])
	}
	r.blanks++
	return kg.Blank(fmt.Sprintf("%s-%d", r.tag, r.blanks))
}

// readPredicate reads a term or a label.
func (r *reader) readPredicate() (ref Ref, err error) {
	if rest, ok := strings.CutPrefix(r.rest, "a "); ok {
		r.rest = rest
		return Ref{Term: kg.IRI(kg.RDFType)}, nil
	}
	if strings.HasPrefix(r.rest, "(") {
		ref.Label, err = r.readLabel()
	} else {
		ref.Term, err = r.readTerm()
	}
	if err == nil && !ref.Term.IsZero() && ref.Term.Kind() != kg.KindIRI {
		err = r.errorf("a predicate is an IRI or a label in parentheses, and not %s", ref.Term)
	}
	return ref, err
}

// readPredicateLabel reads a label behind a predicate, "" for none. It is the predicate's if
// an object follows, and otherwise the object.
func (r *reader) readPredicateLabel() string {
	before := r.rest
	if r.skipSpace(); strings.HasPrefix(r.rest, "(") {
		label, err := r.readLabel()
		if r.skipSpace(); err == nil && r.rest != "" && !strings.ContainsRune(",;.[", rune(r.rest[0])) {
			return label
		}
	}
	r.rest = before
	return ""
}

// copyBrackets gives a fact the parts that brackets hold.
func (f *Fact) copyBrackets(from *Fact) {
	f.Certainty, f.HasCertainty, f.Sources, f.Time, f.Validity = from.Certainty, from.HasCertainty, from.Sources, from.Time, from.Validity
}

// readRef reads a term, a term with a label, or a label alone.
func (r *reader) readRef() (ref Ref, err error) {
	r.skipSpace()
	if !strings.HasPrefix(r.rest, "(") {
		if ref.Term, err = r.readTerm(); err != nil || ref.Term.IsLiteral() {
			return ref, err
		}
		r.skipSpace()
	}
	if strings.HasPrefix(r.rest, "(") {
		ref.Label, err = r.readLabel()
	}
	return ref, err
}

// ReadRef returns the term or the label in parentheses that a text is.
func ReadRef(text string, p *kg.Prefixes) (Ref, error) {
	r := reader{prefixes: p, line: 1, rest: text}
	ref, err := r.readRef()
	if err == nil && r.rest != "" {
		err = r.errorf("expected the end of the text before %q", kg.Excerpt(r.rest, 40))
	}
	return ref, err
}

// readLabel reads a label in parentheses.
func (r *reader) readLabel() (string, error) {
	var b strings.Builder
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == ')':
			label := strings.TrimSpace(b.String())
			if r.rest = r.rest[i+1:]; label == "" {
				return "", r.errorf("the label in parentheses is empty")
			}
			return label, nil
		case c == '\\' && i+1 < len(r.rest):
			i++
			switch r.rest[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			default:
				b.WriteByte(r.rest[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", r.errorf("the parenthesis of the label is not closed")
}

// readTerm reads an IRI, a blank node or a literal.
func (r *reader) readTerm() (kg.Term, error) {
	switch {
	case strings.HasPrefix(r.rest, `"`):
		return r.readLiteral()
	case strings.HasPrefix(r.rest, "<"):
		iri, err := r.readIRI()
		if err != nil {
			return kg.Term{}, err
		}
		return r.checkTerm(kg.ParseIRI(iri))
	}
	text := r.readBare()
	if text == "" {
		return kg.Term{}, r.errorf("expected a name, an <iri>, a \"text\" or a (label) before %q", kg.Excerpt(r.rest, 40))
	}
	if t, ok := bareLiteral(text); ok {
		return t, nil
	}
	return r.resourceOf(text)
}

func (r *reader) checkTerm(t kg.Term, err error) (kg.Term, error) {
	if err != nil {
		return kg.Term{}, r.errorf("%s", kg.AsError(err).Message)
	}
	return t, nil
}

// readIRI reads the text between angle brackets.
func (r *reader) readIRI() (string, error) {
	iri, rest, ok := strings.Cut(r.rest[1:], ">")
	if !ok {
		return "", r.errorf("the < of the IRI is not closed")
	}
	r.rest = rest
	return iri, nil
}

// readBare reads a name without quotes.
func (r *reader) readBare() string {
	i := strings.IndexFunc(r.rest, func(c rune) bool { return !isBareRune(c) })
	if i < 0 {
		i = len(r.rest)
	}
	for i > 1 && r.rest[i-1] == '.' { // the end of a sentence
		i--
	}
	text := r.rest[:i]
	r.rest = r.rest[i:]
	return text
}

// resourceOf returns the term of a name without brackets.
func (r *reader) resourceOf(text string) (kg.Term, error) {
	if name, local, ok := strings.Cut(text, ":"); ok && r.own[name] != "" && !strings.HasPrefix(local, "//") {
		return r.checkTerm(kg.ParseIRI(r.own[name] + local))
	}
	if !strings.Contains(text, ":") {
		return kg.Term{}, r.errorf("%q is neither prefix:name nor an IRI; a label stands in parentheses, a text in quotes", kg.Excerpt(text, 40))
	}
	return r.checkTerm(r.prefixes.Resource(text))
}

// readLiteral reads a string in quotes with its language or datatype.
func (r *reader) readLiteral() (kg.Term, error) {
	end := 1
	for end < len(r.rest) && r.rest[end] != '"' {
		if r.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(r.rest) {
		return kg.Term{}, r.errorf("the quote of the text is not closed; a line break is \\n")
	}
	var value string
	if err := json.Unmarshal([]byte(r.rest[:end+1]), &value); err != nil || !utf8.ValidString(value) {
		return kg.Term{}, r.errorf("the text has an escape that JSON does not have")
	}
	r.rest = r.rest[end+1:]
	if rest, ok := strings.CutPrefix(r.rest, "^^"); ok {
		r.rest = rest
		var datatype string
		if strings.HasPrefix(r.rest, "<") {
			iri, err := r.readIRI()
			if err != nil {
				return kg.Term{}, err
			}
			datatype = iri
		} else {
			t, err := r.resourceOf(r.readBare())
			if err != nil {
				return kg.Term{}, err
			}
			datatype = t.Value()
		}
		t := kg.Typed(value, datatype)
		return r.checkTerm(t, t.ValidNew())
	}
	if rest, ok := strings.CutPrefix(r.rest, "@"); ok {
		r.rest = rest
		t := kg.LangString(value, r.readBare())
		return r.checkTerm(t, t.ValidNew())
	}
	return kg.String(value), nil
}

// readBrackets reads the certainty, sources and times of a fact.
func (r *reader) readBrackets(f *Fact) error {
	inside, rest, ok := strings.Cut(r.rest[1:], "]")
	if !ok {
		return r.errorf("the bracket is not closed")
	}
	r.rest = rest
	if strings.TrimSpace(inside) == "" { // none, in place of those of the subject
		return nil
	}
	for part := range strings.SplitSeq(inside, ",") {
		if err := r.readBracket(f, strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readBracket(f *Fact, part string) error {
	word, value, _ := strings.Cut(part, " ")
	value = strings.TrimSpace(value)
	into := map[string]*time.Time{"at": &f.Time, "from": &f.Validity.From, "until": &f.Validity.Until}[word]
	switch {
	case into != nil:
		for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
			if t, err := time.Parse(layout, value); err == nil {
				*into = t.UTC()
				return nil
			}
		}
		return r.errorf("%q is no date or time; write 2026-11-24 or 2026-11-24T10:00:00Z", kg.Excerpt(value, 40))
	case word == "by":
		id := kg.CanonicalAgent(strings.TrimSuffix(strings.TrimPrefix(value, "<"), ">"))
		if id == "" {
			return r.errorf("%q is not an agent id", kg.Excerpt(value, 40))
		}
		f.Sources = append(f.Sources, id)
		return nil
	}
	certainty, err := strconv.ParseFloat(part, 64)
	if err != nil || !(certainty >= 0 && certainty <= 1) {
		return r.errorf("brackets hold a certainty from 0 to 1, \"by agent\", or \"at\", \"from\" or \"until\" with a time, and not %q", kg.Excerpt(part, 40))
	}
	f.Certainty, f.HasCertainty = certainty, true
	return nil
}
