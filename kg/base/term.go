package base

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the kind of a Term.
type Kind uint8

// The kinds of terms. The zero Kind is no term at all: in a Pattern it stands
// for "any".
const (
	KindNone Kind = iota
	KindDefaultGraph
	KindIRI
	KindBlank
	KindLiteral
)

// Datatype IRIs that the store itself gives a meaning to.
const (
	XSD           = "http://www.w3.org/2001/XMLSchema#"
	XSDString     = XSD + "string"
	XSDBoolean    = XSD + "boolean"
	XSDInteger    = XSD + "integer"
	XSDDecimal    = XSD + "decimal"
	XSDDouble     = XSD + "double"
	XSDDateTime   = XSD + "dateTime"
	XSDDate       = XSD + "date"
	RDF           = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	RDFType       = RDF + "type"
	RDFLangString = RDF + "langString"
	// RDFDirLangString is refused in new statements: see Term.ValidNew.
	RDFDirLangString = RDF + "dirLangString"
	RDFSLabel        = "http://www.w3.org/2000/01/rdf-schema#label"
)

// MaxResourceBytes bounds an IRI and the label of a blank node (RDF 1.1 Concepts, section
// 3, sets no bound).
const MaxResourceBytes = 512 << 10

// Bounds of the lexical form of a literal. The limit of a store is between MinLiteralBytes
// and MaxLiteralBytes (Options.LiteralBytes). Stored literals stay readable when it is
// lowered.
const (
	MinLiteralBytes     = 512 << 10
	DefaultLiteralBytes = 4 << 20
	MaxLiteralBytes     = 8 << 20
)

// MaxLiteralKindBytes bounds the datatype and the language tag of a literal. Each is part
// of an index key, and a key beyond Badger's 64 KiB ends the process when it is written,
// and again at each replay of the log.
const MaxLiteralKindBytes = 1 << 10

// Term is an IRI, a blank node, a literal, or the name of the default graph (RDF 1.1 Concepts,
// section 3). Terms are values: they compare with == and serve as map keys. Two literals are
// equal if lexical form, datatype and language tag are.
type Term struct {
	kind  Kind
	value string
	// literalKind is the datatype of a literal, or '@' and its language tag in lower case
	// (RDF 1.1 Concepts, section 3.3); "" stands for xsd:string. It is one string to keep
	// terms small, because they are copied often. canonicalTag derives the spelling of a
	// tag.
	literalKind string
}

// taggedWith begins the literal kind of a literal with a language tag.
const taggedWith = "@"

// langTag returns the language tag of a literal in lower case, or "".
func (t Term) langTag() string {
	if strings.HasPrefix(t.literalKind, taggedWith) {
		return t.literalKind[len(taggedWith):]
	}
	return ""
}

// ExplicitDatatype returns the datatype of a literal; "" stands for xsd:string, or for
// rdf:langString if there is a language tag.
func (t Term) ExplicitDatatype() string {
	if strings.HasPrefix(t.literalKind, taggedWith) {
		return ""
	}
	return t.literalKind
}

// DefaultGraph names the graph without a name.
var DefaultGraph = Term{kind: KindDefaultGraph}

// IRI returns the IRI term with this text, without validation: see ParseIRI.
func IRI(text string) Term { return Term{kind: KindIRI, value: text} }

// Blank returns the blank node with this label, without "_:". Labels are unique in a store: a
// reader of documents must give their blank nodes new labels.
func Blank(label string) Term { return Term{kind: KindBlank, value: label} }

// String returns a plain literal (xsd:string).
func String(text string) Term { return Term{kind: KindLiteral, value: text} }

// LiteralOfKind returns the literal with a lexical form whose literal kind is known: a
// datatype other than xsd:string, "@" and a language tag in lower case, or "".
func LiteralOfKind(value, kind string) Term {
	return Term{kind: KindLiteral, value: value, literalKind: kind}
}

// LangString returns a literal with a language tag (BCP 47). Tags that differ only in case
// give one term.
func LangString(text, lang string) Term {
	return Term{kind: KindLiteral, value: text, literalKind: Tagged(strings.ToLower(lang))}
}

// Typed returns a literal with this lexical form and datatype IRI.
func Typed(lexical, datatype string) Term {
	if datatype == XSDString {
		datatype = ""
	}
	if strings.HasPrefix(datatype, taggedWith) {
		datatype = "<" + datatype + ">" // not a valid IRI either
	}
	return Term{kind: KindLiteral, value: lexical, literalKind: datatype}
}

// Tagged returns the literal kind for a language tag; without one, that of xsd:string.
func Tagged(lang string) string {
	if lang == "" {
		return ""
	}
	return taggedWith + lang
}

// Integer returns an xsd:integer literal.
func Integer(n int64) Term { return Typed(strconv.FormatInt(n, 10), XSDInteger) }

// Boolean returns an xsd:boolean literal.
func Boolean(b bool) Term { return Typed(strconv.FormatBool(b), XSDBoolean) }

// Double returns an xsd:double literal in the shortest form that parses to the same value.
func Double(f float64) Term { return Typed(formatDouble(f), XSDDouble) }

// DateTime returns an xsd:dateTime literal in UTC, with milliseconds if they are not zero.
func DateTime(t time.Time) Term { return Typed(formatDateTime(t), XSDDateTime) }

// Kind returns the kind of the term.
func (t Term) Kind() Kind { return t.kind }

// IsZero reports whether the term is absent, which means "any" in a pattern.
func (t Term) IsZero() bool { return t.kind == KindNone }

// IsResource reports whether the term is an IRI or a blank node.
func (t Term) IsResource() bool { return t.kind == KindIRI || t.kind == KindBlank }

