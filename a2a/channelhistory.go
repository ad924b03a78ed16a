package a2a

import (
	"context"

	"koine/channels"
	"koine/kg"
)

// listHistory handles channels/history (channels extension, section 7.2).
func (h *Handler) listHistory(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	q := readHistory(&params)
	if err := params.readRest(); err != nil {
		return nil, err
	}
	if err := h.options.AdmitHistory(ctx); err != nil {
		return nil, err
	}
	page, next, err := h.channels.History(ctx, c.byCaller(), id, q)
	if err != nil {
		return nil, err
	}
	out := struct {
		Events        []*wireMessage `json:"events"`
		NextPageToken string         `json:"nextPageToken,omitempty"`
	}{make([]*wireMessage, 0, len(page)), next}
	for _, m := range page {
		out.Events = append(out.Events, encodeMessage(m))
	}
	return out, nil
}

func readHistory(params *object) (q channels.HistoryQuery) {
	q.PageSize = params.readPageSize()
	q.PageToken, _ = params.readText("pageToken")
	if params.hasMember("sinceSequence") && params.hasMember("sinceTimestamp") {
		params.failAt("sinceTimestamp", "sinceTimestamp and sinceSequence are mutually exclusive")
	}
	if since, present := params.readNatural("sinceSequence"); present {
		n := clampSequence(since)
		q.SinceSequence = &n
	}
	before, bounds := params.readNatural("beforeSequence")
	q.BeforeSequence = clampSequence(before)
	if bounds && before == 0 {
		params.failure.setAt("beforeSequence", kg.Errorf(kg.CodeInvalid, "must be at least 1"))
	}
	q.SinceTime = params.readMillis("sinceTimestamp")
	q.Authors = params.readAgentList("authorIds")
	switch order, _ := params.readText("order"); order {
	case "", "asc":
	case "desc":
		q.Descending = true
	default:
		params.failAt("order", "must be asc or desc, not %q", clipText(order))
	}
	return q
}
