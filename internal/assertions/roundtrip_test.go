package assertions_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// differences compares two stores and returns the differences.
func differences(t testing.TB, a, b *kgtest.Store, o assertions.CompareOptions) (out []assertions.Difference) {
	t.Helper()
	o.Dir, o.SortBytes = t.TempDir(), sortBytes
	one, err := a.View(slowtest.Context(t), kg.View{Principal: local})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	other, err := b.View(slowtest.Context(t), kg.View{Principal: local})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c, err := assertions.Compare(slowtest.Context(t), assertions.Statements(one), assertions.Statements(other), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if notes := c.Notes(); len(notes) > 0 {
		t.Errorf("the comparison says: %q", notes)
	}
	for d, err := range c.Differences() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func wantSame(t testing.TB, a, b *kgtest.Store) {
	t.Helper()
	for _, d := range differences(t, a, b, assertions.CompareOptions{}) {
		t.Errorf("differs: %v %v %v, was %v, is %v\nbefore %v\nafter  %v", d.Subject, d.Predicate, d.Object, d.Was, d.Is, d.Before, d.After)
	}
}

// TestRoundTrip proves that assertions survive each format, repeatedly.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(slowtest.Size(2, 1)) {
		named, blank := generated(t, seed, 40, false), generated(t, seed, 40, true)
		for _, f := range rdf.Formats {
			t.Run(fmt.Sprint(f, " ", seed), func(t *testing.T) {
				from := blank
				if f == rdf.JSONLD { // its reader rejects blank graph names
					from = named
				}
				document := exported(t, from, kg.View{Principal: local}, f)
				once := kgtest.Disk(t, kg.Options{})
				report, err := restore(t, once, local, readWith(t, document, f, smallSortBytes).Statements(), smallSortBytes)
				if err != nil {
					t.Fatal(err)
				}
				if report.Changed != report.Assertions || report.Assertions < report.Statements || report.Commits == 0 {
					t.Errorf("the report is %+v", report)
				}
				wantSame(t, from, once)
				if again, err := restore(t, once, local, read(t, document, f).Statements(), sortBytes); err != nil || again.Changed != 0 || again.Commits != 0 {
					t.Errorf("the same document again: %+v, %v", again, err)
				}
				twice := kgtest.Disk(t, kg.Options{})
				if _, err := restore(t, twice, local, read(t, exported(t, once, kg.View{Principal: local}, f), f).Statements(), sortBytes); err != nil {
					t.Fatal(err)
				}
				wantSame(t, from, twice)
			})
		}
	}
}

// loadPlain loads a document as data.
func loadPlain(t testing.TB, s *kgtest.Store, document []byte, f rdf.Format) {
	t.Helper()
	quads := rdf.Read(bytes.NewReader(document), f, rdf.Options{Tag: "plain"})
	if _, err := s.Load(slowtest.Context(t), kg.Meta{Principal: local}, quads, kg.LoadOptions{Online: true}); err != nil {
		t.Fatal(err)
	}
}

// TestDescriptionsAsData proves that a document loaded as data stays data: its
// descriptions do not become assertions when the store is exported and restored.
func TestDescriptionsAsData(t *testing.T) {
	from := generated(t, 7, 1, false)
	for _, f := range rdf.Formats {
		t.Run(f.String(), func(t *testing.T) {
			data := kgtest.Disk(t, kg.Options{})
			loadPlain(t, data, exported(t, from, kg.View{Principal: local}, f), f)
			// Repeat, to get descriptions of descriptions.
			nested := kgtest.Disk(t, kg.Options{})
			loadPlain(t, nested, exported(t, data, kg.View{Principal: local}, f), f)
			for _, s := range []*kgtest.Store{data, nested} {
				to := kgtest.Disk(t, kg.Options{})
				if _, err := restore(t, to, local, read(t, exported(t, s, kg.View{Principal: local}, f), f).Statements(), sortBytes); err != nil {
					t.Fatal(err)
				}
				wantSame(t, s, to)
			}
		})
	}
}

