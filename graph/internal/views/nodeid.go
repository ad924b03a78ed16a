package views

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"koine/graph/internal/scalar"
	"koine/kg"
)

// The ids of entities and statements contain the view in which the object was
// shown, so that a client that caches objects by id does not mix the past with
// the present:
//
//	urn:koine:entity:IRI            the entity in the present
//	urn:koine:entity@VIEW:IRI       the entity in another view (see idView)
//	urn:koine:statement:KEY         likewise for statements
//	urn:koine:statement@VIEW:KEY
//
// KEY is, in base64, subject, predicate and graph, each with its length, and a
// hash of the object: an object may be long, and the others lead to it.
const (
	EntityIDPrefix    = "urn:koine:entity"
	StatementIDPrefix = "urn:koine:statement"
	CommitIDPrefix    = "urn:koine:commit:"
)

// MaxNodeIDBytes bounds the length of ids in answers and arguments.
const MaxNodeIDBytes = 16 << 10

const objectHashBytes = 16

// A name that would make an id too long is replaced by hashMark, which begins
// neither an IRI nor a key, followed by the name's hash.
const (
	hashMark        = "#"
	hashedNameBytes = len(hashMark) + (sha256.Size*8+5)/6
)

func hashedName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hashMark + base64.RawURLEncoding.EncodeToString(sum[:])
}

// IDs makes the ids of entities and statements in one view. token
// separates the prefix from the name: ":" in the present, otherwise "@VIEW:".
type IDs struct{ token string }

var PresentIDs = &IDs{token: ":"}

// EntityIDBytes is the approximate length of an entity's id without its name.
func (ids *IDs) EntityIDBytes() int { return len(EntityIDPrefix) + len(ids.token) }

// AppendEntity writes the id of an entity as a JSON string.
func (ids *IDs) AppendEntity(b []byte, t kg.Term) []byte {
	if len(EntityIDPrefix)+len(ids.token)+len("_:")+len(t.Value()) > MaxNodeIDBytes {
		return scalar.AppendString(b, EntityIDPrefix+ids.token+hashedName(t.Name()))
	}
	b = append(append(append(b, '"'), EntityIDPrefix...), ids.token...)
	quote := len(b)
	b = scalar.AppendName(b, t)
	return append(b[:quote], b[quote+1:]...)
}

// StatementID returns the id of a statement.
func (ids *IDs) StatementID(q kg.Quad) string {
	key := KeyOfStatement(q)
	if len(StatementIDPrefix)+len(ids.token)+len(key) > MaxNodeIDBytes {
		key = hashedName(key)
	}
	return StatementIDPrefix + ids.token + key
}

// KeyOfStatement returns the KEY of a statement in its id.
func KeyOfStatement(q kg.Quad) string {
	var b []byte
	for _, t := range []kg.Term{q.Subject, q.Predicate, q.Graph} {
		name := t.Name()
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	h := objectHash(q.Object)
	return base64.RawURLEncoding.EncodeToString(append(b, h[:]...))
}

func objectHash(t kg.Term) (h [objectHashBytes]byte) {
	sum := sha256.Sum256([]byte(t.String()))
	copy(h[:], sum[:])
	return h
}

// CommitNodeID returns the id of a commit.
func CommitNodeID(r kg.Revision) string {
	return CommitIDPrefix + strconv.FormatUint(uint64(r), 10)
}

// ParseNodeID splits the id of an entity or a statement. ours is false for an
// id without the prefix. view is nil in the present.
func ParseNodeID(id, prefix string) (view *ViewInput, name string, ours bool, err error) {
	rest, found := strings.CutPrefix(id, prefix)
	if !found || rest == "" || rest[0] != ':' && rest[0] != '@' {
		return nil, "", false, nil
	}
	if rest[0] == '@' {
		text, name, found := strings.Cut(rest[1:], ":")
		if !found {
			return nil, "", true, kg.Errorf(kg.CodeInvalid, "the id has no name after its view").At("id")
		}
		view, err = parseViewToken(text)
		return view, rejectHashed(name, &err), true, err
	}
	return nil, rejectHashed(rest[1:], &err), true, err
}

// rejectHashed returns the name, and sets an error if it was replaced by its hash.
func rejectHashed(name string, err *error) string {
	if strings.HasPrefix(name, hashMark) && *err == nil {
		e := kg.Errorf(kg.CodeInvalid, "the id has only the hash of a long name, which cannot be looked up")
		e.Hint = "Use entity(iri:) or statements(where:) with the name."
		*err = e.At("id")
	}
	return name
}

// parseStatementKey returns the pattern and the object's hash of a key, false
// for an invalid one.
func parseStatementKey(key string) (p kg.Pattern, object [objectHashBytes]byte, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(key)
	if err != nil {
		return p, object, false
	}
	names := make([]string, 3)
	for i := range names {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return p, object, false
		}
		names[i], b = string(b[used:used+int(n)]), b[used+int(n):]
	}
	if len(b) != objectHashBytes {
		return p, object, false
	}
	copy(object[:], b)
	p.Graph = kg.DefaultGraph
	var errs [3]error
	p.Subject, errs[0] = kg.ParseIRI(names[0])
	p.Predicate, errs[1] = kg.ParseIRI(names[1])
	if names[2] != "" {
		p.Graph, errs[2] = kg.ParseIRI(names[2])
	}
	return p, object, errs == [3]error{}
}

// FindStatement finds the statement of a key.
func FindStatement(s *kg.Snapshot, key string) (row kg.Row, found bool, err error) {
	pattern, object, ok := parseStatementKey(key)
	if !ok {
		return row, false, nil
	}
	p, known, err := s.PatternIDs(pattern)
	if !known || err != nil {
		return row, false, err
	}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return row, false, err
		}
		t, err := s.Term(row.Object)
		if err != nil {
			return row, false, err
		}
		if objectHash(t) == object {
			return row, true, nil
		}
	}
	return row, false, nil
}
