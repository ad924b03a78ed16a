package celrules_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/celrules"
	"koine/internal/slowtest"
	"koine/kg"
)

// rule is a file of one rule on updates.
func rule(when, effect string) string {
	return fmt.Sprintf("rules:\n  - name: r\n    on: update\n    when: %q\n    effect: %s\n", when, effect)
}

// TestBrokenFiles proves that errors in a file are found when it is read, with their
// line.
func TestBrokenFiles(t *testing.T) {
	ok := "  - {name: ok, on: update, when: 'true', effect: reject}\n"
	for _, row := range []struct{ name, text, want string }{
		{"no YAML", "rules: [", "line 1"},
		{"another member of the file", "rule: []\n", "field rule not found"},
		{"no list", "rules: 3\n", "line 1"},
		{"no mapping", "rules:\n" + ok + "  - 3\n", "line 3: a rule must be a mapping"},
		{"another member", "rules:\n" + ok + "  - {name: a, on: update, when: 'true', efect: reject}\n", `line 3: unknown member "efect" of a rule`},
		{"no name", "rules:\n  - {on: update, when: 'true', effect: reject}\n", "line 2: a rule requires a name"},
		{"a name twice", "rules:\n" + ok + ok, "line 3: rule ok: line 2 has a rule of the same name"},
		{"on nothing", "rules:\n  - {name: a, when: 'true', effect: reject}\n", "on must be update, message, query, subscribe or read"},
		{"an effect elsewhere", "rules:\n  - {name: a, on: read, when: 'true', effect: reject}\n", "one of [hide]"},
		{"tags that are missing", "rules:\n  - {name: a, on: message, when: 'true', effect: tag}\n", "line 2: rule a: tags: effect tag requires at least one tag"},
		{"tags of another effect", "rules:\n  - {name: a, on: message, when: 'true', effect: reject, tags: [x]}\n", "line 2: rule a: tags: tags requires effect tag"},
		{"an empty tag", "rules:\n  - {name: a, on: message, when: 'true', effect: tag, tags: ['']}\n", "line 2: rule a: tags: tags: tag must be non-empty"},
		{"an effect of reads on messages", "rules:\n  - {name: a, on: message, when: 'true', effect: hide}\n", "one of [reject violation review tag]"},
		{"a misspelt field of messages", "rules:\n  - {name: a, on: message, when: 'message.chanel == \"\"', effect: reject}\n", "undefined field 'chanel'"},
		{"a patch of a message", "rules:\n  - {name: a, on: message, when: 'patch.subject == \"\"', effect: reject}\n", "undeclared reference to 'patch'"},
		{"a message of a query", "rules:\n  - {name: a, on: query, when: 'message.channel == \"\"', effect: refuse}\n", "undeclared reference to 'message'"},
		{"no effect", "rules:\n  - {name: a, on: query, when: 'true'}\n", "one of [refuse]"},
		{"no condition", "rules:\n  - {name: a, on: update, effect: reject}\n", "when is missing"},
		{"no CEL", rule("patch.", "reject"), "line 2: rule r: when: 1:7"},
		{"a misspelt field", rule("patch.subjct == ''", "reject"), "undefined field 'subjct'"},
		{"a misspelt variable", rule("ptch.subject == ''", "reject"), "undeclared reference to 'ptch'"},
		{"no condition at all", rule("patch.subject", "reject"), "must have type bool"},
		{"types that do not fit", rule("patch.certainty == 'high'", "reject"), "no matching overload"},
		{"a broken pattern", rule("patch.subject.matches('(')", "reject"), "invalid matches"},
		{"what only updates have", "rules:\n  - {name: a, on: read, when: 'patch.subject == \"\"', effect: hide}\n", "undeclared reference to 'patch'"},
		{"what hiding may not look at", "rules:\n  - {name: a, on: read, when: 'statement.subject == \"\"', effect: hide}\n", "undefined field 'subject'"},
		{"a request that hiding may not look at", "rules:\n  - {name: a, on: read, when: 'taskId == \"\"', effect: hide}\n", "undeclared reference to 'taskId'"},
		{"review without review", "rules:\n  - {name: a, on: update, when: 'true', effect: reject, review: {approvals: 1}}\n", "review requires effect review"},
		{"no approvals", "rules:\n  - {name: a, on: update, when: 'true', effect: review, review: {approvals: 0}}\n", "approvals must be between 1 and 16"},
		{"too many approvals", "rules:\n  - {name: a, on: update, when: 'true', effect: review, review: {approvals: 17}}\n", "approvals must be between 1 and 16"},
		{"no time", "rules:\n  - {name: a, on: update, when: 'true', effect: review, review: {expires: soon}}\n", "must be a duration"},
		{"too long a time", "rules:\n  - {name: a, on: update, when: 'true', effect: review, review: {expires: 9000h}}\n", "must be a duration"},
		{"two faults", "rules:\n  - {name: a, on: update, when: x, effect: reject}\n  - {name: b, on: update, when: y, effect: reject}\n", "line 3: rule b"},
	} {
		_, err := celrules.Parse([]byte(row.text), celrules.Options{})
		if kg.CodeOf(err) != kg.CodeInvalid || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q in it", row.name, err, row.want)
		}
	}
}