// TestForgedDescription proves that a description that an agent writes into a store does
// not become an assertion, whatever labels it uses.
func TestForgedDescription(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	iri := func(text string) kg.Term { return kg.IRI(text) }
	forged := func(node kg.Term) (out []kg.Patch) {
		for _, po := range [][2]kg.Term{
			{iri(kg.RDFType), iri(assertions.Namespace + "Assertion")}, {iri(kg.RDF + "subject"), iri("urn:s")},
			{iri(kg.RDF + "predicate"), iri("urn:p")}, {iri(kg.RDF + "object"), kg.String("o")},
			{iri("http://www.w3.org/ns/prov#wasAttributedTo"), iri("agent://boss")},
		} {
			out = append(out, kg.Patch{Op: kg.Add, Source: "agent://mallory", Quad: kg.Quad{Subject: node, Predicate: po[0], Object: po[1], Graph: assertions.Graph}})
		}
		return out
	}
	update(t, s, kg.Meta{}, kg.Patch{Op: kg.Add, Source: "agent://mallory", Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String("o")}})
	for _, node := range []kg.Term{kg.Blank("a1"), kg.Blank("s-a1"), kg.Blank("x"), iri("urn:x")} {
		update(t, s, kg.Meta{}, forged(node)...)
	}
	for _, f := range rdf.Formats {
		to := kgtest.Disk(t, kg.Options{})
		if _, err := restore(t, to, local, read(t, exported(t, s, kg.View{Principal: local}, f), f).Statements(), sortBytes); err != nil {
			t.Fatal(err)
		}
		wantSame(t, s, to)
		snapshot, err := to.View(slowtest.Context(t), kg.View{Principal: local})
		if err != nil {
			t.Fatal(err)
		}
		for st, err := range snapshot.Match(kg.Pattern{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range st.Assertions {
				if a.Source != "agent://mallory" {
					t.Errorf("%s: %s is said to assert %v", f, a.Source, st.Quad)
				}
			}
		}
		snapshot.Close()
	}
}

// TestOneGraph proves that the document of one graph, in a format without graphs,
// restores the graph.
func TestOneGraph(t *testing.T) {
	from := generated(t, 9, 40, true)
	g := kg.IRI("https://example.org/g1")
	document := exported(t, from, kg.View{Principal: local, Graphs: []kg.Term{g}}, rdf.Turtle)
	to := kgtest.Disk(t, kg.Options{})
	if _, err := restore(t, to, local, read(t, document, rdf.Turtle).Statements(), sortBytes); err != nil {
		t.Fatal(err)
	}
	for _, d := range differences(t, from, to, assertions.CompareOptions{}) {
		if d.Graph == g || d.Is {
			t.Errorf("differs: %v", d.Quad)
		}
	}
}

// only is an Access that lets other agents read some graphs only.
type only struct {
	all    kg.AgentID
	graphs map[kg.Term]bool
}

func (o only) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID == o.all || p.ID == kg.System || o.graphs[graph]
}

// TestExportShowsTheView proves that a document has exactly the reader's view: it equals
// that of a store with only this content, except for revisions.
func TestExportShowsTheView(t *testing.T) {
	open, hidden := kg.DefaultGraph, kg.IRI("urn:hidden")
	clock := kgtest.NewClock()
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: only{"agent://all", map[kg.Term]bool{open: true}}}, Clock: clock.Now})
	clean := kgtest.Disk(t, kg.Options{Clock: clock.Now})
	q := func(o string, g kg.Term) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(o), Graph: g}
	}
	all := kg.Principal{ID: "agent://all"}
	sure := kg.Patch{Op: kg.Add, Quad: q("one", open), Source: "agent://a", Certainty: 0.9, HasCertainty: true}
	unsure := kg.Patch{Op: kg.Add, Quad: q("one", open), Source: "agent://b", Certainty: 0.2, HasCertainty: true}
	mixed := kg.Patch{Op: kg.Add, Quad: q("two", open), Source: "agent://a"}
	secret := kg.Patch{Op: kg.Add, Quad: q("secret", hidden), Source: "agent://secretive"}
	update(t, s, kg.Meta{Principal: all, Justification: "public"}, sure)
	update(t, s, kg.Meta{Principal: all, Justification: "doubtful"}, unsure)
	update(t, s, kg.Meta{Principal: all, Justification: "told in confidence"}, mixed, secret)
	update(t, clean, kg.Meta{Justification: "public"}, sure)
	update(t, clean, kg.Meta{Justification: "irrelevant"}, kg.Patch{Op: kg.Remove, Quad: q("never", open)}, kg.Patch{Op: kg.Add, Quad: q("gone", open)})
	update(t, clean, kg.Meta{}, mixed)
	update(t, clean, kg.Meta{}, kg.Patch{Op: kg.Remove, Quad: q("gone", open)})
	reader := kg.View{Principal: kg.Principal{ID: "agent://reader"}, MinCertainty: 0.5}
	for _, f := range rdf.Formats {
		got := string(exported(t, s, reader, f))
		want := string(exported(t, clean, kg.View{Principal: local}, f))
		if got != want {
			t.Errorf("%s: the reader gets\n%s\nand of a store with only that it would be\n%s", f, got, want)
		}
		if whole := string(exported(t, s, kg.View{Principal: all}, f)); !strings.Contains(whole, "in confidence") || !strings.Contains(whole, "secretive") || !strings.Contains(whole, "doubtful") {
			t.Errorf("%s: who reads all does not get all:\n%s", f, whole)
		}
	}
}

