package compact

import (
	"fmt"
	"strings"
	"unicode"

	"koine/kg"
)

// minUses is how often a namespace without a registered prefix occurs before the text
// declares one for it.
const minUses = 3

// maxInner bounds the facts about a blank node that are written in its place.
const maxInner = 20

// unit is a fact with those about its object, a blank node that is written in its place.
type unit struct {
	fact  *Fact
	inner []*Fact
}

func (u *unit) size() int { return 1 + len(u.inner) }

// follows reports whether a unit belongs to the same subject as the one before it.
func (u *unit) follows(before *unit) bool {
	return u.fact.Graph == before.fact.Graph && u.fact.Subject.Term == before.fact.Subject.Term
}

// sharedBrackets returns the brackets that most units of the first subject have, if it is
// shorter to write them once, or else "".
func sharedBrackets(units []unit) string {
	count, none := map[string]int{}, 0
	best := ""
	for i := range units {
		if i > 0 && !units[i].follows(&units[0]) {
			break
		}
		text := string(units[i].fact.appendBrackets(nil))
		if text == "" {
			none++
			continue
		}
		if count[text]++; best == "" || count[text] > count[best] {
			best = text
		}
	}
	if count[best] < 2 || (count[best]-1)*Tokens(best) <= none*Tokens(noBrackets) {
		return ""
	}
	return best
}

// noBrackets stand behind a fact that has none, below a subject with brackets.
const noBrackets = " []"

// unitsOf returns the units of facts in their order.
func unitsOf(facts []Fact) []unit {
	uses, about := map[kg.Term]int{}, map[kg.Term][]*Fact{}
	for i := range facts {
		f := &facts[i]
		if f.Object.Term.Kind() == kg.KindBlank {
			uses[f.Object.Term]++
		}
		if f.Subject.Term.Kind() == kg.KindBlank {
			about[f.Subject.Term] = append(about[f.Subject.Term], f)
		}
	}
	inPlace := func(f *Fact) []*Fact {
		node := f.Object.Term
		inner := about[node]
		if node.Kind() != kg.KindBlank || f.Subject.Term.Kind() == kg.KindBlank || uses[node] != 1 || len(inner) > maxInner || f.Object.Label != "" {
			return nil
		}
		brackets := string(f.appendBrackets(nil))
		for _, in := range inner {
			if in.Graph != f.Graph || in.Object.Term.Kind() == kg.KindBlank || string(in.appendBrackets(nil)) != brackets {
				return nil
			}
		}
		return inner
	}
	placed := map[kg.Term]bool{}
	for i := range facts {
		if len(inPlace(&facts[i])) > 0 {
			placed[facts[i].Object.Term] = true
		}
	}
	var units []unit
	for i := range facts {
		if f := &facts[i]; !placed[f.Subject.Term] {
			units = append(units, unit{f, inPlace(f)})
		}
	}
	return units
}

// nameNamespaces names the namespaces that several facts use and that have no prefix.
func (w *writer) nameNamespaces(facts []Fact) {
	uses := map[string]int{}
	var order []string
	for i := range facts {
		f := &facts[i]
		for _, t := range [...]kg.Term{f.Subject.Term, f.Predicate.Term, f.Object.Term} {
			if t.Kind() != kg.KindIRI || w.prefixes.Shorten(t.Value()) != t.Value() {
				continue
			}
			if namespace, local := splitNamespace(t.Value()); local != "" {
				if uses[namespace]++; uses[namespace] == minUses {
					order = append(order, namespace)
				}
			}
		}
	}
	w.own = map[string]string{}
	taken := map[string]bool{}
	for _, namespace := range order {
		name := prefixName(namespace)
		for n := 2; taken[name] || !w.prefixes.Registrable(name); n++ {
			name = fmt.Sprintf("%s%d", prefixName(namespace), n)
		}
		taken[name], w.own[namespace] = true, name
	}
}

// splitNamespace returns the parts of an IRI before and behind its last / or #, if the second
// can stand behind a prefix.
func splitNamespace(iri string) (namespace, local string) {
	i := strings.LastIndexAny(iri, "/#") + 1
	if !strings.Contains(iri, "://") || i <= strings.Index(iri, "://")+3 || !isBare(iri[i:]) || strings.ContainsAny(iri[i:], ":?") {
		return "", ""
	}
	return iri[:i], iri[i:]
}

// prefixName returns the last word in a namespace.
func prefixName(namespace string) string {
	words := strings.FieldsFunc(strings.ToLower(namespace), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
	if len(words) == 0 {
		return "ns"
	}
	return words[len(words)-1]
}

// namespaceOf returns the namespace of a prefix of the text.
func (w *writer) namespaceOf(name string) (string, bool) {
	if namespace, ok := w.prefixes.Namespace(name); ok {
		return namespace, true
	}
	for namespace, own := range w.own {
		if own == name {
			return namespace, true
		}
	}
	return "", false
}