func TestBoundsOfFiles(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {name: r%d, on: read, when: 'false', effect: hide}\n", i)
		}
		return b.String()
	}
	named := func(n int) string {
		return "rules:\n  - {name: " + strings.Repeat("x", n) + ", on: update, when: 'true', effect: reject}\n"
	}
	message := func(n int) string {
		return "rules:\n  - {name: x, on: update, when: 'true', effect: reject, message: " + strings.Repeat("x", n) + "}\n"
	}
	long := func(n int) string { return rule("'"+strings.Repeat("x", n-8)+"' == ''", "reject") }
	padded := func(n int) string { return many(1) + "#" + strings.Repeat("x", n-len(many(1))-1) }
	for _, row := range []struct {
		name string
		of   func(int) string
		most int
	}{
		{"rules", many, celrules.MaxRules},
		{"bytes of a name", named, celrules.MaxNameBytes},
		{"bytes of a message", message, celrules.MaxMessageBytes},
		{"bytes of a condition", long, celrules.MaxExpressionBytes},
		{"bytes of the file", padded, celrules.MaxFileBytes},
	} {
		if _, err := celrules.Parse([]byte(row.of(row.most)), celrules.Options{}); err != nil {
			t.Errorf("%d %s: %v", row.most, row.name, err)
		}
		if _, err := celrules.Parse([]byte(row.of(row.most+1)), celrules.Options{}); err == nil {
			t.Errorf("%d %s are taken", row.most+1, row.name)
		}
	}
}

