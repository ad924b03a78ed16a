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

// prefixTable is one immutable state of Prefixes.
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

// Set replaces all but the built-in prefixes. The new ones take precedence over the
// built-in ones.
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

// Fixed returns an immutable copy of the current prefixes, for a document that is written
// with one state of them.
func (p *Prefixes) Fixed() *Prefixes {
	fixed := new(Prefixes)
	fixed.table.Store(p.table.Load())
	return fixed
}

// Same reports whether no prefixes were set since the other was taken of p by Fixed.
func (p *Prefixes) Same(fixed *Prefixes) bool { return p.table.Load() == fixed.table.Load() }

// Namespace returns the namespace of a registered prefix.
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

// Registrable reports whether a name is a valid prefix that is not registered.
func (p *Prefixes) Registrable(name string) bool {
	_, known := p.Namespace(name)
	return !known && validPrefix(name)
}

// Resource returns the resource for a text: a registered prefix:name, an absolute IRI, or
// a blank node as "_:label".
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

// Error implements error.
func (e *BareNameError) Error() string { return "a name without a prefix: " + Clip(e.Name) }

// Shorten returns an IRI as prefix:name if a registered namespace fits and the rest is a
// valid local name, and otherwise unchanged.
func (p *Prefixes) Shorten(iri string) string {
	t := p.table.Load()
	for _, name := range t.longest {
		if local, ok := strings.CutPrefix(iri, t.namespace[name]); ok && local != "" && !strings.ContainsAny(local, "/#?:") {
			return name + ":" + local
		}
	}
	return iri
}

// All returns the registered prefixes in order, with their namespaces.
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

// PrefixesVersion is the version of prefixes.json.
const PrefixesVersion = 1

// PrefixesFile is the content of prefixes.json, which holds the prefixes in directories of
// format 1.
type PrefixesFile struct {
	// Version is incremented when an older koine can no longer read the file.
	Version  int               `json:"version"`
	Prefixes map[string]string `json:"prefixes"` // namespaces by name
	Checksum string            `json:"checksum"` // CRC-32C of the prefixes as JSON, in hexadecimal
}

// ValidPrefixes checks the number and the form of stored prefixes.
func ValidPrefixes(prefixes map[string]string) error {
	if n := len(prefixes); n > MaxKeptPrefixes {
		return Errorf(CodeLimitExceeded, "%d prefixes are more than the %d that a store keeps", n, MaxKeptPrefixes)
	}
	_, err := NewPrefixes(prefixes)
	return err
}

// PrefixesSum returns the checksum of prefixes. It does not depend on their order, because
// JSON sorts the names.
func PrefixesSum(prefixes map[string]string) (string, error) {
	raw, err := json.Marshal(prefixes)
	return fmt.Sprintf("%08x", crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))), err
}

// Bounds of the names of a store.
const (
	// MaxKeptPrefixes bounds the registered prefixes, beside the built-in ones.
	MaxKeptPrefixes = 1000 // prefixes beside the built-in ones
)
