package assertions_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

var local = kg.SystemPrincipal()

func update(t testing.TB, s *kgtest.Store, m kg.Meta, patches ...kg.Patch) {
	t.Helper()
	if m.Principal.ID == "" {
		m.Principal = local
	}
	_, err := s.Update(slowtest.Context(t), m, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// generated returns a store of random statements: several sources, certainties,
// validities, provenance, justifications, updated and retracted assertions, blank nodes,
// literals of all kinds and several graphs, optionally with blank names.
func generated(t testing.TB, seed uint64, commits int, blankGraphs bool) *kgtest.Store {
	random := rand.New(rand.NewPCG(seed, 1))
	clock := kgtest.NewClock()
	s := kgtest.Disk(t, kg.Options{Clock: clock.Now})
	pick := func(n int, format string) string { return fmt.Sprintf(format, random.IntN(n)) }
	resource := func() kg.Term {
		if random.IntN(3) == 0 {
			return kg.Blank(pick(8, "b%d"))
		}
		return kg.IRI(pick(8, "https://example.org/n%d"))
	}
	literals := []kg.Term{
		kg.String("a \"text\"\n\t\\ with \u0001 é"), kg.String(""), kg.LangString("hallo", "de"), kg.Integer(7), kg.Typed("007", kg.XSDInteger),
		kg.Double(1e300), kg.Boolean(true), kg.Typed("1.50", kg.XSDDecimal), kg.Typed("x", "urn:type"), kg.Typed("{}", kg.RDF+"JSON"),
	}
	quad := func() kg.Quad {
		q := kg.Quad{Subject: resource(), Predicate: kg.IRI(pick(4, "https://example.org/p%d")), Object: resource()}
		if random.IntN(2) == 0 {
			q.Object = literals[random.IntN(len(literals))]
		}
		if random.IntN(2) == 0 {
			q.Graph = kg.IRI(pick(2, "https://example.org/g%d"))
		} else if blankGraphs && random.IntN(6) == 0 {
			q.Graph = kg.Blank(pick(8, "b%d"))
		}
		return q
	}
	var quads []kg.Quad
	for range commits {
		clock.Move(time.Duration(random.IntN(5000)) * time.Millisecond)
		m := kg.Meta{}
		if random.IntN(3) > 0 {
			m.Justification = pick(4, "because of \"%d\"\n")
		}
		var patches []kg.Patch
		for range 1 + random.IntN(6) {
			p := kg.Patch{Op: kg.Add, Quad: quad(), Source: kg.AgentID(pick(5, "agent://a%d"))}
			if len(quads) > 0 && random.IntN(3) == 0 {
				p.Quad = quads[random.IntN(len(quads))]
			}
			if random.IntN(6) == 0 {
				p.Op = kg.Remove
				if random.IntN(2) == 0 {
					p.Source = ""
				}
				patches = append(patches, p)
				continue
			}
			if random.IntN(2) == 0 {
				p.Certainty, p.HasCertainty = []float64{random.Float64(), 0, 1, 0.1, 5e-324}[random.IntN(5)], true
			}
			if random.IntN(4) == 0 {
				p.Validity.From = time.UnixMilli(random.Int64N(4e12)).UTC()
				if random.IntN(2) == 0 {
					p.Validity.Until = p.Validity.From.Add(time.Hour)
				}
			}
			if random.IntN(4) == 0 {
				p.Provenance = []byte(fmt.Sprintf(`{ "page":%d, "text":"\u00e9\n" }`, random.IntN(9)))
			}
			if random.IntN(4) == 0 {
				p.Embedding = &kg.Embedding{Model: pick(2, "model-%d"), Vector: []float32{random.Float32(), 1, -1e-30, 16777216}}
			}
			patches, quads = append(patches, p), append(quads, p.Quad)
		}
		update(t, s, m, patches...)
	}
	return s
}

// exported returns the document of all statements in a view.
func exported(t testing.TB, s *kgtest.Store, v kg.View, f rdf.Format) []byte {
	t.Helper()
	snapshot, err := s.View(slowtest.Context(t), v)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	var out bytes.Buffer
	w := rdf.NewWriter(&out, f, rdf.WriteOptions{})
	for q, err := range assertions.Export(snapshot) {
		if err == nil {
			err = w.Write(q)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sortBytes are the memory limits for sorting in the tests; the small one forces temporary files.
const (
	sortBytes      = 1 << 20
	smallSortBytes = 32 << 10
)

func read(t testing.TB, document []byte, f rdf.Format) *assertions.Document {
	t.Helper()
	return readWith(t, document, f, sortBytes)
}

func readWith(t testing.TB, document []byte, f rdf.Format, memory int) *assertions.Document {
	t.Helper()
	d := assertions.NewDocument(slowtest.Context(t), assertions.DocumentOptions{HasGraphs: f.HasGraphs(), Dir: t.TempDir(), SortBytes: memory})
	t.Cleanup(func() { d.Close() })
	if err := d.AddAll(rdf.Read(bytes.NewReader(document), f, rdf.Options{Tag: "doc"})); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return d
}

// restore restores statements with the given memory for sorting.
func restore(t testing.TB, s *kgtest.Store, by kg.Principal, statements iter.Seq2[assertions.Statement, error], memory int) (assertions.RestoreReport, error) {
	return assertions.Restore(slowtest.Context(t), s, kg.Meta{Principal: by, Justification: "the load"}, statements, assertions.RestoreOptions{Dir: t.TempDir(), SortBytes: memory})
}
