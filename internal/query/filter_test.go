package query

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"koine/internal/query/valuespace"
	"koine/internal/slowtest"
	"koine/kg"
)

// A list contains the values equal to one of its own, in all kinds of values, in agreement
// with a comparison with each of them.
func TestOperandSet(t *testing.T) {
	raws := []string{`"a"`, `""`, `"2020-01-01"`, `"2020-01-01T00:00:00Z"`, `"1"`, `"true"`, `true`, `false`, `0`, `-0`, `1`, `1.0`, `1e0`, `0.1`, `1e23`, `1e300`,
		`100000000000000000000000`, `99999999999999991611392`, `9007199254740993`, `9007199254740992`, `9007199254740992.0000`, `0.1000000000000000055511151231257827`, `0.10000000000000000`}
	var operands []operand
	for _, raw := range raws {
		o, err := parseOperand(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		operands = append(operands, o)
	}
	terms := []kg.Term{kg.String("a"), kg.String(""), kg.IRI("a"), kg.Boolean(true), kg.Boolean(false), kg.Integer(0), kg.Integer(1), kg.String("true"),
		kg.Typed("0.1", kg.XSDDecimal), kg.Typed("1", "urn:unknown"), kg.Typed("a", "urn:unknown"), kg.Typed("nonsense", kg.XSDBoolean)}
	for _, raw := range []string{"1.0", "-0", "INF", "NaN", "1e23", "1e300", "0.1", "9007199254740993", "9007199254740992", "100000000000000000000000", "99999999999999991611392", "0.1000000000000000055511151231257827"} {
		terms = append(terms, kg.Typed(raw, kg.XSDDouble), kg.Typed(raw, kg.XSDDecimal))
	}
	for _, raw := range []string{"2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-01-02"} {
		terms = append(terms, kg.Typed(raw, kg.XSDDate), kg.Typed(raw, kg.XSDDateTime))
	}
	held := 0
	for i := range operands {
		set := newOperandSet(operands[i : i+1])
		for _, term := range terms {
			v := valuespace.Of(term)
			n, ok, _ := operands[i].compare(v)
			if got, want := set.contains(v), ok && n == 0; got != want {
				t.Errorf("%s in [%s]: got %t, want %t", term, raws[i], got, want)
			} else if want {
				held++
			}
		}
	}
	if held < 20 {
		t.Errorf("only %d comparisons held", held)
	}
}

// The cost of a comparison with a list does not grow with the list.
func TestLongListsOfValues(t *testing.T) {
	slowtest.Long(t)
	const size = 300_000
	f := &ValueFilter{Comparisons: Comparisons{In: make([]json.RawMessage, size), Nin: make([]json.RawMessage, size)}}
	texts := &StringFilter{Ordered: Ordered[string]{In: make([]string, size)}}
	for i := range size {
		f.In[i] = json.RawMessage(fmt.Sprintf(`"v%d"`, i))
		f.Nin[i] = json.RawMessage(fmt.Sprint(i))
		texts.In[i] = fmt.Sprintf("v%d", i)
	}
	test, err := matchValue(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := matchText(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	floats, longs, revisions, times := &FloatFilter{In: make([]float64, size)}, &LongFilter{In: make([]int64, size)}, &RevisionFilter{In: make([]kg.Revision, size)}, &DateTimeFilter{In: make([]time.Time, size)}
	moment := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, n, time.UTC) }
	for i := range size {
		floats.In[i], longs.In[i], revisions.In[i], times.In[i] = float64(i), int64(i), kg.Revision(i), moment(i)
	}
	except := AssertionFilter{Certainty: &FloatFilter{Nin: floats.In[2:]}, Revision: &RevisionFilter{Nin: revisions.In[1:]}, RecordedAt: &DateTimeFilter{Nin: times.In}}
	assertions, err := except.compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	statement := newTestedStatement(kg.Statement{Assertions: []kg.Assertion{{Time: moment(size)}}})
	count := newQuantification(&PathFilter{Count: longs})
	float, long, revision, at := testFloat(floats), testLong(longs), testRevision(revisions), testTime(times)
	elsewhere := time.FixedZone("", 3600)
	began := time.Now()
	for i := range 20_000 {
		name := fmt.Sprintf("v%d", size-20_000+i)
		if !test(kg.String(name)) || test(kg.String(name+"x")) || !text(name, true) || text(name+"x", true) {
			t.Fatalf("%s", name)
		}
		n := size - 20_000 + i
		if !float(float64(n)) || float(float64(n)+0.5) || !long(int64(n)) || long(-1) || !revision(kg.Revision(n)) || revision(size) ||
			!at(moment(n).In(elsewhere)) || at(moment(size)) || !count.allowsCount(int64(n)) || count.allowsCount(size) {
			t.Fatalf("%d", n)
		}
		if ok, err := assertions(statement); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	// One by one these are 10^10 comparisons, more than a minute of a core.
	if took := time.Since(began); took > slowtest.Slack(10*time.Second) {
		t.Errorf("80,000 comparisons took %s", took)
	}
}
