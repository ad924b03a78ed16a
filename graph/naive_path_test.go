package graph_test

import (
	"strings"

	"koine/kg"
)

// naivePath is a path in the naive evaluation: its ends, from anywhere, by reading all
// statements.
type naivePath interface {
	ends(from kg.Term, all things) map[kg.Term]bool
	String() string
}

type (
	step  struct{ predicate kg.Term }
	back  struct{ of naivePath } // of a step
	chain []naivePath
	fork  []naivePath
	star  struct{ of naivePath }
)

func (p step) String() string { return "<" + p.predicate.Value() + ">" }
func (p back) String() string { return "^" + p.of.String() }
func (p chain) String() string {
	return joined(p, "/")
}
func (p fork) String() string { return joined(p, "|") }
func (p star) String() string { return "(" + p.of.String() + ")*" }

func joined(list []naivePath, by string) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = "(" + p.String() + ")"
	}
	return strings.Join(parts, by)
}

func (p step) ends(from kg.Term, all things) map[kg.Term]bool {
	out := map[kg.Term]bool{}
	for _, st := range all[from] {
		if st.Predicate == p.predicate {
			out[st.Object] = true
		}
	}
	return out
}

func (p back) ends(from kg.Term, all things) map[kg.Term]bool {
	out := map[kg.Term]bool{}
	for name := range all {
		if p.of.ends(name, all)[from] {
			out[name] = true
		}
	}
	return out
}

func (p chain) ends(from kg.Term, all things) map[kg.Term]bool {
	at := map[kg.Term]bool{from: true}
	for _, next := range p {
		out := map[kg.Term]bool{}
		for t := range at {
			for end := range next.ends(t, all) {
				out[end] = true
			}
		}
		at = out
	}
	return at
}

func (p fork) ends(from kg.Term, all things) map[kg.Term]bool {
	out := map[kg.Term]bool{}
	for _, way := range p {
		for end := range way.ends(from, all) {
			out[end] = true
		}
	}
	return out
}

func (p star) ends(from kg.Term, all things) map[kg.Term]bool {
	out := map[kg.Term]bool{from: true}
	for todo := []kg.Term{from}; len(todo) > 0; todo = todo[1:] {
		for end := range p.of.ends(todo[0], all) {
			if !out[end] {
				out[end] = true
				todo = append(todo, end)
			}
		}
	}
	return out
}

// naivePathFilter counts the ends that fit.
func naivePathFilter(f map[string]any, name kg.Term, all things) bool {
	ends := f["path"].(naivePath).ends(name, all)
	n := 0
	for end := range ends {
		fits := true
		if where, ok := f["where"]; ok {
			fits = end.IsResource() && naiveEntity(where.(map[string]any), end, all)
		}
		if value, ok := f["value"]; ok {
			fits = fits && naiveValue(value.(map[string]any), end)
		}
		if fits {
			n++
		}
	}
	count, counted := f["count"]
	if counted && !naiveNumber(count.(map[string]any), float64(n)) {
		return false
	}
	switch q := f["quantifier"]; {
	case q == "EVERY":
		return n == len(ends)
	case q == "NONE":
		return n == 0
	case q == "SINGLE":
		return n == 1
	case q == "SOME" || !counted:
		return n > 0
	}
	return true
}

func (r *random) path(depth int) naivePath {
	one := step{r.predicate()}
	if depth == 0 {
		return one
	}
	switch r.IntN(6) {
	case 0:
		return back{one}
	case 1:
		return chain{r.path(depth - 1), r.path(depth - 1)}
	case 2:
		return fork{r.path(depth - 1), r.path(depth - 1)}
	case 3:
		return star{r.path(depth - 1)}
	}
	return one
}

func (r *random) pathFilter(depth int) map[string]any {
	f := map[string]any{"path": r.path(2)}
	if r.IntN(4) > 0 {
		f["quantifier"] = pick(r, "SOME", "SOME", "EVERY", "NONE", "SINGLE")
	}
	if r.IntN(2) == 0 {
		f["where"] = r.entityFilter(depth)
	}
	if r.IntN(3) == 0 {
		f["value"] = r.value()
	}
	if r.IntN(3) == 0 {
		n := func() any { return float64(r.IntN(4)) }
		f["count"] = pick(r, map[string]any{pick(r, "eq", "ne", "lt", "lte", "gt", "gte"): n()}, map[string]any{pick(r, "in", "nin"): r.list(n)})
	}
	return f
}

// The path is in the JSON of a filter as text.
func (p step) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
func (p back) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
func (p chain) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
func (p fork) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
func (p star) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
