package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// prefixTexts are texts with common beginnings, shorter and longer than what the ids and the keys
// of the dictionary hold.
func prefixTexts() (texts []string) {
	long := strings.Repeat("0123456789", 7)
	for _, begin := range []string{"", "a", "ab", "abcdefg", "abcdefgh", "A", "ä", "a\x00b", "a\xf4\x8f\xbf\xbf", long[:60], long[:62], long[:63], long[:64], long, long + "x"} {
		for _, end := range []string{"", "a", "b", "\x00", "z", long} {
			texts = append(texts, begin+end)
		}
	}
	return texts
}

// prefixStore has labels and other values of texts in all forms. more adds this many terms with the
// prefix "many", of which the callers see none: a secret graph has the statements.
func prefixStore(t *testing.T, more int) *kg.Store {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: secretGraphs{}}, ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	root := kg.Meta{Principal: kg.Principal{ID: "agent://root"}}
	label := kg.IRI("urn:label")
	random := rand.New(rand.NewPCG(3, 4))
	var objects []kg.Term
	for _, text := range prefixTexts() {
		objects = append(objects, kg.String(text), kg.LangString(text, "en"), kg.LangString(text, "de-CH"), kg.Typed(text, "urn:datatype"), kg.Typed(text, kg.XSD+"token"), kg.IRI(fmt.Sprintf("urn:x%x", text)))
	}
	for i := range 40 {
		objects = append(objects, kg.String(fmt.Sprint("many", i)), kg.Integer(int64(i)), kg.Typed(fmt.Sprint(i, ".5"), kg.XSDDecimal), kg.Blank(fmt.Sprint("b", i)))
	}
	update := func(fn func(tx *kg.Tx) error) {
		t.Helper()
		if _, err := store.Update(t.Context(), root, fn); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		update(func(tx *kg.Tx) error {
			for i, o := range objects {
				subject := kg.IRI(fmt.Sprintf("urn:s%d", random.IntN(200)))
				switch random.IntN(6) {
				case 0:
					subject = kg.Blank(fmt.Sprint("s", random.IntN(20)))
				case 1:
					subject = kg.IRI("urn:" + strings.Repeat("long", 16) + fmt.Sprint(random.IntN(50)))
				}
				q := kg.Quad{Subject: subject, Predicate: label, Object: o, Graph: kg.DefaultGraph}
				if i%5 == 0 {
					q.Predicate = kg.IRI("urn:other")
				}
				if i%7 == 0 {
					q.Graph = kg.IRI("urn:g")
				}
				p := kg.Patch{Op: kg.Add, Quad: q}
				if round > 0 && random.IntN(3) == 0 {
					p.Op = kg.Remove
				}
				if err := tx.Apply(p); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
					return err
				}
			}
			return nil
		})
	}
	for from := 0; from < more; from += 1 << 12 {
		update(func(tx *kg.Tx) error {
			for i := from; i < min(more, from+1<<12); i++ {
				q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s-many", i)), Predicate: label, Object: kg.String(fmt.Sprint("many more ", i)), Graph: kg.IRI("urn:secret:many")}
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return store
}

// prefixConditions are conditions with a prefix on labels, on other values and on IRIs.
func prefixConditions(prefix string) map[string]*EntityFilter {
	return map[string]*EntityFilter{
		"label": {Label: &StringFilter{Substring: Substring{StartsWith: &prefix}}},
		"value": {Property: []PropertyFilter{{Predicate: kg.IRI("urn:other"), ValueFilter: ValueFilter{Substring: Substring{StartsWith: &prefix}}}}},
		"iri":   {IRI: &IRIFilter{Substring: Substring{StartsWith: &prefix}}},
		"both": {
			IRI:   &IRIFilter{Substring: Substring{StartsWith: new("urn:s")}},
			Label: &StringFilter{Substring: Substring{StartsWith: &prefix}},
		},
	}
}

// asGeneral returns the condition without its access paths, so that all entities are read.
func asGeneral(t *testing.T, f *EntityFilter) *EntityMatch {
	t.Helper()
	m, err := prefixCompiler(t).Entities(f)
	if err != nil {
		t.Fatal(err)
	}
	m.accessPaths = nil
	return m
}

func prefixCompiler(t *testing.T) Compiler {
	return Compiler{Ctx: t.Context(), Labels: []kg.Term{kg.IRI("urn:label")}}
}

// somePrefixes are prefixes that some terms have, and some that none has.
func somePrefixes() []string {
	list := []string{"many", "many more", "urn:", "urn:s", "urn:s1", "urn:s-", "urn:longlong", "urn:" + strings.Repeat("long", 16), "urn:" + strings.Repeat("long", 16) + "4", "_", "_:", "_:s", "1", "0.", "x", "urn:nothing", "\xff"}
	for _, text := range prefixTexts() {
		list = append(list, text, text[:len(text)/2], text[:max(len(text), 1)-1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A list with a prefix is the one that reading everything finds: in each page, in its order and count.
// It holds with all terms looked up, and with more of them than are looked up.
func TestPrefixLists(t *testing.T) {
	slowtest.WithoutRace(t)
	for _, more := range []int{0, kg.MaxPrefixed} {
		t.Run(fmt.Sprint(more), func(t *testing.T) { comparePrefixLists(t, more) })
	}
}

// TestPrefixListsOfMany is TestPrefixLists for more subjects than are looked up.
func TestPrefixListsOfMany(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	comparePrefixLists(t, kg.MaxPrefixedSubjects)
}

// comparePrefixLists compares lists in a store with so many more terms of two prefixes.
func comparePrefixLists(t *testing.T, more int) {
	t.Helper()
	store := prefixStore(t, more)
	found := map[string]int{}
	eachView(t, store, func(s *kg.Snapshot) {
		for _, prefix := range somePrefixes() {
			if more > 0 && !strings.HasPrefix("many more", prefix) && !strings.HasPrefix("urn:s-many", prefix) {
				continue
			}
			if more > kg.MaxPrefixed && prefix != "many more" && prefix != "urn:s-" {
				continue // reading everything takes long
			}
			for name, f := range prefixConditions(prefix) {
				found[name] += comparePrefixed(t, s, f, name+" "+prefix)
			}
			found["statements"] += compareStatements(t, s, prefix)
		}
	})
	for _, name := range []string{"label", "value", "iri", "both", "statements"} {
		if found[name] == 0 && (more <= kg.MaxPrefixed || name == "label" || name == "iri") {
			t.Errorf("no prefix of %s finds anything: %v", name, found)
		}
	}
}

// comparePrefixed compares the pages of a list with those of reading everything. It returns the
// number of entities.
func comparePrefixed(t *testing.T, s *kg.Snapshot, f *EntityFilter, what string) (n int) {
	t.Helper()
	m, err := prefixCompiler(t).Entities(f)
	if err != nil {
		t.Fatal(err)
	}
	general := EntityList{Match: asGeneral(t, f), First: 7, Total: true}
	list := EntityList{Match: m, First: 7, Total: true}
	var after *kg.ID
	for range 4 {
		want, err := general.Page(s, after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := list.Page(s, after)
		if err != nil || !slices.Equal(got.Keys, want.Keys) || got.More != want.More || got.Total != want.Total {
			t.Fatalf("%s after %v: got %v, more %v, of %d, %v; want %v, more %v, of %d", what, after, got.Keys, got.More, got.Total, err, want.Keys, want.More, want.Total)
		}
		n += len(got.Keys)
		if !got.More {
			break
		}
		after = &got.Keys[len(got.Keys)-1]
	}
	return n
}

// compareStatements is comparePrefixed for statements with a text as their object.
func compareStatements(t *testing.T, s *kg.Snapshot, prefix string) (n int) {
	t.Helper()
	label := kg.IRI("urn:label")
	m, err := prefixCompiler(t).Statements(&StatementFilter{Predicate: &IRIFilter{Eq: &label}, Object: &ValueFilter{Substring: Substring{StartsWith: &prefix}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.objects == nil {
		t.Fatal("the condition selects no objects")
	}
	list := StatementList{Match: m, First: 5, Total: true}
	general := list
	general.Match.objects = nil
	p, known, err := m.Lookup(s)
	if err != nil || !known {
		t.Fatal(known, err)
	}
	var after *kg.IDQuad
	for range 4 {
		want, err := general.Page(s, p, after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := list.Page(s, p, after)
		if err != nil || compareKeys(got.Keys, want.Keys) || got.More != want.More || got.Total != want.Total {
			t.Fatalf("statements %q after %v: got %v, more %v, of %d, %v; want %v, more %v, of %d", prefix, after, got.Keys, got.More, got.Total, err, want.Keys, want.More, want.Total)
		}
		n += len(got.Keys)
		if !got.More {
			break
		}
		after = &got.Keys[len(got.Keys)-1].IDQuad
	}
	return n
}

// compareKeys reports whether two lists of rows differ.
func compareKeys(a, b []kg.Row) bool {
	return !slices.EqualFunc(a, b, func(a, b kg.Row) bool { return a.IDQuad == b.IDQuad })
}

// What a caller gets, and how many statements are read for it, does not depend on terms in
// statements that it may not read, not even on so many that they are not looked up.
func TestPrefixesTellNothingHidden(t *testing.T) {
	slowtest.WithoutRace(t)
	type answer struct {
		prefix, name string
		total        uint64
		page         []string
		read, scans  int64
	}
	answersOf := func(store *kg.Store) (list []string) {
		for _, at := range []kg.Revision{0, 2} {
			s, err := store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://ann"}, At: at})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, prefix := range []string{"m", "many", "many more", "urn:s", "urn:s-", "urn:s-many1"} {
				for name, f := range prefixConditions(prefix) {
					m, err := prefixCompiler(t).Entities(f)
					if err != nil {
						t.Fatal(err)
					}
					read, scans := s.StatementsRead(), s.Scans()
					g, err := (&EntityList{Match: m, First: 20, Total: true}).Page(s, nil)
					if err != nil {
						t.Fatal(err)
					}
					a := answer{prefix: prefix, name: name, total: g.Total, read: s.StatementsRead() - read, scans: s.Scans() - scans}
					for _, id := range g.Keys {
						term, err := s.Term(id)
						if err != nil {
							t.Fatal(err)
						}
						a.page = append(a.page, term.String())
					}
					list = append(list, fmt.Sprintf("at %d: %+v", at, a))
				}
			}
		}
		slices.Sort(list)
		return list
	}
	want := answersOf(prefixStore(t, 0))
	for _, more := range []int{1, 100, kg.MaxPrefixed, kg.MaxPrefixedSubjects} {
		for i, got := range answersOf(prefixStore(t, more)) {
			if got != want[i] {
				t.Errorf("beside %d hidden terms:\n%s\nwithout:\n%s", more, got, want[i])
			}
		}
	}
}
