package kg_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/kg"
)

// A data directory of each released format is in testdata, and opens: format-1 is older
// than the validity of assertions. It was made by
//
//	1: ann: rome is a City; people 2700000, certainty 0.75, provenance {"page":12}
//	2: bob, through ann: people 2700000, certainty 0.5; in urn:g a motto in Latin
//	3: ann, with the key "key": people 2800000 instead; then a checkpoint
//	4: ann: the motto is removed
//	5: ann: in urn:g a river
func TestDirectoryOfAnEarlierFormat(t *testing.T) {
	for _, rebuild := range []bool{false, true} {
		t.Run(fmt.Sprintf("rebuild=%t", rebuild), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, "testdata/format-1.tar.gz", dir)
			o := kg.Options{MemTableBytes: kg.MinMemTableBytes, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }, Rebuild: rebuild}
			s := openStore(t, dir, o)
			sayTheFirstFormat(t, s)
			backs(t, s, "agent://ann", 3) // not counted at that time
			backs(t, s, "agent://bob", 0)
			checkSourceStatements(t, "at first", s)
			// New statements go into the same directory.
			span := kg.TimeSpan{From: time.Date(1871, 2, 3, 0, 0, 0, 0, time.UTC)}
			capital := kg.Quad{Subject: kg.IRI("urn:rome"), Predicate: kg.IRI("urn:capitalOf"), Object: kg.IRI("urn:italy")}
			if _, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann", Method: "local"}}, func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: capital, Validity: span})
			}); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			for _, again := range []bool{false, true} {
				o.Rebuild = again
				s = openStore(t, dir, o)
				list := linesAt(t, s, kg.View{ValidAt: span.From})
				if want := "urn:capitalOf <urn:italy> agent://ann 1871-02-03"; !slices.Contains(list, want) {
					t.Errorf("rebuild %t: got %q, want %q among them", again, list, want)
				}
				if list := linesAt(t, s, kg.View{ValidAt: span.From.Add(-1)}); len(list) != 3 {
					t.Errorf("rebuild %t: before, got %q, want the three that are always valid", again, list)
				}
				backs(t, s, "agent://ann", 4)
				checkSourceStatements(t, "again", s)
				mustClose(t, s)
			}
		})
	}
}

func sayTheFirstFormat(t *testing.T, s *kg.Store) {
	t.Helper()
	if head := s.Head().Revision; head != 5 {
		t.Fatalf("revision %d, want 5", head)
	}
	if report, err := s.Maintenance().Check(t.Context(), kg.CheckOptions{}); err != nil || !report.Clean() {
		t.Errorf("Check: %+v, %v", report, err)
	}
	const people, city = "urn:people", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type <urn:City> agent://ann"
	motto := `urn:motto "Senatus Populusque Romanus"@la agent://bob`
	older := people + ` "2700000"^^<http://www.w3.org/2001/XMLSchema#integer> agent://ann 0.75 {"page":12} agent://bob 0.5`
	for _, row := range []struct {
		at   kg.Revision
		want []string
	}{
		{2, []string{city, motto, older}},
		{5, []string{
			city, people + ` "2800000"^^<http://www.w3.org/2001/XMLSchema#integer> agent://ann`,
			`urn:river "a name too long to be written into an id: Tiber" agent://ann`,
		}},
	} {
		if got := linesAt(t, s, kg.View{At: row.at}); !slices.Equal(got, row.want) {
			t.Errorf("revision %d:\n got %q\nwant %q", row.at, got, row.want)
		}
	}
	c, err := s.Commit(t.Context(), kg.Principal{ID: "agent://ann", Method: "local"}, 2)
	if err != nil || c.Principal != "agent://ann" || c.Actor != "agent://bob" || c.Justification != "because" || len(c.Changes) != 2 {
		t.Errorf("the log says %+v, %v", c, err)
	}
	answered, err := s.Update(t.Context(), kg.Meta{
		Principal: kg.Principal{ID: "agent://ann", Method: "local"}, IdempotencyKey: "key", ContentHash: [32]byte{7},
	}, func(*kg.Tx) error { return errors.New("asked again") })
	if err != nil || !answered.Replayed || answered.Revision != 3 {
		t.Errorf("the key is answered with %+v, %v, not with revision 3", answered, err)
	}
}

// linesAt lists the statements of a view, one line each.
func linesAt(t *testing.T, s *kg.Store, v kg.View) (lines []string) {
	t.Helper()
	v.Principal = kg.Principal{ID: "agent://ann", Method: "local"}
	snap, err := s.View(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for st, err := range snap.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		line := st.Predicate.Value() + " " + st.Object.String()
		for _, a := range st.Assertions {
			line += " " + string(a.Source)
			if a.HasCertainty {
				line += fmt.Sprintf(" %g", a.Certainty)
			}
			if !a.Validity.From.IsZero() {
				line += a.Validity.From.Format(" 2006-01-02")
			}
			if a.Provenance != nil {
				line += " " + string(a.Provenance)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if !strings.HasPrefix(path, dir) || h.Typeflag == tar.TypeDir {
			continue
		}
		data, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