// TestWhatRulesSee proves the content of the variables.
func TestWhatRulesSee(t *testing.T) {
	slowtest.Long(t)
	meta := kg.Meta{
		Principal: kg.Principal{ID: "agent://ann", Roles: []string{"editor"}, ActFor: []kg.AgentID{"agent://team"}, Method: "jwt"}, Actor: "agent://team",
		Justification: "because", TaskID: "t", SessionID: "s", Method: "knowledge/update", Metadata: []byte(`{"a":{"b":[1,2]}}`),
	}
	before := []kg.Patch{
		patch(kg.Add, "urn:s", kg.RDFType, kg.IRI("urn:Person")), patch(kg.Add, "urn:s", "urn:age", kg.Integer(7)), patch(kg.Add, "urn:s", "urn:age", kg.Integer(8)),
	}
	add := sure(patch(kg.Add, "urn:s", "urn:height", kg.Double(1.5)), 0.25)
	add.Provenance = []byte(`{"page":4}`)
	inGraph := patch(kg.Add, "urn:s", "urn:p", kg.LangString("hallo", "de"))
	inGraph.Quad.Graph = kg.IRI("urn:g")
	for _, row := range []struct {
		when  string
		patch kg.Patch
	}{
		{`patch.op == "add" && patch.subject == "urn:s" && patch.predicate == "urn:height" && patch.object == 1.5 && patch.graph == ""`, add},
		{`patch.certainty == 0.25 && patch.hasCertainty && patch.source == "agent://team" && patch.provenance.page == 4`, add},
		{`patch.datatype == "http://www.w3.org/2001/XMLSchema#double" && patch.language == "" && patch.withdrawn == [] && !patch.replaced`, add},
		{`patch.graph == "urn:g" && patch.language == "de" && patch.object == "hallo" && patch.certainty == 1.0 && !patch.hasCertainty && patch.provenance == {}`, inGraph},
		{`patch.object == "urn:o" && patch.datatype == ""`, patch(kg.Add, "urn:s", "urn:p", kg.IRI("urn:o"))},
		{`patch.object == true`, patch(kg.Add, "urn:s", "urn:p", kg.Boolean(true))},
		{`patch.object == timestamp("2026-01-02T03:04:05Z")`, patch(kg.Add, "urn:s", "urn:p", kg.DateTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))},
		{`patch.object == timestamp("2026-01-02T00:00:00Z")`, patch(kg.Add, "urn:s", "urn:p", kg.Typed("2026-01-01T24:00:00Z", kg.XSDDateTime))},
		{`patch.object == 200`, patch(kg.Add, "urn:s", "urn:p", kg.Typed("200", kg.XSD+"unsignedByte"))},
		{`patch.object == "300"`, patch(kg.Add, "urn:s", "urn:p", kg.Typed("300", kg.XSD+"unsignedByte"))}, // none of its datatype
		{`patch.object == "TRUE"`, patch(kg.Add, "urn:s", "urn:p", kg.Typed("TRUE", kg.XSDBoolean))},
		{`patch.object == 7 && patch.object > 6.5`, patch(kg.Add, "urn:t", "urn:p", kg.Integer(7))},
		{`patch.op == "replace" && before.size() == 2 && before.all(s, s.sources == ["agent://old"])`, patch(kg.Replace, "urn:s", "urn:age", kg.Integer(9))},
		{`patch.op == "remove" && patch.replaced && patch.withdrawn == ["agent://old"]`, patch(kg.Replace, "urn:s", "urn:age", kg.Integer(9))},
		{`statement.sources == ["agent://old"] && statement.certainty == 1.0 && statement.object == 7 && statement.assertions[0].recordedAt > timestamp("2020-01-01T00:00:00Z")`, patch(kg.Remove, "urn:s", "urn:age", kg.Integer(7))},
		{`statement.sources == [] && statement.certainty == 0.0 && before == []`, add},
		{`entity.iri == "urn:s" && entity.types == ["urn:Person"] && entity.properties["urn:age"].size() == 2 && 1.5 in entity.properties["urn:height"]`, add},
		{`caller.id == "agent://ann" && caller.actor == "agent://team" && caller.roles == ["editor"] && caller.method == "jwt"`, add},
		{`justification == "because" && taskId == "t" && sessionId == "s" && method == "knowledge/update" && metadata.a.b[1] == 2`, add},
	} {
		s := store(t, parse(t, rule(row.when, "reject")))
		if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, before...); err != nil { // of this process: not judged
			t.Fatal(err)
		}
		if r, err := apply(s, meta, row.patch); outcome(r, err) != "rejected" || r.Verdict.Reason != "Rule r" || !strings.HasPrefix(r.Verdict.Details, "r: <") || strings.Contains(r.Verdict.Details, "evaluated") {
			t.Errorf("%s: got %+v, %v", row.when, r.Verdict, err)
		}
		s = store(t, parse(t, rule("!("+row.when+")", "reject")))
		if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, before...); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(row.when, "replace") {
			continue // several changes, of which one is meant
		}
		if r, err := apply(s, meta, row.patch); outcome(r, err) != "accepted" {
			t.Errorf("not %s: got %+v, %v", row.when, r.Verdict, err)
		}
	}
}