// TestEmpty proves that an empty store round-trips.
func TestEmpty(t *testing.T) {
	if got := exported(t, kgtest.Disk(t, kg.Options{}), kg.View{Principal: local}, rdf.NQuads); len(got) > 0 {
		t.Errorf("an empty store gives %s", got)
	}
}

// TestRestoreIsForAdministrators proves that only administrators can restore assertions.
func TestRestoreIsForAdministrators(t *testing.T) {
	document := exported(t, generated(t, 3, 5, true), kg.View{Principal: local}, rdf.NQuads)
	for _, row := range []struct {
		by   kg.Principal
		want kg.Code
	}{
		{kg.Principal{ID: "agent://x", Method: "key"}, kg.CodePermissionDenied},
		{kg.Principal{ID: "agent://x", Method: "key", ActFor: []kg.AgentID{kg.Anybody}}, kg.CodePermissionDenied},
		{kg.Principal{ID: "agent://x", Method: "key", Roles: []string{kg.RoleReviewer}}, kg.CodePermissionDenied},
		{kg.Principal{ID: "agent://x", Method: "key", Roles: []string{kg.RoleAdmin}}, ""},
	} {
		s := kgtest.Disk(t, kg.Options{})
		_, err := restore(t, s, row.by, read(t, document, rdf.NQuads).Statements(), sortBytes)
		if kg.CodeOf(err) != row.want {
			t.Errorf("%+v: got %v, want %q", row.by, err, row.want)
		}
		if row.want != "" && s.Head().Revision != 0 {
			t.Errorf("%+v wrote something", row.by)
		}
	}
}

// overloaded is a store that rejects the first updates.
type overloaded struct {
	*kg.Store
	code    kg.Code
	until   int // the first accepted call
	refused int
}

func (o *overloaded) Update(ctx context.Context, m kg.Meta, f func(*kg.Tx) error) (kg.Receipt, error) {
	if o.refused++; o.refused < o.until {
		return kg.Receipt{}, kg.Errorf(o.code, "full")
	}
	return o.Store.Update(ctx, m, f)
}

func TestRestoreWaitsForRoom(t *testing.T) {
	for _, code := range []kg.Code{kg.CodeOverloaded, kg.CodeRateLimited} {
		s := kgtest.Disk(t, kg.Options{})
		d := read(t, []byte("<urn:s> <urn:p> <urn:o> .\n"), rdf.NQuads)
		o := &overloaded{Store: s.Store, code: code, until: 3}
		report, err := assertions.Restore(slowtest.Context(t), o, kg.Meta{Principal: local}, d.Statements(), assertions.RestoreOptions{})
		if err != nil || report.Changed != 1 || o.refused != 3 {
			t.Errorf("%s: got %+v, %v after %d calls", code, report, err, o.refused)
		}
	}
}

// TestRestoreEndsItsWait proves that retries of a commit are bounded.
func TestRestoreEndsItsWait(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	d := read(t, []byte("<urn:s> <urn:p> <urn:o> .\n"), rdf.NQuads)
	o := &overloaded{Store: s.Store, code: kg.CodeOverloaded, until: math.MaxInt}
	wait := assertions.RestoreOptions{MaxWait: 250 * time.Millisecond}
	if _, err := assertions.Restore(slowtest.Context(t), o, kg.Meta{Principal: local}, d.Statements(), wait); kg.CodeOf(err) != kg.CodeOverloaded || o.refused != 3 {
		t.Errorf("got %v after %d calls, want what the store says after 3", err, o.refused)
	}
}
