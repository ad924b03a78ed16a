package shapes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"koine/kg"
)

// MaxLeftOut is the largest number of omitted parts.
const MaxLeftOut = 1_000

// LeftOut is a part of the shapes that is unsupported or invalid and was omitted.
type LeftOut struct {
	// Shape is the named resource that contains it.
	Shape kg.Term
	// Place is the path from Shape to the node that has it, such as
	// "<https://example.org/S>: sh:property: property <https://example.org/p>".
	Place string
	// Name is the property or the class, such as "sh:sparql"; "" for the whole node.
	Name string
	// Reason is the reason and the consequence.
	Reason string
}

func (l LeftOut) String() string {
	if l.Name == "" {
		return l.Place + ": " + l.Reason
	}
	return l.Place + ": " + l.Name + ": " + l.Reason
}

// issue is the compiler's form of LeftOut. Issues with equal keys are the same.
type issue struct {
	issueKey
	err *kg.Error
}

type issueKey struct {
	subject, predicate kg.Term // the predicate may be zero
	reason             string
}

func (c *compiler) recordIssue(subject, predicate kg.Term, err error) {
	e := kg.AsError(err)
	key := issueKey{subject, predicate, truncateText(e.Message, maxReason)}
	if c.recorded[key] {
		return
	}
	c.recorded[key] = true
	c.issues = append(c.issues, issue{key, e})
}

// maxReason is the largest length of a reason in bytes; a reason may quote a value.
const maxReason = 500

// shortName abbreviates names of SHACL.
func shortName(t kg.Term) string {
	if name, ours := strings.CutPrefix(t.Value(), sh); ours {
		return "sh:" + name
	}
	return t.String()
}

// locator locates the nodes of a document.
type locator struct {
	doc     document
	parents map[kg.Term]parent // of blank nodes
}

type parent struct{ subject, predicate kg.Term }

func newLocator(d document) *locator {
	p := &locator{d, map[kg.Term]parent{}}
	for _, s := range d.sortedSubjects() {
		for _, predicate := range d.sortedProperties(s) {
			for _, o := range d.sortedObjects(s, predicate) {
				if _, known := p.parents[o]; !known && o.Kind() == kg.KindBlank && o != s {
					p.parents[o] = parent{s, predicate}
				}
			}
		}
	}
	return p
}

// locate returns the named resource that contains a node, and the path to it.
func (p *locator) locate(node kg.Term) (root kg.Term, place string) {
	var parts []string
	for seen := map[kg.Term]bool{}; ; {
		up, inside := p.parents[node]
		if node.Kind() != kg.KindBlank || !inside || seen[node] {
			break
		}
		seen[node] = true
		if paths := p.doc[node][shTerm("path")]; len(paths) == 1 && paths[0].Kind() == kg.KindIRI {
			parts = append(parts, "property "+paths[0].String())
		}
		if up.predicate != rdfFirst && up.predicate != rdfRest {
			parts = append(parts, shortName(up.predicate))
		}
		node = up.subject
	}
	parts = append(parts, node.String())
	slices.Reverse(parts)
	return node, truncateText(strings.Join(parts, ": "), maxPlaceBytes)
}

// maxPlaceBytes is the largest length of a place in bytes.
const maxPlaceBytes = 2_000

// listIssues returns issues as LeftOut, sorted by shape.
func (p *locator) listIssues(issues []issue) []LeftOut {
	out := make([]LeftOut, 0, min(len(issues), MaxLeftOut+1))
	for i, x := range issues {
		if i == MaxLeftOut {
			out = append(out, LeftOut{Place: "and", Reason: fmt.Sprintf("%d more", len(issues)-i)})
			break
		}
		out = append(out, p.leftOut(x))
	}
	slices.SortStableFunc(out[:min(len(out), MaxLeftOut)], func(a, b LeftOut) int {
		return cmp.Or(a.Shape.Compare(b.Shape), strings.Compare(a.Place, b.Place), strings.Compare(a.Name, b.Name))
	})
	return out
}

func (p *locator) leftOut(x issue) LeftOut {
	l := LeftOut{Reason: x.reason}
	l.Shape, l.Place = p.locate(x.subject)
	if !x.predicate.IsZero() {
		l.Name = shortName(x.predicate)
	}
	return l
}

// errorFor returns an error for the issues; it names the first.
func (p *locator) errorFor(issues []issue) error {
	first := issues[0]
	e := *first.err
	e.Message = p.leftOut(first).String()
	if n := len(issues) - 1; n > 0 {
		e.Message += fmt.Sprintf(" (and %d more)", n)
	}
	const keep = "Put only the supported parts (koine shapes put --supported-only, supportedOnly of setShapes): koine stores the rest and lists the omitted parts."
	e.Hint = strings.TrimSpace(e.Hint + " " + keep)
	return &e
}
