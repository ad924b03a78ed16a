package httpd

import (
	"fmt"

	"koine/kg"
)

// TextIndex is how far the index of texts is. The server is ready without it.
type TextIndex struct {
	// Building means that the index is built anew, and CatchingUp that it reads the log since
	// it was saved. Done of Total statements or revisions are read.
	Building, CatchingUp bool
	Done, Total          uint64

	Revision kg.Revision
	Behind   uint64 // revisions
	Texts    uint64
	Segments int
	Bytes    int64
}

// describeState returns the state for /readyz: a share, because numbers of statements are not for
// everybody; "" for an index that is complete.
func (x TextIndex) describeState() string {
	state := ""
	switch {
	case x.Building:
		state = "building"
	case x.CatchingUp:
		state = "catching up"
	default:
		return ""
	}
	return fmt.Sprintf("%s, %d %%", state, 100*x.Done/max(x.Total, 1))
}

var textIndexNumbers = []stateGauge[TextIndex]{
	newStateGauge("search_building", "1 while the index of texts is built anew: hits may be missing.", func(x TextIndex) float64 { return boolToFloat(x.Building) }),
	newStateGauge("search_catching_up", "1 while the index of texts reads what the log had when the server started.", func(x TextIndex) float64 { return boolToFloat(x.CatchingUp) }),
	newStateGauge("search_progress_read", "Statements that are read while the index of texts is built, or revisions while it catches up.", func(x TextIndex) float64 { return float64(x.Done) }),
	newStateGauge("search_progress_expected", "Statements or revisions that are to be read.", func(x TextIndex) float64 { return float64(x.Total) }),
	newStateGauge("search_revision", "Newest revision that the index of texts knows.", func(x TextIndex) float64 { return float64(x.Revision) }),
	newStateGauge("search_lag_revisions", "Revisions that the index of texts does not know yet.", func(x TextIndex) float64 { return float64(x.Behind) }),
	newStateGauge("search_texts", "Texts in the index.", func(x TextIndex) float64 { return float64(x.Texts) }),
	newStateGauge("search_segments", "Segments of the index of texts.", func(x TextIndex) float64 { return float64(x.Segments) }),
	newStateGauge("search_index_bytes", "Bytes of the index of texts.", func(x TextIndex) float64 { return float64(x.Bytes) }),
}
