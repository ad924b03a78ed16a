package rdfdata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/rdf"
	"koine/kg"
)

// An entity tag is "STATE.FORMAT", with ".gz" if the response is compressed, and a digest
// of the prefixes if the format writes them. STATE identifies the content in any format.
// It depends only on data that the caller can read:
//
//	rN    a graph with its last change in revision N
//	e     a graph without statements
//	sN-D  the store, or a system graph, at revision N, as the caller with digest D sees it
//	aN    a view of the past, at revision N
//
// It is followed by a digest of the requested certainty and of the doubts that hide
// statements, if there are any. Conditions on writes compare states, so that the tag may
// be of any format.
//
// A caller from whom hide rules hide single statements gets no tag, because it would
// reveal changes of hidden statements.

// stateOf returns the state of the target in a snapshot, "" if it has no tag; some
// reports that the snapshot has a statement of it.
func (h *handler) stateOf(s *kg.Snapshot, t target, past, some bool) (state string, err error) {
	v := s.View()
	switch {
	case s.HidesStatements():
		return "", nil
	case past:
		state = "a" + strconv.FormatUint(uint64(s.Revision()), 36)
	case !t.named || kg.IsOwnGraph(t.graph): // single statements may be hidden
		state = "s" + strconv.FormatUint(uint64(s.Revision()), 36) + "-" + digestOf(append(slices.Sorted(slices.Values(v.Principal.Roles)), string(v.Principal.ID))...)
	case !some:
		state = "e"
	default:
		last, err := h.changes.Of(s, t.graph)
		if err != nil {
			return "", err
		}
		state = "r" + strconv.FormatUint(uint64(last), 36)
	}
	var filters []string
	if v.MinCertainty > 0 {
		filters = append(filters, strconv.FormatFloat(v.MinCertainty, 'g', -1, 64))
	}
	doubts := s.Doubts()
	for _, agent := range slices.Sorted(maps.Keys(doubts)) {
		filters = append(filters, fmt.Sprint(agent, doubts[agent].UnixNano()))
	}
	if filters != nil {
		state += "-" + digestOf(filters...)
	}
	return state, nil
}

// digestOf returns a short digest of texts.
func digestOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// formatETag returns the entity tag of a state in a format.
func formatETag(state string, f rdf.Format, prefixes *kg.Prefixes, compressed bool) string {
	tag := state + "." + f.Extension()
	if !f.HasLines() {
		var list []string
		for _, p := range prefixes.All() {
			list = append(list, p.Name, p.Namespace)
		}
		tag += "-" + digestOf(list...)
	}
	if compressed {
		tag += ".gz"
	}
	return `"` + tag + `"`
}

// stateIn returns the state in an entity tag.
func stateIn(tag string) string {
	state, _, _ := strings.Cut(strings.Trim(tag, `"`), ".")
	return state
}

// parseETags parses the entity tags of a header; any reports that it is "*".
func parseETags(values []string) (list []string, any bool) {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		switch part = strings.TrimSpace(part); part {
		case "":
		case "*":
			any = true
		default:
			list = append(list, part)
		}
	}
	return list, any
}

// failedConditions reports which conditions of the request do not hold (RFC 9110, section
// 13.2): If-Match, else If-None-Match. same compares a tag with the current state.
func failedConditions(r *http.Request, exists bool, same func(tag string) bool) (match, noneMatch bool) {
	if values := r.Header.Values("If-Match"); values != nil {
		list, any := parseETags(values)
		strong := func(tag string) bool { return !strings.HasPrefix(tag, "W/") && same(tag) }
		return !(exists && (any || slices.ContainsFunc(list, strong))), false
	}
	if values := r.Header.Values("If-None-Match"); values != nil {
		list, any := parseETags(values)
		weak := func(tag string) bool { return same(strings.TrimPrefix(tag, "W/")) }
		return false, exists && (any || slices.ContainsFunc(list, weak))
	}
	return false, false
}

func isConditional(r *http.Request) bool {
	return r.Header.Values("If-Match") != nil || r.Header.Values("If-None-Match") != nil
}

func preconditionFailed() error {
	return refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED", "the target does not match the request's condition").
		withHint("Read the target again and retry with its new ETag.")
}

// writeTarget is the state of a write's target before the write.
type writeTarget struct {
	exists bool
	// since is the revision at which the request's condition held, 0 without a condition.
	since kg.Revision
}

// findTarget examines the target before a write, and rejects the write if its condition
// does not hold.
func (h *handler) findTarget(r *http.Request, t target) (found writeTarget, err error) {
	if t.made {
		if match, _ := failedConditions(r, false, nil); match {
			return found, preconditionFailed()
		}
		return found, nil
	}
	who := caller.From(r.Context()).Principal
	v := kg.View{Principal: who}
	if t.named {
		v.Graphs = []kg.Term{t.graph}
	}
	// This view is part of a write, and not subject to the operator's rules on queries.
	s, err := h.Store.View(operation.WithJudged(r.Context()), v)
	if err != nil {
		return found, err
	}
	defer s.Close()
	some := false
	if t.named {
		if some, err = hasStatement(s, t.graph); err != nil {
			return found, err
		}
	}
	found.exists = some || !t.named || t.isDefault() || h.Graphs.Exists(s.View().Principal, t.graph)
	if !isConditional(r) {
		return found, nil
	}
	state, err := h.stateOf(s, t, false, some)
	if err != nil {
		return found, err
	}
	match, noneMatch := failedConditions(r, found.exists, func(tag string) bool { return state != "" && stateIn(tag) == state })
	if match || noneMatch {
		return found, preconditionFailed()
	}
	found.since = s.Revision()
	return found, nil
}

// hasStatement reports whether the snapshot has a statement of the graph.
func hasStatement(s *kg.Snapshot, graph kg.Term) (bool, error) {
	for _, err := range s.Match(kg.Pattern{Graph: graph}) {
		return err == nil, err
	}
	return false, nil
}

// graphExists reports whether the caller sees a statement in the graph now.
func (h *handler) graphExists(r *http.Request, graph kg.Term) (bool, error) {
	s, err := h.Store.View(operation.WithJudged(context.WithoutCancel(r.Context())), kg.View{Principal: caller.From(r.Context()).Principal, Graphs: []kg.Term{graph}})
	if err != nil {
		return false, err
	}
	defer s.Close()
	return hasStatement(s, graph)
}

// withExpected makes a write fail if the target has changed since its condition held.
func (f writeTarget) withExpected(m kg.Meta) kg.Meta {
	if f.since > 0 {
		m.ExpectedRevision, m.HasExpected = f.since, true
	}
	return m
}

// asPrecondition converts the conflict error of a write into a failed precondition.
func (f writeTarget) asPrecondition(err error) error {
	if f.since > 0 && kg.CodeOf(err) == kg.CodeRevisionConflict {
		return preconditionFailed()
	}
	return err
}
