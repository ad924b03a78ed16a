package graph

import (
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

// openDomainRange is openRange for a list that a domain reads a page at a time: a
// page has at least one element and at most most.
func (r *run) openDomainRange(list string, a knowledge.PageArgs, most int, bound ...any) (p listRange, err error) {
	if p, err = r.openRange(list, a, limit.DefaultPageSize, most, bound...); err == nil && p.size < 1 {
		err = knowledge.InDirection(kg.Errorf(kg.CodeInvalid, "first is at least 1").At("first"), p.backward)
	}
	return p, err
}

// chargeAll charges the elements of a page with their sizes.
func chargeAll[D any](r *run, page []D, size func(*D) int) error {
	for i := range page {
		if err := r.chargeBytes(size(&page[i])); err != nil {
			return err
		}
	}
	return nil
}
