package reference

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

const (
	// firstEvents is the number of a subscription's events that are compared.
	firstEvents = 3
	// quiet is the time without an event after which the plain form's subscription is left. The
	// document's has to have as many events as that one had, however long they take.
	quiet = 25 * time.Millisecond
)

// TestSubscriptionsAgainstGraphQLJS compares the first events of random subscriptions that begin
// in the past: those of the document with the document as graphql-js completes it over those of
// its plain form.
func TestSubscriptionsAgainstGraphQLJS(t *testing.T) {
	slowtest.WithoutRace(t)
	n, first := documents(t, 300)
	w := newWorld(t)
	schema := schemaOf(t, w)
	js := startNode(t, w.engine.SDL())
	counts := map[string]int{}
	for i := range n {
		compareEvents(t, w, js, newOperation(schema, ast.Subscription, first+uint64(i), false), first+uint64(i), counts)
	}
	t.Logf("%v", counts)
	js.logCoverage(t, "Subscription.")
}

func compareEvents(t *testing.T, w *world, js *node, doc document, seed uint64, counts map[string]int) {
	t.Helper()
	text, variables := w.named(doc.text), w.named(string(doc.variables))
	a := w.request(w.engine, doc.by, text, decodeVariables(t, variables))
	a.name = doc.operation
	e := js.examine(text, doc.operation, json.RawMessage(variables))
	report := func(format string, args ...any) {
		t.Helper()
		t.Errorf("-reference.seed=%d, as %s\n%s\n%s\n"+format, append([]any{seed, doc.by.ID, text, variables}, args...)...)
	}
	plain := []answer{{kind: e.Verdict}} // nothing is asked for it
	if e.Verdict == "valid" {
		plain = w.follow(w.request(w.wide, doc.by, e.Plain, nil), firstEvents, quiet)
	}
	got := w.follow(a, len(plain), slowtest.Slack(10*time.Second))
	counts["events"] += len(plain)
	for i, event := range got {
		if event.kind != "valid" && len(got) == 1 { // it did not begin
			begun := append(plain, answer{kind: "valid", data: "{}"})[0]
			judge(js, text, event, e, func() answer { return begun }, unsealed, counts, report)
			return
		}
		if i == len(plain) {
			break
		}
		if !judge(js, text, event, e, func() answer { return plain[i] }, unsealed, counts, report) {
			return
		}
	}
	if len(got) != len(plain) {
		report("koine has %d events %v, the plain form %d %v", len(got), got, len(plain), plain)
	}
}

// follow returns the first n events of a subscription, fewer if there is none for a time. The
// error that ends it, or does not let it begin, counts as one.
func (w *world) follow(a *asked, n int, patience time.Duration) (events []answer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := a.engine.Subscribe(ctx, a.request())
	if err != nil {
		return []answer{w.ended(err)}
	}
	defer s.Close()
	if n == 0 {
		return nil
	}
	watch := time.AfterFunc(patience, cancel)
	defer watch.Stop()
	for e, err := range s.Events() {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return append(events, w.ended(err))
		}
		events = append(events, w.answerOf(e.Result, "valid"))
		if len(events) == n {
			break
		}
		watch.Reset(patience)
	}
	return events
}

// ended is the answer of a subscription that ends with an error.
func (w *world) ended(err error) answer {
	var invalid *operation.InvalidError
	if errors.As(err, &invalid) {
		return w.answerOf(operation.Result{Errors: invalid.Errors}, "")
	}
	return answer{kind: string(kg.CodeOf(err)), errors: []failure{{Message: err.Error()}}, codes: []string{string(kg.CodeOf(err))}}
}
