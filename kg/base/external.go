package base

import (
	"net/url"
	"strings"
)

// ForeignIDPrefix is the prefix of the IRI for an id that is not an IRI: the protocols
// allow "a URI or unique identifier".
const ForeignIDPrefix = "urn:koine:id:"

// ResourceFromID returns the resource for an id from outside: an absolute IRI, a blank node
// ("_:label"), or, reversibly, any other text. Term.ExternalID returns the id.
func ResourceFromID(id string) (Term, error) {
	if id == "" {
		return Term{}, Errorf(CodeInvalid, "an id cannot be empty")
	}
	if strings.HasPrefix(id, "_:") || IsAbsoluteIRI(id) {
		return ParseIRI(id)
	}
	if len(id) > MaxResourceBytes/4 {
		return Term{}, Errorf(CodeLimitExceeded, "an id of %d bytes is too long", len(id))
	}
	t := IRI(ForeignIDPrefix + url.PathEscape(id))
	return t, t.Valid()
}

// ExternalID returns the id of a resource in the protocols, the inverse of ResourceFromID.
func (t Term) ExternalID() string {
	if rest, ok := strings.CutPrefix(t.value, ForeignIDPrefix); ok && t.kind == KindIRI {
		if id, err := url.PathUnescape(rest); err == nil && url.PathEscape(id) == rest && !IsAbsoluteIRI(id) {
			return id
		}
	}
	return t.Name()
}
