package rdfdata

import (
	"errors"
	"net/http"

	"koine/internal/assertions"
	"koine/internal/caller"
	"koine/internal/rdf"
	"koine/internal/throttle"
	"koine/kg"
)

// asRDF is the value of ?assertions= that describes assertions in RDF.
const asRDF = "rdf"

// describesAssertions reports whether ?assertions= requests descriptions of assertions,
// or declares that the body has them.
func describesAssertions(r *http.Request) (bool, error) {
	values := r.URL.Query()["assertions"]
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) == 1 && values[0] == asRDF:
		return true, nil
	}
	return false, kg.Errorf(kg.CodeInvalid, "assertions must be %s", asRDF).At("assertions")
}

// mayRestore rejects a document with assertions of other agents unless the caller is an
// administrator, before the document is received.
func mayRestore(r *http.Request) error {
	if caller.From(r.Context()).Principal.IsAdmin() {
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "only an administrator can load assertions of other agents").At("assertions")
}

// restored is the result of importing a document with descriptions of assertions.
type restored struct {
	Statements uint64 `json:"statements"`
	Assertions uint64 `json:"assertions"`
	// Unasserted counts the descriptions of statements that the document does not contain.
	Unasserted uint64 `json:"unasserted,omitempty"`
}

// restoreDocument adds the document's statements with their described assertions.
func (h *handler) restoreDocument(r *http.Request, d *document, _ target, _ writeTarget) (out report, err error) {
	in, err := d.spool.open()
	if err != nil {
		return report{}, err
	}
	document := assertions.NewDocument(r.Context(), assertions.DocumentOptions{HasGraphs: d.format.HasGraphs(), Dir: h.options.TempDir})
	defer func() { err = errors.Join(err, document.Close()) }()
	if err := document.AddAll(rdf.ReadContext(r.Context(), in, d.format, d.options)); err != nil {
		return report{}, err
	}
	// Admitted once, as a load: how many commits it takes follows from the document's
	// justifications.
	ctx, m := throttle.WithOneAdmission(r.Context()), commitMeta(r, d.why)
	charged := uint64(0)
	progress := func(assertions uint64) {
		for h.Charge != nil && assertions > (charged+1)*kg.LoadUpdateQuads {
			charged++
			h.Charge(ctx, m)
		}
	}
	done, err := assertions.Restore(ctx, h.Store, m, document.Statements(), assertions.RestoreOptions{Dir: h.options.TempDir, Progress: progress})
	if err != nil {
		return report{}, err
	}
	behind := h.Store.Head()
	if done.Revision == 0 {
		done.Revision = behind.Revision
	}
	behind.Revision, behind.Index = done.Revision, kg.EndOfCommit
	out = h.newReport(done.Revision, behind, done.Commits, done.Changed)
	out.Restored = &restored{done.Statements, done.Assertions, document.Unasserted()}
	return out, nil
}
