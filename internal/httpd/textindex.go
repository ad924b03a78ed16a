package httpd

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

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

// textIndexCollector has the metrics of the index of texts.
type textIndexCollector struct{ state func() TextIndex }

type textIndexNumber struct {
	desc  *prometheus.Desc
	value func(TextIndex) float64
}

func textIndexGauge(name, help string, value func(TextIndex) float64) textIndexNumber {
	return textIndexNumber{prometheus.NewDesc("koine_search_"+name, help, nil, nil), value}
}

var textIndexNumbers = []textIndexNumber{
	textIndexGauge("building", "1 while the index of texts is built anew: hits may be missing.", func(x TextIndex) float64 { return boolToFloat(x.Building) }),
	textIndexGauge("catching_up", "1 while the index of texts reads what the log had when the server started.", func(x TextIndex) float64 { return boolToFloat(x.CatchingUp) }),
	textIndexGauge("progress_read", "Statements that are read while the index of texts is built, or revisions while it catches up.", func(x TextIndex) float64 { return float64(x.Done) }),
	textIndexGauge("progress_expected", "Statements or revisions that are to be read.", func(x TextIndex) float64 { return float64(x.Total) }),
	textIndexGauge("revision", "Newest revision that the index of texts knows.", func(x TextIndex) float64 { return float64(x.Revision) }),
	textIndexGauge("lag_revisions", "Revisions that the index of texts does not know yet.", func(x TextIndex) float64 { return float64(x.Behind) }),
	textIndexGauge("texts", "Texts in the index.", func(x TextIndex) float64 { return float64(x.Texts) }),
	textIndexGauge("segments", "Segments of the index of texts.", func(x TextIndex) float64 { return float64(x.Segments) }),
	textIndexGauge("index_bytes", "Bytes of the index of texts.", func(x TextIndex) float64 { return float64(x.Bytes) }),
}

// Describe implements prometheus.Collector.
func (c textIndexCollector) Describe(to chan<- *prometheus.Desc) {
	for _, n := range textIndexNumbers {
		to <- n.desc
	}
}

// Collect implements prometheus.Collector.
func (c textIndexCollector) Collect(to chan<- prometheus.Metric) {
	x := c.state()
	for _, n := range textIndexNumbers {
		to <- prometheus.MustNewConstMetric(n.desc, prometheus.GaugeValue, n.value(x))
	}
}
