package rdfdata

import (
	"net/http"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

// deleteGraph handles DELETE: it deletes a graph, or empties the default graph, which
// always exists.
func (h *handler) deleteGraph(w http.ResponseWriter, r *http.Request, t target) error {
	if !t.named {
		return kg.Errorf(kg.CodeInvalid, "DELETE deletes one graph and needs ?graph= or ?default").At("graph")
	}
	why, err := justificationOf(r, "Delete a graph over HTTP")
	if err != nil {
		return err
	}
	if err := caller.From(r.Context()).Principal.CheckWrite(); err != nil {
		return err
	}
	owner := throttle.OwnerOf(caller.From(r.Context()))
	if !h.imports.Acquire(owner, 1) {
		return tooMany()
	}
	defer h.imports.Release(owner, 1)
	found, err := h.findTarget(r, t)
	if err != nil {
		return err
	}
	var out report
	switch {
	case t.isDefault():
		out, err = h.replaceWith(r, noQuads, why, t, found)
	case !found.exists && !kg.IsOwnGraph(t.graph):
		return kg.Errorf(kg.CodeGraphNotFound, "there is no graph %s", t.graph).At("graph")
	default:
		out, err = h.dropGraph(r, t, found, why)
	}
	if err != nil {
		return found.asPrecondition(err)
	}
	return writeReport(w, http.StatusOK, out)
}

// noQuads is the content of an emptied graph.
func noQuads(func(kg.Quad, error) bool) {}

// dropGraph deletes a graph.
func (h *handler) dropGraph(r *http.Request, t target, found writeTarget, why string) (report, error) {
	d, err := h.Graphs.Delete(r.Context(), found.withExpected(commitMeta(r, why)), t.graph)
	if err != nil {
		return report{}, err
	}
	out := h.newReport(d.Receipt.Revision, d.Receipt.Position, 1, 0)
	out.Removed = d.Removed
	return out, nil
}