// TestTheHardestEffectCounts proves how rules that hold at once are summed up.
func TestTheHardestEffectCounts(t *testing.T) {
	file := "rules:\n"
	for _, effect := range []string{"reject", "review", "violation"} {
		file += fmt.Sprintf("  - {name: %s, on: update, when: 'patch.predicate.contains(%q)', effect: %s, message: No %s}\n", effect, effect, effect, effect)
	}
	file += "  - {name: more, on: update, when: 'patch.predicate.contains(\"review\")', effect: review, review: {approvals: 3, role: boss, expires: 1h}}\n"
	file += "  - {name: again, on: update, when: 'patch.predicate.contains(\"reject\")', effect: reject, message: No way}\n"
	s := store(t, parse(t, file))
	for _, row := range []struct{ predicates, want, details string }{
		{"urn:free", "accepted", ""},
		{"urn:reject", "rejected", "reject: <urn:s> <urn:reject>\nagain: <urn:s> <urn:reject>: No way"},
		{"urn:review", "held", "review: <urn:s> <urn:review>: No review\nmore: <urn:s> <urn:review>"},
		{"urn:violation", "violation", ""},
		{"urn:review urn:reject", "rejected", "reject: <urn:s> <urn:reject>\nagain: <urn:s> <urn:reject>: No way"},
		{"urn:reject urn:review urn:violation", "violation", ""},
	} {
		var patches []kg.Patch
		for p := range strings.FieldsSeq(row.predicates) {
			patches = append(patches, patch(kg.Add, "urn:s", p, kg.Integer(1)))
		}
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, patches...)
		if got := outcome(r, err); got != row.want {
			t.Errorf("%s: %s, want %s", row.predicates, got, row.want)
		}
		if r.Verdict.Details != row.details {
			t.Errorf("%s: the details are %q", row.predicates, r.Verdict.Details)
		}
		if h := r.Verdict.Hold; row.want == "held" && (h == nil || h.Approvals != 3 || h.Expires != time.Hour || len(h.Rules) != 2) {
			t.Errorf("it is held by %+v", h)
		}
	}
}

// TestRulesFailClosed proves that a rule that cannot be evaluated counts against the
// caller, with any effect.
func TestRulesFailClosed(t *testing.T) {
	for effect, want := range map[string]string{"reject": "rejected", "review": "rejected", "violation": "violation"} {
		s := store(t, parse(t, rule("metadata.x == 1", effect)))
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", kg.Integer(1)))
		if got := outcome(r, err); got != want {
			t.Errorf("%s: %s, want %s", effect, got, want)
		}
		if effect != "violation" && !strings.Contains(r.Verdict.Details, "no such key: x") {
			t.Errorf("%s: %+v", effect, r.Verdict)
		}
	}
	set := parse(t, "rules:\n  - {name: q, on: query, when: 'metadata.x == 1', effect: refuse}\n  - {name: h, on: read, when: '1 / 0 == 1', effect: hide}\n")
	if err := set.CheckQuery(t.Context(), celrules.Query{Principal: caller("ann")}); kg.CodeOf(err) != kg.CodeAlignmentViolation {
		t.Errorf("a query: %v", err)
	}
	if hides := set.Hides(caller("ann")); hides == nil || !hides(kg.IRI("urn:p"), kg.DefaultGraph) {
		t.Error("a statement is shown")
	}
}

// TestNothingHidesATypeFromARule proves that an agent cannot hide a type from a rule by
// adding many statements.
func TestNothingHidesATypeFromARule(t *testing.T) {
	s := store(t, parse(t, rule(`patch.predicate == "urn:price" && "urn:Product" in entity.types`, "reject")))
	// Ids are given in the order in which terms come: these come before the type.
	if _, err := apply(s, kg.Meta{Principal: caller("ann")}, crowd("", celrules.MaxEntityValues+1)...); err != nil {
		t.Fatal(err)
	}
	product, price := patch(kg.Add, "urn:s", kg.RDFType, kg.IRI("urn:Product")), patch(kg.Add, "urn:s", "urn:price", kg.Integer(1))
	if r, err := apply(s, kg.Meta{Principal: caller("ann")}, product, price); outcome(r, err) != "rejected" || r.Verdict.Reason != "Rule r" {
		t.Errorf("behind other statements: got %+v, %v", r.Verdict, err)
	}
	many := append(crowd(kg.RDFType, celrules.MaxEntityTypes), product, price)
	if r, err := apply(s, kg.Meta{Principal: caller("ann")}, many...); outcome(r, err) != "rejected" || !strings.Contains(r.Verdict.Details, "types") {
		t.Errorf("behind other types: got %+v, %v", r.Verdict, err)
	}
}

// crowd returns n statements of urn:s, of one property or of n.
func crowd(predicate string, n int) (list []kg.Patch) {
	for i := range n {
		p := patch(kg.Add, "urn:s", predicate, kg.IRI(fmt.Sprintf("urn:%d", i)))
		if predicate == "" {
			p.Quad.Predicate = p.Quad.Object
		}
		list = append(list, p)
	}
	return list
}

