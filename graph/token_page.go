package graph

import (
	"strconv"

	"koine/graph/limit"
	"koine/kg"
)

// domainPage returns the page size of a list that a domain bounds by most.
func (r *run) domainPage(first *int, most int) (int, error) {
	if first != nil && *first < 1 {
		return 0, kg.Errorf(kg.CodeInvalid, "first is at least 1").At("first")
	}
	limits := r.engine.limits
	limits.PageSize = min(limits.PageSize, most)
	return limits.CheckFirst(first, limit.DefaultPageSize)
}

// parseNumberCursor parses the cursor of a list whose cursors are numbers from 1
// on; 0 for none.
func parseNumberCursor(after *Cursor) (int64, error) {
	if after == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(*after), 10, 64)
	if err != nil || n < 1 {
		return 0, kg.Errorf(kg.CodeCursorForeign, "the cursor belongs to another list").At("after")
	}
	return n, nil
}

// tokenPage makes the PageInfo of a list that has only end cursors.
func tokenPage(after *Cursor, next string) *PageInfo {
	p := &PageInfo{HasNextPage: next != "", HasPreviousPage: after != nil}
	if next != "" {
		end := Cursor(next)
		p.EndCursor = &end
	}
	return p
}

// nodesOf converts the elements of a page and charges each with its size.
func nodesOf[D, N any](r *run, page []D, node func(D) N, size func(D) int) ([]N, error) {
	out := make([]N, len(page))
	for i, d := range page {
		out[i] = node(d)
		if err := r.chargeBytes(size(d)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
