package graph_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"koine/kg"
)

// The naive evaluation of filters: it reads the JSON of a filter each time and
// knows nothing of patterns, plans and indexes.

func naiveStatement(f map[string]any, st plain) bool {
	for key, v := range f {
		ok := true
		switch key {
		case "subject":
			ok = naiveIRI(v.(map[string]any), st.Subject)
		case "predicate":
			ok = naiveIRI(v.(map[string]any), st.Predicate)
		case "object":
			ok = naiveValue(v.(map[string]any), st.Object)
		case "graph":
			ok = naiveGraph(v.(map[string]any), st.graph())
		case "certainty", "assertedBy", "recordedAt", "ageSeconds", "revision":
			ok = naiveAssertions(key, v.(map[string]any), st)
		case "and":
			for _, g := range v.([]any) {
				ok = ok && naiveStatement(g.(map[string]any), st)
			}
		case "or":
			ok = slices.ContainsFunc(v.([]any), func(g any) bool { return naiveStatement(g.(map[string]any), st) })
		case "not":
			ok = !naiveStatement(v.(map[string]any), st)
		}
		if !ok {
			return false
		}
	}
	return true
}

func naiveAssertions(key string, f map[string]any, st plain) bool {
	switch key {
	case "certainty":
		return naiveCertainty(f, st)
	case "assertedBy":
		return slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return naiveText(f, string(a.Source)) })
	case "ageSeconds":
		return naiveNumber(f, math.Ceil(st.now.Sub(st.RecordedAt()).Seconds()))
	case "recordedAt":
		seconds := func(v any) any { return float64(must(time.Parse(time.RFC3339, v.(string))).Unix()) }
		return naiveNumber(mapped(f, seconds), float64(st.RecordedAt().Unix()))
	}
	return naiveNumber(f, float64(st.Revision()))
}

