package kg_test

import (
	"strings"
	"testing"

	"koine/kg"
)

// New terms have IRIs as RFC 3987 defines them; FixIRI corrects those that percent-encoding
// can correct.
func TestNewIRIs(t *testing.T) {
	for _, iri := range []string{
		"urn:x", "http://x", "http://x/", "http://x:8080/a/b;c=d?e=f&g=/?#h/?", "http://u:p@h.example:/", "http://[::1]:80/x", "http://[v1.a:b]/",
		"http://ex\u00e4mple/\u65e5\u672c?\ue000", "mailto:a@b", "tag:x,2024:y", "file:///a%20b", "agent://anna", "did:web:x/y", "urn:koine:vocab:x",
		"scheme:!$%25&'()*+,-./0123456789:/@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~?#", "http://x/#", "http://x?#", "http://x#a?b/c",
	} {
		if err := kg.IRI(iri).ValidNew(); err != nil {
			t.Errorf("%s: %v", iri, err)
		}
		if got := kg.FixIRI(iri); got != iri {
			t.Errorf("%s: fixed to %s", iri, got)
		}
	}
	for iri, fixed := range map[string]string{
		"http://x#a#b": "http://x#a%23b", "http://x/%": "http://x/%25", "http://x/%2": "http://x/%252", "http://x/%zz": "http://x/%25zz", "http://x/a b": "http://x/a%20b",
		"urn:[": "urn:%5B", "http://x/?a[]": "http://x/?a%5B%5D", "http://x/\ue000": "http://x/%EE%80%80", "http://x/\ufdd0": "http://x/%EF%B7%90",
		"http://x/\u0080": "http://x/%C2%80", "http://x/<>\"{}|\\^`": "http://x/%3C%3E%22%7B%7D%7C%5C%5E%60", "http://a\"b/": "http://a%22b/",
		"http://x:port/": "", "http://[x/": "", "http://[]/": "", "http://a]/": "", "http://a:b:1/": "", "x y:z": "", "relative": "", "urn:": "", "http://[::%31]/": "",
	} {
		if kg.IRI(iri).ValidNew() == nil {
			t.Errorf("%s is accepted", iri)
		}
		got := kg.FixIRI(iri)
		if err := kg.IRI(got).ValidNew(); fixed != "" && (got != fixed || err != nil) || fixed == "" && err == nil {
			t.Errorf("%s: fixed to %s, %v; want %q", iri, got, err, fixed)
		}
	}
	if err := kg.Typed("x", "http://x#a#b").ValidNew(); err == nil || !strings.Contains(err.Error(), "RFC 3987") {
		t.Errorf("a datatype: %v", err)
	}
	if err := kg.Typed("x", kg.RDFDirLangString).ValidNew(); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("rdf:dirLangString: %v", err)
	}
}

// An IRI that RFC 3987 forbids is refused by every call; a stored one is read and removed,
// and its log entry is applied again.
func TestForbiddenIRIsThatAreStored(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, kg.Options{})
	bad := kg.Quad{Subject: kg.IRI("http://x#a#b"), Predicate: kg.IRI("urn:p"), Object: kg.Typed("1", "urn:[t]"), Graph: kg.DefaultGraph}
	apply := func(op kg.Op) error {
		_, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: op, Quad: bad}) })
		return err
	}
	for _, op := range []kg.Op{kg.Add, kg.Replace} {
		if err := apply(op); kg.CodeOf(err) != kg.CodeInvalid || kg.AsError(err).Field != "subject" {
			t.Errorf("%s: %v", op, err)
		}
	}
	_, err := s.Load(within(t), kg.Meta{}, func(yield func(kg.Quad, error) bool) { yield(bad, nil) }, kg.LoadOptions{})
	if kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("loaded: %v", err)
	}
	// As a build wrote it that did not check: koine's own statements are not checked either.
	stored := bad
	stored.Graph = kg.IRI(kg.OwnGraphPrefix + "system")
	if _, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: stored}) }); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
	v, err := s.View(within(t), kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{stored.Graph}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := v.Count(kg.Pattern{Subject: bad.Subject}); err != nil || n != 1 {
		t.Errorf("counted %d, %v", n, err)
	}
	v.Close()
	bad = stored
	if _, err := s.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: bad}) }); err != nil {
		t.Errorf("removing: %v", err)
	}
}
