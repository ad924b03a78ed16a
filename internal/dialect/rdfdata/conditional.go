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

// An entity tag is "STATE.FORMAT", with ".gz" where the answer is compressed, and a
// digest of the prefixes where the format writes these. STATE says what is shown,
// whatever the format. It is made of what the caller reads, and of nothing else:
//
//	rN    a graph whose last change is revision N
//	e     a graph without statements
//	sN-D  the store, or a graph of koine's own, at revision N, as the caller of digest
//	      D sees it
//	aN    what a view of the past shows, at revision N
//
// Behind it is a digest of the certainty that was asked for and of the doubts that
// leave statements out, if there are any. A condition on a write compares states: the
// tag may be of any format.
//
// There is none for who may not see single statements of graphs that it reads (hide
// rules): it would tell when one of these changes.

// stateOf is the state of what a snapshot shows of the target, "" for one that has no
// tag; some tells that it shows a statement.
func (h *handler) stateOf(s *kg.Snapshot, t target, past, some bool) (state string, err error) {
	v := s.View()
	switch {
	case s.HidesStatements():
		return "", nil
	case past:
		state = "a" + strconv.FormatUint(uint64(s.Revision()), 36)
	case !t.named || kg.IsOwnGraph(t.graph): // single statements may be hidden there
		state = "s" + strconv.FormatUint(uint64(s.Revision()), 36) + "-" + digest(append(slices.Sorted(slices.Values(v.Principal.Roles)), string(v.Principal.ID))...)
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
		state += "-" + digest(filters...)
	}
	return state, nil
}

// digest is a short name of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// etag is the entity tag of a state in a format.
func etag(state string, f rdf.Format, prefixes *kg.Prefixes, compressed bool) string {
	tag := state + "." + f.Extension()
	if !f.HasLines() {
		var list []string
		for _, p := range prefixes.All() {
			list = append(list, p.Name, p.Namespace)
		}
		tag += "-" + digest(list...)
	}
	if compressed {
		tag += ".gz"
	}
	return `"` + tag + `"`
}

// stateIn is the state that an entity tag names.
func stateIn(tag string) string {
	state, _, _ := strings.Cut(strings.Trim(tag, `"`), ".")
	return state
}

// tags reads the entity tags of a header; any tells that it is "*".
func tags(values []string) (list []string, any bool) {
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

// fails tells whether a condition of the request does not hold (RFC 9110, section
// 13.2): If-Match, else If-None-Match. same compares a tag with what is there.
func fails(r *http.Request, exists bool, same func(tag string) bool) (match, noneMatch bool) {
	if values := r.Header.Values("If-Match"); values != nil {
		list, any := tags(values)
		strong := func(tag string) bool { return !strings.HasPrefix(tag, "W/") && same(tag) }
		return !(exists && (any || slices.ContainsFunc(list, strong))), false
	}
	if values := r.Header.Values("If-None-Match"); values != nil {
		list, any := tags(values)
		weak := func(tag string) bool { return same(strings.TrimPrefix(tag, "W/")) }
		return false, exists && (any || slices.ContainsFunc(list, weak))
	}
	return false, false
}

func isConditional(r *http.Request) bool {
	return r.Header.Values("If-Match") != nil || r.Header.Values("If-None-Match") != nil
}

func preconditionFailed() error {
	return refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED", "what is there is not what the request's condition says").
		because("Read it again: its ETag says what it is now.")
}

// standing is how a write finds its target.
type standing struct {
	exists bool
	// since is the revision at which the request's condition held, 0 where it has none.
	since kg.Revision
}

// find looks at the target before a write, and refuses one whose condition does not
// hold.
func (h *handler) find(r *http.Request, t target) (found standing, err error) {
	if t.made {
		if match, _ := fails(r, false, nil); match {
			return found, preconditionFailed()
		}
		return found, nil
	}
	who := caller.From(r.Context()).Principal
	v := kg.View{Principal: who}
	if t.named {
		v.Graphs = []kg.Term{t.graph}
	}
	// Part of a write, and no query of its own that the operator's rules are asked about.
	s, err := h.Store.View(operation.WithJudged(r.Context()), v)
	if err != nil {
		return found, err
	}
	defer s.Close()
	some := false
	if t.named {
		if some, err = shows(s, t.graph); err != nil {
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
	match, noneMatch := fails(r, found.exists, func(tag string) bool { return state != "" && stateIn(tag) == state })
	if match || noneMatch {
		return found, preconditionFailed()
	}
	found.since = s.Revision()
	return found, nil
}

// shows tells whether the snapshot shows a statement of the graph.
func shows(s *kg.Snapshot, graph kg.Term) (bool, error) {
	for _, err := range s.Match(kg.Pattern{Graph: graph}) {
		return err == nil, err
	}
	return false, nil
}

// holds tells whether the caller sees a statement in the graph now.
func (h *handler) holds(r *http.Request, graph kg.Term) (bool, error) {
	s, err := h.Store.View(operation.WithJudged(context.WithoutCancel(r.Context())), kg.View{Principal: caller.From(r.Context()).Principal, Graphs: []kg.Term{graph}})
	if err != nil {
		return false, err
	}
	defer s.Close()
	return shows(s, graph)
}

// expecting has a write fail where the target changed since its condition held.
func (f standing) expecting(m kg.Meta) kg.Meta {
	if f.since > 0 {
		m.ExpectedRevision, m.HasExpected = f.since, true
	}
	return m
}

// conflicted says of a write that its condition no longer held.
func (f standing) conflicted(err error) error {
	if f.since > 0 && kg.CodeOf(err) == kg.CodeRevisionConflict {
		return preconditionFailed()
	}
	return err
}
