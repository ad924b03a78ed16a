package httpd

import "github.com/prometheus/client_golang/prometheus"

// stateCollector has the metrics of a part that tells its state as a whole.
type stateCollector[T any] struct {
	state  func() T
	gauges []stateGauge[T]
}

// stateGauge is a metric of a state.
type stateGauge[T any] struct {
	desc  *prometheus.Desc
	value func(T) float64
}

func newStateGauge[T any](name, help string, value func(T) float64) stateGauge[T] {
	return stateGauge[T]{prometheus.NewDesc("koine_"+name, help, nil, nil), value}
}

// Describe implements prometheus.Collector.
func (c stateCollector[T]) Describe(to chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		to <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector[T]) Collect(to chan<- prometheus.Metric) {
	x := c.state()
	for _, g := range c.gauges {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(x))
	}
}
