package path

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"koine/internal/suggest"
	"koine/kg"
)

// Parse reads a property path (SPARQL 1.1, section 9.1; grammar rules 88 to 96):
//
//	path        a|b  a/b  ^a  a*  a+  a?  a{2}  a{2,5}  a{2,}  a{,5}  !a  !(a|^b)  (…)
//	predicate   <absolute IRI>, a registered prefix:name, or `a` for rdf:type
//
// `^` binds tighter than `/`, which binds tighter than `|`. A part has at most one
// repetition; `^a*` is ^(a*). `!()` matches any predicate. White space is allowed
// between tokens.
//
// The local part of a registered prefix:name may contain slashes: a slash begins
// the next step only before a predicate, `a`, or a token that begins a part. Thus
// `fb:film/film/starring` is one predicate and `ex:starring/ex:actor` two steps.
//
// An absolute IRI may stand without angle brackets if it contains no token of the
// path syntax. `urn:x:knows` ends at a token or white space. An IRI with "//"
// includes the slashes behind it and ends at white space, `|`, `)` or the end of
// the text; with any other token it needs angle brackets.
//
// An error has CodeInvalid or, beyond a limit, CodeLimitExceeded. It names the byte
// offset, counted from 0, and the expected input.
func Parse(text string, prefixes *kg.Prefixes) (*Path, error) {
	if len(text) > MaxBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the path has %d bytes; the limit is %d", len(text), MaxBytes)
	}
	if !utf8.ValidString(text) {
		return nil, kg.Errorf(kg.CodeInvalid, "a path must be valid UTF-8")
	}
	p := parser{text: text, prefixes: prefixes}
	root, err := p.parseAlternative()
	if err == nil && p.peek() != 0 {
		err = p.errExpected("the end, an operator or a repetition")
	}
	if err != nil {
		return nil, err
	}
	return newPath(root), nil
}

func newPath(root expression) *Path {
	return &Path{root: root, forward: compileAutomaton(root, false), backward: compileAutomaton(root, true)}
}