// NamesGraph reports whether the term can name a graph: it is DefaultGraph, an IRI or a
// blank node (RDF 1.1 Concepts, section 4).
func (t Term) NamesGraph() bool { return t.kind == KindDefaultGraph || t.IsResource() }

// IsLiteral reports whether the term is a literal.
func (t Term) IsLiteral() bool { return t.kind == KindLiteral }

// LiteralKind returns the kind of a literal in one text: its datatype, "@" and its
// language tag in lower case, or "" for xsd:string.
func (t Term) LiteralKind() string { return t.literalKind }

// Value returns the text of an IRI, the label of a blank node, or the lexical form of a
// literal.
func (t Term) Value() string { return t.value }

// Lang returns the language tag of a literal in the spelling of RFC 5646 ("en-GB",
// "zh-Hant"), or "".
func (t Term) Lang() string { return canonicalTag(t.langTag()) }

// LangKey returns the language tag of a literal in lower case, for comparison, or "".
func (t Term) LangKey() string { return t.langTag() }

// Datatype returns the datatype IRI of a literal, and "" for any other term.
func (t Term) Datatype() string {
	switch {
	case t.kind != KindLiteral:
		return ""
	case t.langTag() != "":
		return RDFLangString
	case t.ExplicitDatatype() == "":
		return XSDString
	}
	return t.ExplicitDatatype()
}

// Name returns the text for people and protocols: the IRI, "_:label" for a blank node, ""
// for the default graph, the lexical form of a literal.
func (t Term) Name() string {
	if t.kind == KindBlank {
		return "_:" + t.value
	}
	return t.value
}

// String returns the term in N-Triples notation (RDF 1.1 N-Triples, section 7), and a
// readable word for kinds that the notation lacks.
func (t Term) String() string {
	switch t.kind {
	case KindIRI:
		return "<" + t.value + ">"
	case KindBlank:
		return "_:" + t.value
	case KindLiteral:
		s := quote(t.value)
		if t.langTag() != "" {
			return s + "@" + t.Lang()
		}
		if t.ExplicitDatatype() != "" {
			return s + "^^<" + t.ExplicitDatatype() + ">"
		}
		return s
	case KindDefaultGraph:
		return "DEFAULT"
	}
	return "ANY"
}

// Compare orders terms by kind, text, datatype and language. The order is total and
// depends on nothing else, for deterministic output.
func (t Term) Compare(u Term) int {
	if c := cmp.Compare(t.kind, u.kind); c != 0 {
		return c
	}
	if c := cmp.Compare(t.value, u.value); c != 0 {
		return c
	}
	if c := cmp.Compare(t.ExplicitDatatype(), u.ExplicitDatatype()); c != 0 {
		return c
	}
	return cmp.Compare(t.langTag(), u.langTag())
}

// TextBytes returns the length of the term's text and literal kind.
func (t Term) TextBytes() int { return len(t.value) + len(t.literalKind) }

// TextBytes returns the sum of the lengths of the quad's terms.
func (q *Quad) TextBytes() int {
	return q.Subject.TextBytes() + q.Predicate.TextBytes() + q.Object.TextBytes() + q.Graph.TextBytes()
}

// Valid returns an error if the term cannot be part of a statement.
func (t Term) Valid() error {
	if t.kind != KindLiteral && len(t.value) > MaxResourceBytes {
		return Errorf(CodeLimitExceeded, "an IRI or a blank node's label of %d bytes is longer than the %d that are stored", len(t.value), MaxResourceBytes)
	}
	if err := t.LiteralWithin(MaxLiteralBytes); err != nil {
		return err
	}
	if !utf8.ValidString(t.value) {
		return Errorf(CodeInvalid, "a term must be valid UTF-8")
	}
	switch t.kind {
	case KindIRI:
		return validIRI(t.value)
	case KindBlank:
		return validBlankLabel(t.value)
	case KindLiteral:
		if n := max(len(t.langTag()), len(t.ExplicitDatatype())); n > MaxLiteralKindBytes {
			return Errorf(CodeLimitExceeded, "a datatype or language tag of %d bytes is longer than the %d that are stored", n, MaxLiteralKindBytes)
		}
		if t.langTag() != "" {
			return validLang(t.langTag())
		}
		if t.ExplicitDatatype() == RDFLangString {
			return Errorf(CodeInvalid, "rdf:langString needs a language tag")
		}
		if t.ExplicitDatatype() != "" {
			return validIRI(t.ExplicitDatatype())
		}
	}
	return nil
}

// LiteralWithin returns CodeLimitExceeded if the term is a literal with a lexical form of
// more than most bytes (Options.LiteralBytes).
func (t Term) LiteralWithin(most int) error {
	if t.kind != KindLiteral || len(t.value) <= most {
		return nil
	}
	e := Errorf(CodeLimitExceeded, "a literal of %d bytes is longer than the %d that are taken", len(t.value), most)
	e.Limit = "max-literal"
	e.Hint = fmt.Sprintf("Raise --max-literal (at most %d), or split the text.", MaxLiteralBytes)
	if most >= MaxLiteralBytes {
		e.Hint = "Split the text: --max-literal cannot be more."
	}
	return e
}

var quoteReplacer = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)

func quote(s string) string { return `"` + quoteReplacer.Replace(s) + `"` }

// formatDouble formats a double for XML Schema (Datatypes 1.1, section 3.3.5), which has
// its own names for infinities and NaN.
func formatDouble(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "INF"
	case math.IsInf(f, -1):
		return "-INF"
	case math.IsNaN(f):
		return "NaN"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func formatDateTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.999Z")
}
