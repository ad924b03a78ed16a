package a2a

import (
	"context"
	"errors"
	"net/http"

	"koine/internal/operation"
	"koine/kg"
)

// subscribe is knowledge/subscribe (knowledge graph extension, section 4.3;
// WIRE §5).
func (h *Handler) subscribe(_ context.Context, c *call) (*opening, error) {
	f := new(failure)
	params := readParams(f, c.params)
	p := c.readOperation(&params, "subscriptionQuery", "resume", "snapshot", "recordedAt", "validAt", "believedBy")
	if params.has("maxAgeSeconds") {
		params.fail("maxAgeSeconds", "cannot be part of a subscription: what is new is not old")
	}
	params.done()
	if err := f.error(); err != nil {
		return nil, err
	}
	if p.otherLanguage() {
		return nil, newError(codeSubscription, "subscriptions in "+quoteOrNothing(p.language)+" are not served here",
			details{Reason: reasonLanguage, Field: "queryLanguage", Supported: languages}).at(http.StatusNotImplemented)
	}
	resume, ids, err := h.readResume(c.header, "metadata.koine.resume", p.controls.resume, p.controls.snapshot)
	if err != nil {
		return nil, err
	}
	p.Resume = resume
	return &opening{ids: ids, establish: func(ctx context.Context) (*feed, error) {
		sub, err := h.querier.Subscribe(ctx, p.Request)
		if err != nil {
			return nil, subscribeError(err)
		}
		feed := newChangeFeed(h.store, sub)
		if _, asked := c.header[lastEventID]; asked && resume.Start <= operation.Latest {
			feed.tellStart()
		}
		return feed, nil
	}}, nil
}

// readResume says where a stream starts and whether ids are wanted. A
// Last-Event-ID is newer than what the request itself says: it is of a client
// that comes back with the same request. field names resume in errors.
func (h *Handler) readResume(header http.Header, field, resume string, snapshot bool) (from operation.Resume, ids bool, err error) {
	_, asked := header[lastEventID]
	said := resume != "" || snapshot
	last := header.Get(lastEventID)
	if said && last == "" {
		from.Said = field
	}
	switch {
	case last != "":
		field, from.Start = "Last-Event-ID", operation.After
		from.After, err = h.store.ParsePosition(last)
	case snapshot && resume != "" && resume != "snapshot":
		err = kg.Errorf(kg.CodeInvalid, "says another start than snapshot: say one of them")
	case snapshot || resume == "snapshot":
		from.Start = operation.Snapshot
	case resume == "latest":
		from.Start = operation.Latest
	case resume == "earliest":
		from.Start = operation.Earliest
	case resume != "":
		from.Start = operation.After
		from.After, err = h.store.ParsePosition(resume)
	}
	if err != nil {
		return from, asked || said, kg.AsError(err).At(field)
	}
	return from, asked || said, nil
}

const lastEventID = "Last-Event-Id" // as net/http spells it

// subscribeError gives a refusal of the engine its place: an operation that is
// invalid is no invalid param.
func subscribeError(err error) error {
	var invalid *operation.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	e := newError(codeSubscription, "the subscription is not valid", details{Reason: reasonInvalidSubscription,
		Hint: "It is one of the subscriptions of the schema, which is served at /graphql/schema: statementChanged, entityChanged, matchChanged, messagePublished and others."}).at(http.StatusBadRequest)
	if len(invalid.Errors) > 0 {
		e.Message = invalid.Errors[0].Message
	}
	raw, encodeErr := appendJSON(nil, invalid.Errors)
	if encodeErr != nil {
		return encodeErr
	}
	return e.with(func(d *details) { d.Errors = raw })
}
