package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"koine/internal/compact"
	"koine/internal/operation"
	"koine/kg"
)

// queryKnowledge handles knowledge/query (knowledge graph extension, section 4.1).
func (h *Handler) queryKnowledge(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	p := c.readOperation(&params, "query", "at", "minRevision", "recordedAt", "validAt", "believedBy", "budget")
	p.View.MaxAge = params.readAge("maxAgeSeconds")
	text, maxTokens := params.readTextFormat()
	params.checkAllRead()
	if err := f.firstError(); err != nil {
		return nil, err
	}
	if p.otherLanguage() {
		return nil, newError(codeInvalidParams, "Invalid parameters", details{Reason: reasonLanguage, Field: "queryLanguage",
			Detail: "the query language " + quoteOrNothing(p.language) + " is not supported", Supported: languages})
	}
	p.QueriesOnly = h.options.RefuseQueryMutations
	if err := h.awaitRevision(ctx, p.controls.minRevision); err != nil {
		return nil, err
	}
	var err error
	if p.View.At, err = h.revisionAt(ctx, p.controls.at); err != nil {
		return nil, err
	}
	p.Budget = p.controls.budget
	result := h.querier.Execute(ctx, p.Request)
	if hasNoData(&result) {
		return nil, queryError(result.Errors)
	}
	return h.queryResult(result, text, maxTokens)
}

// The values of format, and the bounds of maxTokens.
const (
	formatJSON, formatText       = "JSON", "TEXT"
	minTextTokens, maxTextTokens = 50, 50_000
)

// readTextFormat reports whether the answer is asked for as text, and its bound in tokens, 0
// for none.
func (o *object) readTextFormat() (text bool, maxTokens int) {
	format, _ := o.readText("format")
	if format != "" && format != formatJSON && format != formatText {
		o.failAt("format", "must be %s or %s, not %s", formatJSON, formatText, quoteOrNothing(clipText(format)))
	}
	n, ok := o.readNatural("maxTokens")
	if ok && (n < minTextTokens || n > maxTextTokens) {
		o.failAt("maxTokens", "must be from %d to %d", minTextTokens, maxTextTokens)
	} else if ok && format != formatText {
		o.failAt("maxTokens", "bounds a text: add format %s, or use metadata.koine.budget", formatText)
	}
	return format == formatText, int(n)
}

// textOf returns the data of an answer as text for a language model.
func (h *Handler) textOf(data []byte, maxTokens int) (string, error) {
	w, err := compact.WriteAnswer(data, compact.Options{Prefixes: h.prefixes, MaxTokens: maxTokens, More: func(left int) string {
		return fmt.Sprintf("%s more; ask with a larger maxTokens, or for fewer of them", countOf(left, "fact"))
	}})
	return w.Text, err
}

// awaitRevision waits until reads see the revision, up to Options.MaxWait.
func (h *Handler) awaitRevision(ctx context.Context, least kg.Revision) error {
	if least == 0 {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, h.options.MaxWait)
	defer cancel()
	err := h.store.WaitFor(waiting, least)
	if waiting.Err() != nil && ctx.Err() == nil && kg.CodeOf(err) == kg.CodeTimeout {
		err := kg.Errorf(kg.CodeTimeout, "revision %d was not reached within %v; the newest is %d", least, h.options.MaxWait, h.store.Head().Revision)
		return err.At("metadata.koine.minRevision")
	}
	return err
}

// revisionAt returns the revision of the moment; 0, the newest, for none.
func (h *Handler) revisionAt(ctx context.Context, at kg.Moment) (kg.Revision, error) {
	if at == (kg.Moment{}) {
		return 0, nil
	}
	revision, err := h.store.ReadableAt(ctx, at)
	if err != nil {
		return 0, kg.AsError(err).At("metadata.koine.at")
	}
	return revision, nil
}

// queryMetadata describes how a query was answered.
type queryMetadata struct {
	Revision       kg.Revision      `json:"revision"`
	Position       string           `json:"position"`
	DurationMs     json.Number      `json:"durationMs"`
	StatementsRead int64            `json:"statementsRead"`
	Sources        []kg.AgentID     `json:"sources"`
	Truncated      []operation.Cut  `json:"truncated,omitempty"`
	Hints          []operation.Hint `json:"hints,omitempty"`
	Errors         json.RawMessage  `json:"errors,omitempty"`
}

// queryResult returns a KnowledgeQueryResponseResult: data is the content of GraphQL's
// data, which is passed on without decoding, or is text in its place.
func (h *Handler) queryResult(r operation.Result, text bool, maxTokens int) (any, error) {
	meta := queryMetadata{
		Revision: r.Position.Revision, Position: h.store.FormatPosition(r.Position),
		DurationMs:     json.Number(strconv.FormatFloat(float64(r.Duration.Microseconds())/1000, 'f', -1, 64)),
		StatementsRead: r.StatementsRead, Sources: r.Sources, Truncated: r.Cuts, Hints: r.Hints,
	}
	if meta.Sources == nil {
		meta.Sources = []kg.AgentID{}
	}
	if len(r.Errors) > 0 {
		raw, err := appendJSON(nil, r.Errors)
		if err != nil {
			return nil, err
		}
		meta.Errors = raw
	}
	out := make([]byte, 0, len(r.Data)+512)
	if text {
		written, err := h.textOf(r.Data, maxTokens)
		if err != nil {
			return nil, err
		}
		out = append(append(out, `{"text":`...), quoteJSON(written)...)
	} else {
		out = append(append(out, `{"data":`...), r.Data...)
	}
	out = append(out, `,"queryMetadata":`...)
	out, err := appendJSON(out, meta)
	return json.RawMessage(append(out, '}')), err
}
