package knowledge

import (
	"encoding/json"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"

	"koine/internal/operation"
	"koine/kg"
)

// Bounds of sharedPlans.
const (
	sharedPlanPlaces   = 64
	sharedResultPlaces = 4        // of a plan
	maxSharedResult    = 16 << 10 // the size of the largest result that is kept
	// MaxSharedPlan bounds the document of a plan that is kept, in bytes: its names are parts of the
	// document, and hold all of it.
	MaxSharedPlan = 16 << 10
)

// sharedPlans keeps the plans of events that many streams follow, so that equal plans are one
// object, which keeps the last results. It is safe for concurrent use.
//
// Only plans that write nothing but the event are kept: their result depends on the plan and on
// what the reader sees of the change, and on nothing else of the reader (isSelfContained).
type sharedPlans struct {
	seed maphash.Seed

	mu     sync.Mutex // guards places
	places [sharedPlanPlaces]*eventPlan
}

func newSharedPlans() *sharedPlans { return &sharedPlans{seed: maphash.MakeSeed()} }

// share returns the plan that is kept and equal to this one, which it keeps otherwise. The
// request only says where to look.
func (s *sharedPlans) share(plan *eventPlan, request *operation.Request) *eventPlan {
	if len(request.Query)+len(request.OperationName) > MaxSharedPlan || !plan.isSelfContained() {
		return plan
	}
	at := &s.places[maphash.String(s.seed, request.OperationName+"\x00"+request.DocumentID+"\x00"+request.Query)%sharedPlanPlaces]
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := *at; known != nil {
		without := *known
		if without.results = nil; reflect.DeepEqual(&without, plan) {
			return known
		}
	}
	plan.results = &sharedResults{}
	*at = plan
	return plan
}

// sharedResults keeps the last results of a plan: streams that show the same of a change are
// woken together, and the first writes it for all. It is safe for concurrent use.
//
// A result is given to readers who see the same of the change, in the same commit as they see it.
// Who sees less of one of them has another event, and so another result.
type sharedResults struct {
	mu     sync.Mutex // guards places
	places [sharedResultPlaces]sharedResult
}

type sharedResult struct {
	change kg.Event
	after  kg.Position     // of the event
	data   json.RawMessage // immutable; nil for none
}

func (s *sharedResults) placeOf(e *operation.Event) *sharedResult {
	return &s.places[(uint64(e.Position.Revision)+uint64(e.Position.Index))%sharedResultPlaces]
}

// find returns the result of an event that shows the same, nil if none is kept.
func (s *sharedResults) find(e *operation.Event) json.RawMessage {
	if s == nil || !operation.IsShared(e) {
		return nil
	}
	at := s.placeOf(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.data == nil || at.after != e.Position || !operation.SameChange(&at.change, &e.Changes[0]) {
		return nil
	}
	return at.data
}

// keep keeps the result of an event that was written without reading the store. It reports
// whether it did.
func (s *sharedResults) keep(e *operation.Event, result *operation.Result) bool {
	if s == nil || !operation.IsShared(e) || len(result.Errors) > 0 || len(result.Data) > maxSharedResult {
		return false
	}
	at := s.placeOf(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = sharedResult{e.Changes[0], e.Position, slices.Clip(result.Data)}
	return true
}

// isSelfContained reports whether the plan's events are written from the change alone, without
// the store, the view, the principal or the request.
func (plan *eventPlan) isSelfContained() bool {
	content, ok := plan.content.(*statementEvent)
	if !ok || content.change.reads || slices.ContainsFunc(plan.replaced, func(f replacedField) bool { return showsAgents(f.commit) }) {
		return false
	}
	for i := range content.change.fields {
		if showsAgents(content.change.fields[i].commit) {
			return false
		}
	}
	return !slices.ContainsFunc(content.change.statement, func(s *statementPlan) bool { return !s.isSelfContained() })
}

// isSelfContained reports whether the statement is written without the store: what kinds of fields
// come later must be listed here.
func (plan *statementPlan) isSelfContained() bool {
	if plan.ids {
		return false
	}
	for i := range plan.fields {
		f := &plan.fields[i]
		switch f.kind {
		case statementTypename, statementPredicate, statementGraph, statementCertainty, statementAssertedBy, statementRecordedAt, statementRevision, statementPending:
		case statementSubject, statementPredicateEntity, statementObject:
			if f.entity != nil && !f.entity.isSelfContained() {
				return false
			}
		case statementAssertions:
			if showsAgents(f.assertions) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// isSelfContained reports whether the entity shows its name only.
func (plan *entityPlan) isSelfContained() bool {
	return !plan.ids && !plan.reads && !slices.ContainsFunc(plan.fields, func(f entityField) bool { return f.kind != entityTypename && f.kind != entityName })
}

// showsAgents reports whether a field is an agent, whose record may be shown.
func showsAgents(fields []RecordField) bool {
	return slices.ContainsFunc(fields, func(f RecordField) bool { return f.agent != nil })
}
