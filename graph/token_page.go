package graph

import (
	"strconv"

	"koine/kg"
)

// domainPage is the size of a page of what a domain gives at most so many of.
func (r *run) domainPage(first *int, most int) (int, error) {
	if first != nil && *first < 1 {
		return 0, kg.Errorf(kg.CodeInvalid, "first is at least 1").At("first")
	}
	limits := r.engine.limits
	limits.PageSize = min(limits.PageSize, most)
	return limits.pageSize(first, DefaultPageSize)
}

// behindNumber is the number, from 1 on, that is the cursor of some lists; 0 for none.
func behindNumber(after *Cursor) (int64, error) {
	if after == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(*after), 10, 64)
	if err != nil || n < 1 {
		return 0, kg.Errorf(kg.CodeCursorForeign, "the cursor is not of this list").At("after")
	}
	return n, nil
}

// tokenPage is what is known of a page that only its end is marked of.
func tokenPage(after *Cursor, next string) *PageInfo {
	p := &PageInfo{HasNextPage: next != "", HasPreviousPage: after != nil}
	if next != "" {
		end := Cursor(next)
		p.EndCursor = &end
	}
	return p
}

// nodesOf are the nodes of a page, each charged with the bytes that it holds.
func nodesOf[D, N any](r *run, page []D, node func(D) N, size func(D) int) ([]N, error) {
	out := make([]N, len(page))
	for i, d := range page {
		out[i] = node(d)
		if err := r.charge(size(d)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
