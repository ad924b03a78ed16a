package query

import (
	"strconv"
	"strings"

	"koine/kg"
)

// maxHintedID bounds the ids, in bytes, for which a hint shows the IRI.
const maxHintedID = 200

// ParseResource parses the name of a resource: an absolute IRI, a registered
// prefix:name or "_:label". Other texts are valid ids of subjects and objects
// (docs/reference/knowledge.md), but not here, where a forgotten prefix would silently find
// nothing. The error shows the IRI under which such an id is stored.
func ParseResource(prefixes *kg.Prefixes, text string) (kg.Term, error) {
	t, err := prefixes.Resource(text)
	if err == nil || len(text) > maxHintedID {
		return t, err
	}
	id, notOne := kg.ResourceFromID(text)
	if notOne != nil || !strings.HasPrefix(id.Value(), kg.ForeignIDPrefix) {
		return t, err
	}
	e := *kg.AsError(err)
	e.Hint = "If it is the id of a subject or an object and not an IRI, use " + strconv.Quote(id.Value()) + "."
	return t, &e
}