// mapped is the condition with another operand for each that is not a boolean.
func mapped(f map[string]any, to func(any) any) map[string]any {
	out := map[string]any{}
	for op, v := range f {
		switch v := v.(type) {
		case bool:
			out[op] = v
		case []any:
			list := []any{}
			for _, e := range v {
				list = append(list, to(e))
			}
			out[op] = list
		default:
			out[op] = to(v)
		}
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func naiveEntity(f map[string]any, name kg.Term, all things) bool {
	about := all[name]
	inner := func(g any) bool { return naiveEntity(g.(map[string]any), name, all) }
	for key, v := range f {
		ok := true
		switch key {
		case "iri":
			ok = naiveThere(v.(map[string]any), name.Name(), true)
		case "type":
			f := v.(map[string]any)
			ok = someObject(about, kg.RDFType, func(t kg.Term) bool { return t.IsResource() && naiveIRI(f, t) })
			if f["exists"] == false {
				ok = len(f) == 1 && !someObject(about, kg.RDFType, kg.Term.IsResource)
			}
		case "label":
			ok = naiveLabel(v.(map[string]any), about)
		case "property":
			for _, p := range v.([]any) {
				ok = ok && naiveProperty(p.(map[string]any), about)
			}
		case "path":
			for _, p := range v.([]any) {
				ok = ok && naivePathFilter(p.(map[string]any), name, all)
			}
		case "and":
			for _, g := range v.([]any) {
				ok = ok && inner(g)
			}
		case "or":
			ok = slices.ContainsFunc(v.([]any), inner)
		case "not":
			ok = !inner(v)
		}
		if !ok {
			return false
		}
	}
	return true
}

func someObject(about []plain, predicate string, fits func(kg.Term) bool) bool {
	return slices.ContainsFunc(about, func(st plain) bool { return st.Predicate.Value() == predicate && fits(st.Object) })
}

func naiveLabel(f map[string]any, about []plain) bool {
	fits := func(t kg.Term) bool { return t.IsLiteral() && naiveText(f, t.Value()) }
	if f["exists"] == false {
		return len(f) == 1 && !someObject(about, kg.RDFSLabel, kg.Term.IsLiteral)
	}
	return someObject(about, kg.RDFSLabel, fits)
}

func naiveProperty(f map[string]any, about []plain) bool {
	value, statement := map[string]any{}, map[string]any{}
	for k, v := range f {
		switch k {
		case "predicate", "exists":
		case "certainty", "assertedBy", "recordedAt", "ageSeconds", "revision", "graph":
			statement[k] = v
		default:
			value[k] = v
		}
	}
	some := slices.ContainsFunc(about, func(st plain) bool {
		return st.Predicate.Value() == f["predicate"] && naiveValue(value, st.Object) && naiveStatement(statement, st)
	})
	if f["exists"] == false {
		return len(value)+len(statement) == 0 && !some
	}
	return some
}

func naiveIRI(f map[string]any, t kg.Term) bool {
	m := map[string]any{}
	for k, v := range f {
		m[k] = v
	}
	if !t.IsResource() { // no IRI equals a literal
		for _, k := range []string{"eq", "in"} {
			if _, ok := f[k]; ok {
				return false
			}
		}
		delete(m, "ne")
		delete(m, "nin")
	}
	return naiveText(m, t.Name())
}

func naiveGraph(f map[string]any, name any) bool {
	for op, v := range f {
		ok := true
		switch op {
		case "eq":
			ok = v == name
		case "ne":
			ok = v != name
		case "in":
			ok = slices.Contains(v.([]any), name)
		case "nin":
			ok = !slices.Contains(v.([]any), name)
		case "default":
			ok = (name == nil) == v.(bool)
		default:
			ok = name != nil && naiveText(map[string]any{op: v}, name.(string))
		}
		if !ok {
			return false
		}
	}
	return true
}

func naiveText(f map[string]any, s string) bool {
	for op, v := range f {
		text, _ := v.(string)
		list, _ := v.([]any)
		ok := map[string]bool{
			"eq": s == text, "ne": s != text, "lt": s < text, "lte": s <= text, "gt": s > text, "gte": s >= text,
			"contains": strings.Contains(s, text), "startsWith": strings.HasPrefix(s, text), "endsWith": strings.HasSuffix(s, text),
			"in": slices.Contains(list, any(s)), "nin": !slices.Contains(list, any(s)), "exists": v == true,
			"regex": op == "regex" && naiveRegex(text, s),
		}[op]
		if !ok {
			return false
		}
	}
	return true
}

// naiveRegex knows the expressions that the random filters have.
func naiveRegex(expression, s string) bool {
	switch expression {
	case "^a":
		return strings.HasPrefix(s, "a")
	case "b$":
		return strings.HasSuffix(s, "b")
	case "(?i)^A.?$":
		return len(s) <= 2 && strings.HasPrefix(s, "a")
	case "org/[bc]$":
		return strings.HasSuffix(s, "org/b") || strings.HasSuffix(s, "org/c")
	}
	panic("an expression that the naive evaluation does not know: " + expression)
}

func naiveNumber(f map[string]any, n float64) bool {
	for op, v := range f {
		w, _ := v.(float64)
		list, _ := v.([]any)
		ok := map[string]bool{
			"eq": n == w, "ne": n != w, "lt": n < w, "lte": n <= w, "gt": n > w, "gte": n >= w,
			"in": slices.Contains(list, any(n)), "nin": !slices.Contains(list, any(n)), "exists": v == true,
		}[op]
		if !ok {
			return false
		}
	}
	return true
}

func naiveCertainty(f map[string]any, st plain) bool {
	greatest, stated := 0.0, false
	for _, a := range st.Assertions {
		c := 1.0
		if a.HasCertainty {
			c, stated = a.Certainty, true
		}
		greatest = max(greatest, c)
	}
	rest := map[string]any{}
	for k, v := range f {
		if k == "exists" {
			if v != stated {
				return false
			}
			continue
		}
		rest[k] = v
	}
	return naiveNumber(rest, greatest)
}

func naiveValue(f map[string]any, t kg.Term) bool {
	text := t.IsLiteral() && (t.Lang() != "" || t.Datatype() == kg.XSDString)
	for op, v := range f {
		ok := true
		switch op {
		case "in":
			ok = slices.ContainsFunc(v.([]any), func(w any) bool { c, is := naiveCompare(t, w); return is && c == 0 })
		case "nin":
			ok = !slices.ContainsFunc(v.([]any), func(w any) bool { c, is := naiveCompare(t, w); return is && c == 0 })
		case "contains", "startsWith", "endsWith", "regex":
			ok = text && naiveText(map[string]any{op: v}, t.Value())
		case "iri":
			ok = naiveThere(v.(map[string]any), t.Name(), t.IsResource())
		case "language":
			ok = text && naiveThere(v.(map[string]any), strings.ToLower(t.Lang()), t.Lang() != "")
		case "datatype":
			ok = naiveThere(v.(map[string]any), t.Datatype(), t.IsLiteral())
		default:
			c, is := naiveCompare(t, v)
			ok = map[string]bool{"eq": is && c == 0, "ne": !is || c != 0, "lt": is && c < 0, "lte": is && c <= 0, "gt": is && c > 0, "gte": is && c >= 0}[op]
		}
		if !ok {
			return false
		}
	}
	return true
}

// naiveThere is about a text that may not be there.
func naiveThere(f map[string]any, text string, there bool) bool {
	if f["exists"] == false {
		return len(f) == 1 && !there
	}
	return there && naiveText(f, text)
}

// naiveCompare compares a term with a JSON value, if they compare. The random
// graph has no datatypes but these.
func naiveCompare(t kg.Term, v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		r, ok := new(big.Rat).SetString(t.Value())
		if !ok || !strings.Contains("integer decimal double", strings.TrimPrefix(t.Datatype(), kg.XSD)) || !t.IsLiteral() {
			return 0, false
		}
		return r.Cmp(new(big.Rat).SetFloat64(v)), true
	case bool:
		if t.Datatype() != kg.XSDBoolean {
			return 0, false
		}
		return strings.Compare(t.Value(), map[bool]string{true: "true", false: "false"}[v]), true
	case string:
		if t.Datatype() == kg.XSDDate {
			m, err := time.Parse(time.DateOnly, v)
			d, _ := t.DateTimeValue()
			return d.Compare(m), err == nil
		}
		return strings.Compare(t.Value(), v), t.IsLiteral() && (t.Lang() != "" || t.Datatype() == kg.XSDString)
	}
	return 0, false
}

// random makes graphs and filters out of few words, so that they match.
type random struct {
	*rand.Rand
	moment time.Time // at or before the first commit
}

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

func (r *random) resource() kg.Term {
	return pick(r, iri("a"), iri("b"), iri("c"), iri("ab"), kg.Blank("x"))
}

func (r *random) predicate() kg.Term {
	return pick(r, iri("p"), iri("q"), iri("r"), kg.IRI(kg.RDFType), kg.IRI(kg.RDFSLabel))
}

func (r *random) literal() kg.Term {
	return pick(r,
		kg.Integer(1), kg.Integer(2), kg.Integer(-3), kg.Typed("1.0", kg.XSDDecimal), kg.Double(1.5), kg.Double(2),
		kg.String("a"), kg.String("ab"), kg.String("1"), kg.LangString("a", "en"), kg.LangString("b", "en-gb"),
		kg.Boolean(true), kg.Boolean(false), kg.Typed("2020-01-01", kg.XSDDate), kg.Typed("2021-05-05", kg.XSDDate),
	)
}

func (r *random) patch() kg.Patch {
	object := r.literal()
	p := r.predicate()
	if r.IntN(3) == 0 || p == kg.IRI(kg.RDFType) {
		object = pick(r, r.resource(), r.resource(), iri("leaf"), iri("bud"))
	}
	out := in(pick(r, kg.DefaultGraph, kg.DefaultGraph, iri("g1"), iri("g2"), kg.IRI(kg.OwnGraphPrefix+"x")), add(r.resource(), p, object))
	out = by(pick(r, kg.AgentID("agent://a1"), "agent://a2", "agent://a3"), pick(r, -1, 0.2, 0.5, 0.9), out)
	out.Validity = pick(r, kg.TimeSpan{}, kg.TimeSpan{From: year(1990)}, kg.TimeSpan{Until: year(1990)}, kg.TimeSpan{From: year(1980), Until: year(2000)})
	return out
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

func (r *random) operand() any {
	return pick[any](r, 1.0, 2.0, 1.5, -3.0, "a", "ab", "1", "2020-01-01", "zzz", true, false)
}

func (r *random) list(of func() any) []any {
	out := []any{}
	for range r.IntN(3) {
		out = append(out, of())
	}
	return out
}

func (r *random) iri() map[string]any {
	name := func() any { return pick(r, r.resource(), r.resource(), iri("leaf")).Name() }
	return pick(r,
		map[string]any{"eq": name()}, map[string]any{"ne": name()}, map[string]any{"in": r.list(name)}, map[string]any{"nin": r.list(name)},
		map[string]any{"contains": pick(r, "b", "example", "_:")}, map[string]any{"startsWith": ex + "a"}, map[string]any{"endsWith": "b"},
		map[string]any{"regex": pick(r, "org/[bc]$", "b$")}, map[string]any{"exists": true}, map[string]any{"exists": false},
		map[string]any{"exists": r.IntN(2) == 0, "endsWith": "b"},
	)
}

func (r *random) value() map[string]any {
	f := map[string]any{}
	for range 1 + r.IntN(2) {
		switch op := pick(r, "eq", "ne", "lt", "lte", "gt", "gte", "in", "nin", "contains", "startsWith", "endsWith", "regex", "iri", "language", "datatype"); op {
		case "in", "nin":
			f[op] = r.list(r.operand)
		case "contains", "startsWith", "endsWith":
			f[op] = pick(r, "a", "b", "")
		case "regex":
			f[op] = pick(r, "^a", "b$", "(?i)^A.?$")
		case "iri":
			f[op] = r.iri()
		case "language":
			f[op] = pick(r, map[string]any{"startsWith": "en"}, map[string]any{"eq": "en-gb"}, map[string]any{"ne": "en"}, map[string]any{"exists": r.IntN(2) == 0}, map[string]any{"regex": "b$"})
		case "datatype":
			f[op] = pick(r, map[string]any{"exists": r.IntN(2) == 0}, map[string]any{"eq": kg.XSDInteger}, map[string]any{"endsWith": "string"}, map[string]any{"ne": kg.XSDString})
		default:
			f[op] = r.operand()
		}
	}
	return f
}

// aboutStatement adds a condition on the statement with a value, not on the value.
func (r *random) aboutStatement(f map[string]any) {
	moment := func() any { return r.moment.Add(time.Duration(r.IntN(12)) * time.Second).Format(time.RFC3339) }
	key := pick(r, "graph", "certainty", "assertedBy", "recordedAt", "ageSeconds", "revision")
	switch key {
	case "graph":
		f[key] = pick(r, map[string]any{"eq": ex + "g1"}, map[string]any{"ne": ex + "g1"}, map[string]any{"in": []any{nil, ex + "g2"}}, map[string]any{"nin": []any{nil}},
			map[string]any{"default": r.IntN(2) == 0}, map[string]any{"startsWith": ""}, map[string]any{"contains": "g", "endsWith": "2"}, map[string]any{"regex": "b$"})
	case "certainty":
		f[key] = pick(r, map[string]any{"gte": 0.5}, map[string]any{"lt": 0.9}, map[string]any{"exists": true}, map[string]any{"exists": false, "eq": 1.0}, map[string]any{"ne": 0.2},
			map[string]any{"in": []any{0.2, 0.9}}, map[string]any{"nin": []any{1.0}})
	case "assertedBy":
		f[key] = pick(r, map[string]any{"eq": "agent://a1"}, map[string]any{"ne": "agent://a1"}, map[string]any{"in": []any{"agent://a2", "agent://a3"}}, map[string]any{"endsWith": "3"})
	case "recordedAt":
		f[key] = pick(r, map[string]any{pick(r, "eq", "ne", "lt", "lte", "gt", "gte"): moment()}, map[string]any{pick(r, "in", "nin"): r.list(moment)}, map[string]any{"exists": r.IntN(2) == 0})
	case "ageSeconds":
		seconds := func() any { return float64(r.IntN(12)) }
		f[key] = pick(r, map[string]any{pick(r, "eq", "ne", "lt", "lte", "gt", "gte"): seconds()}, map[string]any{pick(r, "in", "nin"): r.list(seconds)})
	case "revision":
		f[key] = pick(r, map[string]any{"gt": 2.0}, map[string]any{"lte": 3.0, "ne": 1.0}, map[string]any{pick(r, "in", "nin"): []any{2.0, 4.0}}, map[string]any{"exists": r.IntN(2) == 0})
	}
}

func (r *random) statementFilter(depth int) map[string]any {
	f := map[string]any{}
	for range r.IntN(3) {
		switch key := pick(r, "subject", "predicate", "object", "object", "statement", "statement"); key {
		case "subject":
			f[key] = r.iri()
		case "predicate":
			f[key] = pick(r, map[string]any{"eq": r.predicate().Name()}, map[string]any{"in": []any{r.predicate().Name(), r.predicate().Name()}}, map[string]any{"endsWith": "p"})
		case "object":
			f[key] = r.value()
		case "statement":
			r.aboutStatement(f)
		}
	}
	if depth > 0 {
		r.combine(f, func() any { return r.statementFilter(depth - 1) })
	}
	return f
}

func (r *random) combine(f map[string]any, inner func() any) {
	switch r.IntN(6) {
	case 0:
		f["and"] = r.list(inner)
	case 1:
		f["or"] = r.list(inner)
	case 2:
		f["not"] = inner()
	}
}

func (r *random) entityFilter(depth int) map[string]any {
	f := map[string]any{}
	for range r.IntN(3) {
		switch key := pick(r, "iri", "type", "label", "property", "property"); key {
		case "label":
			f[key] = pick(r, map[string]any{"eq": "a"}, map[string]any{"exists": true, "ne": "a"}, map[string]any{"exists": false}, map[string]any{"exists": true}, map[string]any{"in": []any{"ab", "1"}}, map[string]any{"regex": "^a"}, map[string]any{"exists": false, "regex": "^a"})
		case "iri", "type":
			f[key] = r.iri()
		case "property":
			p := r.value()
			if r.IntN(3) == 0 {
				p = map[string]any{"exists": r.IntN(2) == 0}
			}
			for range r.IntN(3) {
				r.aboutStatement(p)
			}
			p["predicate"] = r.predicate().Name()
			list, _ := f["property"].([]any)
			f[key] = append(list, p)
		}
	}
	if depth > 0 && r.IntN(2) == 0 {
		f["path"] = []any{r.pathFilter(depth - 1)}
	}
	if depth > 0 {
		r.combine(f, func() any { return r.entityFilter(depth - 1) })
	}
	return f
}