// TestNothingHidesAStatementFromARule proves that an agent cannot hide a statement from
// a rule by adding others: with too many statements the rule holds.
func TestNothingHidesAStatementFromARule(t *testing.T) {
	slowtest.Long(t)
	locked := patch(kg.Add, "urn:s", "urn:state", kg.String("locked"))
	state := patch(kg.Add, "urn:s", "urn:state", kg.String("open"))
	for _, row := range []struct {
		name, when string
		crowd      []kg.Patch
		stands     bool   // the statement that the rule is about
		want       string // of the details; "" for an update that goes through
	}{
		{"before, at the bound", `before.exists(b, b.object == "locked")`, crowd("urn:state", celrules.MaxBefore-1), true, "r: <urn:s> <urn:state>"},
		{"before, at the bound, absent", `before.exists(b, b.object == "locked")`, crowd("urn:state", celrules.MaxBefore), false, ""},
		{"before, past the bound", `before.exists(b, b.object == "locked")`, crowd("urn:state", celrules.MaxBefore), true, "more than 1000"},
		{"before, past the bound, absent", `before.exists(b, b.object == "locked")`, crowd("urn:state", celrules.MaxBefore+1), false, "more than 1000"},
		{"a property behind others", `"locked" in entity.properties["urn:state"]`, crowd("", celrules.MaxEntityValues+1), true, "r: <urn:s> <urn:state>"},
		{"a property behind others, asked by has", `has(entity.properties.x) || "urn:state" in entity.properties`, crowd("", celrules.MaxEntityValues+1), true, "r: <urn:s> <urn:state>"},
		{"a property that is not there", `"urn:other" in entity.properties && "locked" in entity.properties["urn:other"]`, crowd("", celrules.MaxEntityValues+1), true, ""},
		{"a property's values, past the bound", `"locked" in entity.properties["urn:state"]`, crowd("urn:state", celrules.MaxEntityValues+1), true, "more than 1000"},
		{"a property, past the bound", `!("urn:state" in entity.properties)`, crowd("urn:state", celrules.MaxEntityValues+1), true, "more than 1000"},
		{"all, at the bound", `entity.properties.exists(p, p == "urn:none")`, crowd("", celrules.MaxEntityValues-2), true, ""},
		{"all, past the bound", `entity.properties.exists(p, p == "urn:none")`, crowd("", celrules.MaxEntityValues), true, "more than 1000"},
		{"their number, past the bound", `entity.properties.size() == 0`, crowd("", celrules.MaxEntityValues), true, "more than 1000"},
		{"as a whole, past the bound", `entity.properties == {}`, crowd("", celrules.MaxEntityValues), true, "could not be evaluated"},
	} {
		s := store(t, parse(t, rule(row.when, "reject")))
		// The statement comes last: the index has it behind the others.
		if row.stands {
			row.crowd = append(row.crowd, locked)
		}
		if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, row.crowd...); err != nil { // of this process: not judged
			t.Fatal(err)
		}
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, state)
		want := "accepted"
		if row.want != "" {
			want = "rejected"
		}
		if outcome(r, err) != want || !strings.Contains(r.Verdict.Details, row.want) {
			t.Errorf("%s: got %+v, %v", row.name, r.Verdict, err)
		}
	}
}

// TestJudgingIsBounded proves that costly rules end with an error, by cost and by time,
// and that nothing is written.
func TestJudgingIsBounded(t *testing.T) {
	slowtest.Long(t)
	many := "[" + strings.Repeat("1,", 200) + "1]"
	costly := fmt.Sprintf("%s.all(a, %s.all(b, a == b))", many, many)
	for _, row := range []struct {
		name    string
		when    string
		options celrules.Options
		want    kg.Code
	}{
		{"enough", costly, celrules.Options{RuleCost: 1 << 30, JudgementCost: 1 << 40, JudgementTime: time.Minute}, ""},
		{"a rule's steps", costly, celrules.Options{RuleCost: 1000}, kg.CodeJudgeLimit},
		{"the judgement's steps", costly, celrules.Options{RuleCost: 1 << 30, JudgementCost: 1000}, kg.CodeJudgeLimit},
		{"the judgement's time", costly, celrules.Options{RuleCost: 1 << 30, JudgementCost: 1 << 40, JudgementTime: 1}, kg.CodeJudgeLimit},
	} {
		set, err := celrules.Parse([]byte(rule("!"+row.when+" && patch.subject == ''", "reject")), row.options)
		if err != nil {
			t.Fatal(err)
		}
		s := store(t, set)
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", kg.Integer(1)))
		if kg.CodeOf(err) != row.want || r.Committed != (row.want == "") {
			t.Errorf("%s: got %+v, %v, want %q", row.name, r, err, row.want)
		}
	}
}

