package a2a

import (
	"context"
	"errors"
	"net/http"

	"koine/internal/operation"
	"koine/kg"
)

// subscribeKnowledge handles knowledge/subscribe (knowledge graph extension, section 4.3).
func (h *Handler) subscribeKnowledge(_ context.Context, c *call) (*opening, error) {
	f := new(failure)
	params := readParams(f, c.params)
	p := c.readOperation(&params, "subscriptionQuery", "resume", "snapshot", "recordedAt", "validAt", "believedBy")
	if params.hasMember("maxAgeSeconds") {
		params.failAt("maxAgeSeconds", "maxAgeSeconds cannot be used in a subscription")
	}
	params.checkAllRead()
	if err := f.firstError(); err != nil {
		return nil, err
	}
	if p.otherLanguage() {
		return nil, newError(codeSubscription, "the subscription language "+quoteOrNothing(p.language)+" is not supported",
			details{Reason: reasonLanguage, Field: "queryLanguage", Supported: languages}).withStatus(http.StatusNotImplemented)
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
		feed := h.newChangeFeed(sub)
		if _, asked := c.header[lastEventID]; asked && resume.Start <= operation.Latest {
			feed.tellStart()
		}
		return feed, nil
	}}, nil
}

// readResume returns the start of a stream and whether ids are requested. A
// Last-Event-ID takes precedence over the request: a reconnecting client repeats its
// request. field names resume in errors.
func (h *Handler) readResume(header http.Header, field, resume string, snapshot bool) (from operation.Resume, ids bool, err error) {
	_, asked := header[lastEventID]
	hasStart := resume != "" || snapshot
	last := header.Get(lastEventID)
	if hasStart && last == "" {
		from.SetBy = field
	}
	switch {
	case last != "":
		field, from.Start = "Last-Event-ID", operation.After
		from.After, err = h.store.ParsePosition(last)
	case snapshot && resume != "" && resume != "snapshot":
		err = kg.Errorf(kg.CodeInvalid, "resume and snapshot are mutually exclusive")
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
		return from, asked || hasStart, kg.AsError(err).At(field)
	}
	return from, asked || hasStart, nil
}

const lastEventID = "Last-Event-Id" // as net/http spells it

// subscribeError converts an error of the engine: an invalid operation is not an
// invalid param.
func subscribeError(err error) error {
	var invalid *operation.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	e := newError(codeSubscription, "the subscription is not valid", details{Reason: reasonInvalidSubscription,
		Hint: "Use a subscription of the schema at /graphql/schema: statementChanged, entityChanged, matchChanged, messagePublished and others."}).withStatus(http.StatusBadRequest)
	if len(invalid.Errors) > 0 {
		e.Message = invalid.Errors[0].Message
	}
	raw, encodeErr := appendJSON(nil, invalid.Errors)
	if encodeErr != nil {
		return encodeErr
	}
	return e.withDetails(func(d *details) { d.Errors = raw })
}
