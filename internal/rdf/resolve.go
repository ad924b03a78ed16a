package rdf

import (
	"hash/maphash"
	"strings"

	"koine/kg"
)

// resolveIRI resolves an IRI reference (RFC 3986, section 5.2). It works on the text,
// because net/url would rewrite characters that an IRI may contain. A relative reference
// without a base is an error.
func resolveIRI(base, ref string) (string, error) {
	if schemeOf(ref) != "" {
		return ref, nil
	}
	if base == "" {
		return "", invalid("the IRI %s is relative and the document has no base", excerpt([]byte(ref)))
	}
	s := schemeOf(base)
	authority, path, query, _ := splitIRI(base[len(s)+1:])
	rAuthority, rPath, rQuery, rFragment := splitIRI(ref)
	switch {
	case rAuthority != "":
		authority, path, query = rAuthority, removeDots(rPath), rQuery
	case rPath == "":
		if rQuery != "" {
			query = rQuery
		}
	case strings.HasPrefix(rPath, "/"):
		path, query = removeDots(rPath), rQuery
	default:
		path, query = removeDots(mergePaths(authority, path, rPath)), rQuery
	}
	return s + ":" + authority + path + query + rFragment, nil
}

// schemeOf returns the scheme of an IRI, "" for a relative reference.
func schemeOf(iri string) string {
	for i := range len(iri) {
		switch c := iri[i]; {
		case c == ':' && i > 0:
			return iri[:i]
		case isAlnum(c) && (i > 0 || !isDigit(c)), i > 0 && (c == '+' || c == '-' || c == '.'):
		default:
			return ""
		}
	}
	return ""
}

// splitIRI splits the part after the scheme; each part keeps its leading delimiter.
func splitIRI(s string) (authority, path, query, fragment string) {
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, fragment = s[:i], s[i:]
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, query = s[:i], s[i:]
	}
	if strings.HasPrefix(s, "//") {
		n := strings.IndexByte(s[2:], '/')
		if n < 0 {
			return s, "", query, fragment
		}
		return s[:n+2], s[n+2:], query, fragment
	}
	return "", s, query, fragment
}

// mergePaths appends a relative path after the base's last slash (section 5.2.3).
func mergePaths(authority, base, ref string) string {
	if authority != "" && base == "" {
		return "/" + ref
	}
	return base[:strings.LastIndexByte(base, '/')+1] + ref
}

// removeDots removes "." and ".." segments (section 5.2.4).
func removeDots(path string) string {
	var out []string
	segments := strings.Split(path, "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "." || s == "..":
			if s == ".." && len(out) > 0 && (len(out) > 1 || out[0] != "") {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return strings.Join(out, "/")
}

// internSlots is the size of the IRI cache. Documents repeat predicates, classes and adjacent
// subjects; a direct-mapped cache finds nearly all of them.
const internSlots = 1 << 12

// iriCache caches IRIs by their bytes, so that a repeated IRI is neither checked nor
// allocated again. A collision replaces the earlier IRI.
type iriCache struct {
	options *Options
	seed    maphash.Seed
	slots   [internSlots]kg.Term
}

func newInterned(o *Options) *iriCache { return &iriCache{options: o, seed: maphash.MakeSeed()} }

// lookUpIRI returns the term of an absolute IRI. It checks the IRI if it is not cached.
func (t *iriCache) lookUpIRI(text []byte) (kg.Term, error) {
	slot := &t.slots[maphash.Bytes(t.seed, text)%internSlots]
	if !slot.IsZero() && slot.Value() == string(text) {
		return *slot, nil
	}
	iri, err := t.options.checkedIRI(string(text))
	if err != nil {
		return kg.Term{}, err
	}
	*slot = iri
	return iri, nil
}
