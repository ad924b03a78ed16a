package rdfdata

import (
	"mime"
	"net/http"
	"net/url"
	"strings"

	"koine/internal/rdf"
	"koine/kg"
)

// contextRelation is the relation of a Link header with the context of a JSON document
// (JSON-LD 1.1, section 6.1).
const contextRelation = "http://www.w3.org/ns/json-ld#context"

// jsonldOptions returns the options for reading the body as JSON-LD.
func (h *handler) jsonldOptions(r *http.Request, base string) (rdf.JSONLDOptions, error) {
	o := h.options.JSONLD
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return o, nil // application/ld+json has its own context
	}
	contexts := linkTargets(r.Header.Values("Link"), contextRelation)
	switch len(contexts) {
	case 0:
		return o, nil
	case 1:
	default:
		return o, kg.Errorf(kg.CodeInvalid, "multiple context link headers: a document can have one context by Link").At("Link")
	}
	ref, err := url.Parse(contexts[0])
	own, ownErr := url.Parse(base)
	if err != nil || ownErr != nil {
		return o, kg.Errorf(kg.CodeInvalid, "the context in the Link header is not a valid IRI").At("Link")
	}
	o.Context = own.ResolveReference(ref).String()
	return o, nil
}

// linkTargets returns the targets of Link headers with a relation (RFC 8288, section 3).
func linkTargets(headers []string, relation string) (targets []string) {
	for _, header := range headers {
		for rest := header; ; {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, after, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			var params string
			params, rest = linkParameters(after)
			_, values, err := mime.ParseMediaType("x/x" + params)
			if err == nil && hasRelation(values["rel"], relation) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

// linkParameters splits a link's parameters from the next link, at the first comma
// outside of quotes.
func linkParameters(s string) (params, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				return s[:i], s[i:]
			}
		}
	}
	return s, ""
}

func hasRelation(rel, relation string) bool {
	for name := range strings.FieldsSeq(rel) {
		if name == relation {
			return true
		}
	}
	return false
}