// parser is a recursive-descent parser without backtracking.
type parser struct {
	text     string
	at       int
	nesting  int
	prefixes *kg.Prefixes
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// consume consumes the byte if it is next.
func (p *parser) consume(c byte) bool {
	if p.peek() != c || c == 0 {
		return false
	}
	p.at++
	return true
}

// errExpected returns the error for unexpected input.
func (p *parser) errExpected(input string) error {
	found := "the path ends"
	if p.peek() != 0 {
		r, _ := utf8.DecodeRuneInString(p.text[p.at:])
		found = fmt.Sprintf("there is %q", r)
	}
	return kg.Errorf(kg.CodeInvalid, "path, offset %d: expected %s, but %s", p.at, input, found)
}

func (p *parser) errLimit(at int, format string, args ...any) error {
	return kg.Errorf(kg.CodeLimitExceeded, "path, offset %d: %s", at, fmt.Sprintf(format, args...))
}

func (p *parser) parseAlternative() (expression, error) {
	list, err := p.parseList('|', p.parseSequence)
	if err != nil {
		return nil, err
	}
	return joinList[alternative](list), nil
}

func (p *parser) parseSequence() (expression, error) {
	list, err := p.parseList('/', p.parseElement)
	if err != nil {
		return nil, err
	}
	return joinList[sequence](list), nil
}

func (p *parser) parseList(between byte, part func() (expression, error)) (list []expression, err error) {
	steps := 0
	for {
		start := p.at
		e, err := part()
		if err != nil {
			return nil, err
		}
		if steps += e.stepCount(); steps > MaxSteps {
			return nil, p.errTooLong(start)
		}
		list = append(list, e)
		if !p.consume(between) {
			return list, nil
		}
	}
}

func (p *parser) errTooLong(at int) error {
	return p.errLimit(at, "the path has more than %d steps after its repetitions are expanded", MaxSteps)
}

// parseElement parses PathEltOrInverse with its repetition.
func (p *parser) parseElement() (expression, error) {
	inverted := p.consume('^')
	if inverted && p.peek() == '^' {
		return nil, p.errExpected("a predicate, ! or ( behind ^")
	}
	e, err := p.parsePrimary()
	if err == nil {
		e, err = p.parseRepetition(e)
	}
	if err == nil && inverted {
		e = invertExpr(e)
	}
	return e, err
}

func (p *parser) parsePrimary() (expression, error) {
	switch p.peek() {
	case '(':
		return p.parseGroup()
	case '!':
		p.at++
		return p.parseNegated()
	}
	predicate, err := p.parsePredicate("a predicate, ^, ! or (")
	return link{predicate}, err
}

func (p *parser) parseGroup() (expression, error) {
	if p.nesting++; p.nesting > MaxNesting {
		return nil, p.errLimit(p.at, "parentheses are nested deeper than %d", MaxNesting)
	}
	p.at++
	e, err := p.parseAlternative()
	if err != nil {
		return nil, err
	}
	if !p.consume(')') {
		return nil, p.errExpected(") or an operator")
	}
	p.nesting--
	return e, nil
}

// parseNegated parses a PathNegatedPropertySet, behind `!`.
func (p *parser) parseNegated() (expression, error) {
	var along, against []kg.Term
	one := func() error {
		to := &along
		if p.consume('^') {
			to = &against
		}
		predicate, err := p.parsePredicate("a predicate or ^ and a predicate")
		*to = append(*to, predicate)
		return err
	}
	if !p.consume('(') {
		err := one()
		return newNegated(along, against), err
	}
	if p.consume(')') {
		return newNegated(nil, nil), nil
	}
	for {
		if err := one(); err != nil {
			return nil, err
		}
		if p.consume(')') {
			return newNegated(along, against), nil
		}
		if !p.consume('|') {
			return nil, p.errExpected("| or )")
		}
	}
}

// parseRepetition parses an optional repetition of the primary.
func (p *parser) parseRepetition(of expression) (expression, error) {
	start, r := p.at, repeat{of: of, least: 0, most: many}
	switch p.peek() {
	case '*':
		p.at++
	case '+':
		p.at++
		r.least = 1
	case '?':
		p.at++
		r.most = 1
	case '{':
		if err := p.parseBraces(&r); err != nil {
			return nil, err
		}
	default:
		return of, nil
	}
	if c := p.peek(); c != 0 && strings.IndexByte("*+?{", c) >= 0 {
		return nil, p.errExpected("an operator (a part has one repetition; use parentheses to repeat it again)")
	}
	if r.stepCount() > MaxSteps {
		return nil, p.errTooLong(start)
	}
	if r.least == 1 && r.most == 1 {
		return of, nil
	}
	return r, nil
}

// parseBraces parses {m}, {m,n}, {m,} or {,n}.
func (p *parser) parseBraces(r *repeat) error {
	start := p.at
	p.at++
	least, hasLeast, err := p.parseNumber()
	if err != nil {
		return err
	}
	r.least, r.most = least, least
	if p.consume(',') {
		most, hasMost, err := p.parseNumber()
		switch {
		case err != nil:
			return err
		case hasMost:
			r.most = most
		case hasLeast:
			r.most = many
		default:
			return p.errExpected("a number")
		}
	} else if !hasLeast {
		return p.errExpected("a number or a comma")
	}
	if !p.consume('}') {
		return p.errExpected("}")
	}
	if r.most != many && r.most < r.least {
		return kg.Errorf(kg.CodeInvalid, "path, offset %d: expected {m,n} with m not above n", start)
	}
	return nil
}

func (p *parser) parseNumber() (n int, there bool, err error) {
	p.peek()
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	if p.at == start {
		return 0, false, nil
	}
	n, err = strconv.Atoi(p.text[start:p.at])
	if err != nil || n > MaxRepetition {
		return 0, true, p.errLimit(start, "a repetition is at most %d", MaxRepetition)
	}
	return n, true, nil
}

// parsePredicate parses an IRI in one of its forms. expected describes the valid input
// for the error.
func (p *parser) parsePredicate(expected string) (kg.Term, error) {
	switch c := p.peek(); {
	case c == '<':
		return p.parseBracketedIRI()
	case c == 0 || strings.IndexByte(signs, c) >= 0:
		return kg.Term{}, p.errExpected(expected)
	}
	start := p.at
	name := p.consumeWord(signs)
	if name == "a" {
		return kg.IRI(kg.RDFType), nil
	}
	prefix, local, ok := strings.Cut(name, ":")
	if !ok {
		e := p.errNotIRI(start, "expected prefix:name or an IRI in angle brackets, but %q has no colon", name)
		e.Err = &kg.BareNameError{Name: name}
		return kg.Term{}, e
	}
	if local == "" && strings.HasPrefix(p.text[p.at:], "//") {
		return p.parseHierarchicalIRI(start)
	}
	switch {
	case p.knowsPrefix(prefix):
		name += p.consumeLocalSlashes()
	case !kg.IsScheme(prefix):
		return kg.Term{}, p.errUnknownPrefix(start, prefix)
	}
	t, err := p.prefixes.Resource(name)
	if err != nil || t.Kind() != kg.KindIRI {
		return t, p.errNotIRI(start, "%q is not an IRI", name)
	}
	return t, nil
}

// consumeLocalSlashes consumes the rest of a local part: any number of slashes, each with a
// word that is not a predicate.
func (p *parser) consumeLocalSlashes() string {
	start := p.at
	for strings.HasPrefix(p.text[p.at:], "/") {
		next := p.text[p.at+1:]
		if n := strings.IndexAny(next, signs); n >= 0 {
			next = next[:n]
		}
		if next == "" || next == "a" || strings.Contains(next, ":") {
			break
		}
		p.at += 1 + len(next)
	}
	return p.text[start:p.at]
}

// signs are the characters that end a word.
const signs = " \t\r\n|/^*+?{}()!<>"

// consumeWord consumes the text before any of the characters.
func (p *parser) consumeWord(until string) string {
	start := p.at
	if n := strings.IndexAny(p.text[start:], until); n >= 0 {
		p.at += n
	} else {
		p.at = len(p.text)
	}
	return p.text[start:p.at]
}

func (p *parser) parseBracketedIRI() (kg.Term, error) {
	start := p.at
	p.at++
	iri := p.consumeWord(">")
	if p.at == len(p.text) {
		return kg.Term{}, p.errExpected(">")
	}
	p.at++
	t, err := kg.ParseIRI(iri)
	if err != nil || t.Kind() != kg.KindIRI {
		return t, p.errNotIRI(start, "%q is not an absolute IRI", iri)
	}
	return t, nil
}

// parseHierarchicalIRI parses a bare IRI with "//" that begins at start.
func (p *parser) parseHierarchicalIRI(start int) (kg.Term, error) {
	p.at = start
	iri := p.consumeWord(" \t\r\n|)")
	_, authority, _ := strings.Cut(iri, "//")
	_, rest, _ := strings.Cut(authority, "/")
	if strings.ContainsAny(iri, "^*+?{}(!<>") || strings.Contains(rest, ":") {
		e := p.errNotIRI(start, "expected angle brackets: the end of the IRI %q is ambiguous", iri)
		if first, second, two := twoIRIs(iri); two {
			e.Hint = fmt.Sprintf("Write <%s>/<%s> for two steps, <%s> for one predicate.", first, second, iri)
		}
		return kg.Term{}, e
	}
	t, err := kg.ParseIRI(iri)
	if err != nil {
		return t, p.errNotIRI(start, "%q is not an IRI", iri)
	}
	return t, nil
}

// TwoIRIs reports whether the text reads as two absolute IRIs joined by a slash, the
// first with "//". Without angle brackets, such a text is ambiguous: it may be a path
// or one IRI.
func TwoIRIs(text string) bool {
	_, _, two := twoIRIs(text)
	return two
}

func twoIRIs(text string) (first, second string, ok bool) {
	_, authority, _ := strings.Cut(text, "://")
	for i := len(text) - len(authority); i < len(text); i++ {
		if text[i] != '/' {
			continue
		}
		scheme, _, colon := strings.Cut(text[i+1:], ":")
		if colon && kg.IsScheme(scheme) {
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

func (p *parser) errNotIRI(at int, format, text string) *kg.Error {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	e := kg.Errorf(kg.CodeInvalid, "path, offset %d: %s", at, fmt.Sprintf(format, text))
	e.Hint = "Write an IRI in full as <https://…>, or with a registered prefix."
	return e
}

func (p *parser) knowsPrefix(prefix string) bool {
	return slices.ContainsFunc(p.prefixes.All(), func(q kg.Prefix) bool { return q.Name == prefix })
}

func (p *parser) errUnknownPrefix(at int, prefix string) error {
	all := p.prefixes.All()
	names := make([]string, len(all))
	for i, q := range all {
		names[i] = q.Name
	}
	e := p.errNotIRI(at, "the prefix %q is not registered", prefix)
	e.Hint = "Registered prefixes: " + strings.Join(names, ", ") + "."
	if near := suggest.Name(prefix, names); near != "" {
		e.Hint = "Did you mean " + near + "?"
	}
	e.Hint += " Put an IRI with a scheme of that name in angle brackets."
	return e
}
