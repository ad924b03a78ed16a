package a2a

import (
	"context"

	"koine/channels"
	"koine/kg"
)

// history handles channels/history (channels extension, section 7.2; WIRE §7).
func (h *Handler) history(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	q := readHistory(&params)
	if err := params.end(); err != nil {
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
	q.PageSize = params.pageSize()
	q.PageToken, _ = params.text("pageToken")
	if params.has("sinceSequence") && params.has("sinceTimestamp") {
		params.fail("sinceTimestamp", "sinceTimestamp and sinceSequence are mutually exclusive")
	}
	if since, said := params.natural("sinceSequence"); said {
		n := bounded(since)
		q.SinceSequence = &n
	}
	before, bounds := params.natural("beforeSequence")
	q.BeforeSequence = bounded(before)
	if bounds && before == 0 {
		params.failure.set("beforeSequence", kg.Errorf(kg.CodeInvalid, "must be at least 1"))
	}
	q.SinceTime = params.millis("sinceTimestamp")
	q.Authors = params.agentList("authorIds")
	switch order, _ := params.text("order"); order {
	case "", "asc":
	case "desc":
		q.Descending = true
	default:
		params.fail("order", "must be asc or desc, not %q", clip(order))
	}
	return q
}
