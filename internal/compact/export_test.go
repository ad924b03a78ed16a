package compact

// InOrder returns facts in the order in which Write writes them.
func InOrder(facts []Fact) (out []Fact) {
	for _, u := range unitsOf(facts) {
		out = append(out, *u.fact)
		for _, in := range u.inner {
			out = append(out, *in)
		}
	}
	return out
}
