package base

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Prefixes are short names of IRI namespaces. Those of a store (Store.Prefixes) follow its
// log; others do not change. They are safe for concurrent use.
type Prefixes struct{ table atomic.Pointer[prefixTable] }

// prefixTable is one state of Prefixes, and never changes.
type prefixTable struct {
	namespace map[string]string
	longest   []string // prefixes, the longest namespace first
}

// BuiltinPrefixes are registered in every store.
var BuiltinPrefixes = map[string]string{
	"rdf":     RDF,
	"rdfs":    "http://www.w3.org/2000/01/rdf-schema#",
	"xsd":     XSD,
	"owl":     "http://www.w3.org/2002/07/owl#",
	"sh":      "http://www.w3.org/ns/shacl#",
	"skos":    "http://www.w3.org/2004/02/skos/core#",
	"dcterms": "http://purl.org/dc/terms/",
	"foaf":    "http://xmlns.com/foaf/0.1/",
	"prov":    "http://www.w3.org/ns/prov#",
	"schema":  "https://schema.org/",
	"koine":   "urn:koine:vocab:",
}

// NewPrefixes returns the built-in prefixes with more, which override them. A prefix must be a
// name of letters, digits, "-", "_" and "." that is not a URI scheme in use, and its namespace
// an absolute IRI.
func NewPrefixes(more map[string]string) (*Prefixes, error) {
	for name, ns := range more {
		if err := ValidPrefixOf(name, ns); err != nil {
			return nil, err
		}
	}
	p := new(Prefixes)
	p.Set(more)
	return p, nil
}

// ValidPrefixOf checks a prefix and its namespace.
func ValidPrefixOf(name, namespace string) error {
	if !validPrefix(name) {
		return Errorf(CodeInvalid, "%q cannot be a prefix: use letters, digits, - and _, and no URI scheme", Clip(name))
	}
	return validIRI(namespace)
}

// Set replaces all but the built-in prefixes, which these win over.
func (p *Prefixes) Set(more map[string]string) {
	t := &prefixTable{namespace: maps.Clone(BuiltinPrefixes)}
	maps.Copy(t.namespace, more)
	t.longest = slices.SortedFunc(maps.Keys(t.namespace), func(a, b string) int {
		if d := len(t.namespace[b]) - len(t.namespace[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	p.table.Store(t)
}

// Fixed returns the prefixes as they are now, for a document that is written with one
// state of them.
func (p *Prefixes) Fixed() *Prefixes {
	fixed := new(Prefixes)
	fixed.table.Store(p.table.Load())
	return fixed
}

// Namespace returns what a registered prefix stands for.
func (p *Prefixes) Namespace(name string) (iri string, ok bool) {
	iri, ok = p.table.Load().namespace[name]
	return iri, ok
}

func validPrefix(s string) bool {
	return s != "_" && !IsScheme(s) && ValidScheme(strings.ReplaceAll(s, "_", "-"))
}

// IsScheme reports whether a name is a URI scheme that no prefix may have. A store may know
// more: see Store.KnowsScheme.
func IsScheme(name string) bool {
	switch strings.ToLower(name) {
	case "http", "https", "urn", "agent", "file", "mailto", "data", "did", "tag", "chan", "ws", "wss":
		return true
	}
	return false
}

// Registrable tells whether a name could be a prefix and is not registered.
func (p *Prefixes) Registrable(name string) bool {
	_, known := p.Namespace(name)
	return !known && validPrefix(name)
}

// Resource is the resource that a text names: a registered prefix:name, an
// absolute IRI, or a blank node as "_:label".
func (p *Prefixes) Resource(text string) (Term, error) {
	if name, local, ok := strings.Cut(text, ":"); ok && !strings.HasPrefix(local, "//") {
		if ns, ok := p.Namespace(name); ok {
			return ParseIRI(ns + local)
		}
	}
	t, err := ParseIRI(text)
	if err != nil && !strings.Contains(text, ":") {
		e := Errorf(CodeInvalid, "%q is neither an absolute IRI nor a registered prefix:name", Clip(text))
		e.Err = &BareNameError{text}
		return t, e
	}
	return t, err
}

// BareNameError is the cause of the error for a name without a prefix in place of an IRI.
type BareNameError struct{ Name string }

func (e *BareNameError) Error() string { return "a name without a prefix: " + Clip(e.Name) }

// Shorten writes an IRI with the prefix of its namespace, if there is one and
// the rest can stand behind it.
func (p *Prefixes) Shorten(iri string) string {
	t := p.table.Load()
	for _, name := range t.longest {
		if local, ok := strings.CutPrefix(iri, t.namespace[name]); ok && local != "" && !strings.ContainsAny(local, "/#?:") {
			return name + ":" + local
		}
	}
	return iri
}

// All yields the registered prefixes in order, each with its namespace.
func (p *Prefixes) All() []Prefix {
	t := p.table.Load()
	out := make([]Prefix, 0, len(t.namespace))
	for _, name := range slices.Sorted(maps.Keys(t.namespace)) {
		out = append(out, Prefix{name, t.namespace[name]})
	}
	return out
}

// Prefix is a short name with its namespace IRI.
type Prefix struct{ Name, Namespace string }

// PrefixesVersion of the file of kept prefixes.
const PrefixesVersion = 1

// PrefixesFile is the content of prefixes.json, where directories of format 1 have their
// prefixes.
type PrefixesFile struct {
	// Version goes up when an older koine could no longer read the file.
	Version  int               `json:"version"`
	Prefixes map[string]string `json:"prefixes"` // namespaces by name
	Checksum string            `json:"checksum"` // CRC-32C of the prefixes as JSON, in hexadecimal
}

// ValidPrefixes checks the prefixes of a file.
func ValidPrefixes(prefixes map[string]string) error {
	if n := len(prefixes); n > MaxKeptPrefixes {
		return Errorf(CodeLimitExceeded, "%d prefixes are more than the %d that a store keeps", n, MaxKeptPrefixes)
	}
	_, err := NewPrefixes(prefixes)
	return err
}

// PrefixesSum does not depend on the order: JSON sorts the names.
func PrefixesSum(prefixes map[string]string) (string, error) {
	raw, err := json.Marshal(prefixes)
	return fmt.Sprintf("%08x", crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))), err
}

// Bounds of the names of a store.
const (
	// MaxKeptPrefixes bounds the registered prefixes, beside the built-in ones.
	MaxKeptPrefixes = 1000 // prefixes beside the built-in ones
)
