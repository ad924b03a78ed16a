package graph

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"koine/kg"
)

// statementIDPrefix begins the id of a statement, for Query.node. Behind it
// stand, in base64, subject, predicate and graph, each with its length, and a
// hash of the object: an object may be long, and the others lead to it.
const statementIDPrefix = "urn:koine:statement:"

const objectHashBytes = 16

// maxNodeIDBytes bounds the ids that are looked at.
const maxNodeIDBytes = 16 << 10

func statementIDOf(q kg.Quad) string {
	var b []byte
	for _, t := range []kg.Term{q.Subject, q.Predicate, q.Graph} {
		name := t.Name()
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	h := objectHash(q.Object)
	return statementIDPrefix + base64.RawURLEncoding.EncodeToString(append(b, h[:]...))
}

func objectHash(t kg.Term) (h [objectHashBytes]byte) {
	sum := sha256.Sum256([]byte(t.String()))
	copy(h[:], sum[:])
	return h
}

// parseStatementID gives the pattern and the object's hash that an id holds;
// false when it is none.
func parseStatementID(id string) (p kg.Pattern, object [objectHashBytes]byte, ok bool) {
	rest, ok := strings.CutPrefix(id, statementIDPrefix)
	if !ok || len(id) > maxNodeIDBytes {
		return p, object, false
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
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

// findStatement looks for the statement of an id.
func findStatement(s *kg.Snapshot, id string) (row kg.Row, found bool, err error) {
	pattern, object, ok := parseStatementID(id)
	if !ok {
		return row, false, nil
	}
	p, known, err := idPattern(s, pattern)
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
