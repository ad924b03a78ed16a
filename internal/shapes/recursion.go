package shapes

// markRecursive marks the shapes that contain themselves. It returns all shapes reachable
// from the roots, in order.
func markRecursive(roots []*shape) []*shape {
	r := &recursion{number: map[*shape]int{}, low: map[*shape]int{}, on: map[*shape]bool{}}
	for _, s := range roots {
		if r.number[s] == 0 {
			r.visitShape(s)
		}
	}
	return r.order
}

// recursion is Tarjan's algorithm over shapes.
type recursion struct {
	number, low map[*shape]int // from 1
	on          map[*shape]bool
	stack       []*shape
	order       []*shape
}

func (r *recursion) visitShape(s *shape) {
	r.order = append(r.order, s)
	r.number[s] = len(r.order)
	r.low[s] = len(r.order)
	r.stack = append(r.stack, s)
	r.on[s] = true
	for _, x := range s.constraints {
		for _, inside := range insideOf(x) {
			if r.number[inside] == 0 {
				r.visitShape(inside)
				r.low[s] = min(r.low[s], r.low[inside])
			} else if r.on[inside] {
				r.low[s] = min(r.low[s], r.number[inside])
			}
		}
	}
	if r.low[s] < r.number[s] {
		return
	}
	at := len(r.stack) - 1
	for r.stack[at] != s {
		at--
	}
	markTogether(r.stack[at:])
	for _, done := range r.stack[at:] {
		r.on[done] = false
	}
	r.stack = r.stack[:at]
}

// markTogether marks the shapes of one component.
func markTogether(list []*shape) {
	together := make(map[*shape]bool, len(list))
	for _, s := range list {
		together[s] = true
	}
	recursive, settles := false, true
	for _, s := range list {
		for _, x := range s.constraints {
			for _, inside := range insideOf(x) {
				if together[inside] {
					recursive = true
					settles = settles && isMonotone(x)
				}
			}
		}
	}
	for _, s := range list {
		s.recursive, s.monotone = recursive, recursive && settles
	}
}