// TestReload proves that a changed file comes into force, that an invalid one does not
// and is logged once, and that a corrected one does.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := rule("patch.predicate == 'urn:p'", "reject")
	write(first)
	var log bytes.Buffer
	f, err := celrules.Open(path, celrules.Options{}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	f.OnChange(func() { changes++ })
	when := func(what, want string, changed int, said int) {
		t.Helper()
		if got := f.Set().Rules()[0].When; got != want || changes != changed || strings.Count(log.String(), "level=ERROR") != said {
			t.Errorf("%s: %s is in force after %d changes, want %s after %d; the log is\n%s", what, got, changes, want, changed, &log)
		}
	}
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	when("nothing changed", "patch.predicate == 'urn:p'", 0, 0)
	write(rule("patch.subjct == ''", "reject"))
	if err := f.Reload(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken file: %v", err)
	}
	if err := f.Reload(); err != nil {
		t.Errorf("the same broken file: %v", err)
	}
	when("broken", "patch.predicate == 'urn:p'", 0, 1)
	if !strings.Contains(log.String(), "line 2") {
		t.Errorf("the log does not say where: %s", &log)
	}
	write(rule("true", "reject"))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	when("changed", "true", 1, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Reload(); err == nil {
			t.Error("a file that is gone is read")
		}
	}
	when("gone", "true", 1, 2)
	write(first)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	when("as at first", "patch.predicate == 'urn:p'", 2, 2)
	if _, err := celrules.Open(path+".none", celrules.Options{}, slog.Default()); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("no file: %v", err)
	}
}

// ruled is an access that hides the statements that the rules of a file hide.
type ruled struct {
	kg.AllowAll
	*celrules.File
}

// TestOpenWatchesSeeByTheNewRules proves that a change of the rules applies to open
// watchers, in both directions.
func TestOpenWatchesSeeByTheNewRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	hide := func(when string) {
		t.Helper()
		text := fmt.Sprintf("rules:\n  - {name: h, on: read, when: %q, effect: hide}\n", when)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hide("false")
	f, err := celrules.Open(path, celrules.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: ruled{File: f}}, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Watch(t.Context(), kg.Filter{View: kg.View{Principal: caller("ann")}}, s.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next, stop := iter.Pull2(w.Events())
	defer stop()
	say := func(predicate string, n int64) {
		t.Helper()
		if _, err := apply(s, kg.Meta{Principal: caller("bob")}, patch(kg.Add, "urn:s", predicate, kg.Integer(n))); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"urn:secret", "urn:open", "urn:secret"} {
		hide([]string{"false", "statement.predicate == 'urn:secret'", "1 == 2"}[i])
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		say("urn:secret", int64(i))
		if want == "urn:open" {
			say("urn:open", int64(i))
		}
		if e, err, ok := next(); !ok || err != nil || e.Statement.Predicate.Value() != want {
			t.Errorf("event %d is %v, %v; want %s", i, e.Statement, err, want)
		}
	}
}

// TestFollow proves that the file is checked at its interval, and at once on a signal.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(when string) {
		if err := os.WriteFile(path, []byte(rule(when, "reject")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1 == 1")
	f, err := celrules.Open(path, celrules.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		now := make(chan os.Signal)
		ended := make(chan struct{})
		go func() { f.Follow(ctx, time.Minute, now); close(ended) }()
		write("2 == 2")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if got := f.Set().Rules()[0].When; got != "1 == 1" {
			t.Errorf("before its time: %s", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := f.Set().Rules()[0].When; got != "2 == 2" {
			t.Errorf("in time: %s", got)
		}
		write("3 == 3")
		now <- os.Interrupt
		synctest.Wait()
		if got := f.Set().Rules()[0].When; got != "3 == 3" {
			t.Errorf("when told: %s", got)
		}
		cancel()
		<-ended
	})
}
