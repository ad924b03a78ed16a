package graph

import (
	"strconv"
	"strings"

	"koine/kg"
)

// maxHintedID bounds the ids, in bytes, of which a hint tells the IRI.
const maxHintedID = 200

// resourceNamed is the resource that a text names: an absolute IRI, a registered
// prefix:name or "_:label". Other texts can be ids of subjects and objects too (WIRE §4),
// but not here, where a prefix that was forgotten would be found nowhere without a word:
// the error tells the IRI that such an id is kept under.
func resourceNamed(prefixes *kg.Prefixes, text string) (kg.Term, error) {
	t, err := prefixes.Resource(text)
	if err == nil || len(text) > maxHintedID {
		return t, err
	}
	id, notOne := kg.ResourceFromID(text)
	if notOne != nil || !strings.HasPrefix(id.Value(), kg.ForeignIDPrefix) {
		return t, err
	}
	e := *kg.AsError(err)
	e.Hint = "Where it is the id of a subject or an object and no IRI, ask for " + strconv.Quote(id.Value()) + "."
	return t, &e
}
