package httpd

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"koine/kg"
)

// storeCollector reads all of the store's metrics at one moment.
type storeCollector struct{ store Store }

type storeNumber struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(kg.Stats) float64
}

func storeGauge(name, help string, value func(kg.Stats) float64) storeNumber {
	return storeNumber{prometheus.NewDesc("koine_store_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

func storeCounter(name, help string, value func(kg.Stats) float64) storeNumber {
	return storeNumber{prometheus.NewDesc("koine_store_"+name, help, nil, nil), prometheus.CounterValue, value}
}

var storeNumbers = []storeNumber{
	storeGauge("revision", "The newest revision.", func(s kg.Stats) float64 { return float64(s.Revision) }),
	storeGauge("statements", "Statements in all graphs.", func(s kg.Stats) float64 { return float64(s.Statements) }),
	storeGauge("sources", "Agents that statements have as sources.", func(s kg.Stats) float64 { return float64(s.Sources) }),
	storeGauge("source_statements_max", "Statements of the source that has the most of them.", func(s kg.Stats) float64 { return float64(s.MostSourceStatements) }),
	storeGauge("source_statements_bound", "How many statements one source may have; 0 for no bound.", func(s kg.Stats) float64 { return float64(s.MaxSourceStatements) }),
	storeCounter("source_statements_refused_total", "Updates refused because a source would have more than that.", func(s kg.Stats) float64 { return float64(s.QuotaRefusals) }),
	storeGauge("terms", "Terms in the dictionary.", func(s kg.Stats) float64 { return float64(s.Terms) }),
	storeGauge("log_bytes", "Used bytes of the log.", func(s kg.Stats) float64 { return float64(s.LogBytes) }),
	storeGauge("index_bytes", "Bytes of the index.", func(s kg.Stats) float64 { return float64(s.IndexBytes) }),
	storeGauge("queue_length", "Updates that wait for the committer.", func(s kg.Stats) float64 { return float64(s.QueueLength) }),
	storeGauge("watchers", "Registered watchers.", func(s kg.Stats) float64 { return float64(s.Watchers) }),
	storeGauge("snapshots", "Open snapshots.", func(s kg.Stats) float64 { return float64(s.Snapshots) }),
	storeCounter("term_cache_hits_total", "Terms found in the cache.", func(s kg.Stats) float64 { return float64(s.CacheHits) }),
	storeGauge("queue_bound", "How many updates may wait for the committer.", func(s kg.Stats) float64 { return float64(s.QueueBound) }),
	storeGauge("watcher_lag_max_revisions", "How many revisions the watcher that is furthest behind is behind the newest.", func(s kg.Stats) float64 { return float64(s.MaxLag) }),
	storeGauge("checkpoint_bytes", "Bytes of the checkpoints.", func(s kg.Stats) float64 { return float64(s.CheckpointBytes) }),
	storeGauge("free_bytes", "Free space of the data directory's volume.", func(s kg.Stats) float64 { return float64(s.FreeBytes) }),
	storeGauge("reserve_bytes", "Free space below which no updates are taken.", func(s kg.Stats) float64 { return float64(s.ReserveBytes) }),
	storeGauge("oldest_in_log_revision", "The oldest revision in the log.", func(s kg.Stats) float64 { return float64(s.OldestInLog) }),
	storeGauge("oldest_readable_revision", "The oldest revision that can be read; 0 while all can.", func(s kg.Stats) float64 { return float64(s.OldestReadable) }),
	storeGauge("ready", "1 while updates are taken.", func(s kg.Stats) float64 { return boolToFloat(s.Refused == "") }),
	storeGauge("term_cache_hit_ratio", "The share of terms found in the cache, since the store was opened.", func(s kg.Stats) float64 {
		return float64(s.CacheHits) / float64(max(1, s.CacheHits+s.CacheMisses))
	}),
	storeCounter("index_keys_read_total", "Keys of the index that scans and lookups passed since the store was opened.", func(s kg.Stats) float64 { return float64(s.KeysRead) }),
	storeCounter("term_cache_misses_total", "Terms looked up in the index.", func(s kg.Stats) float64 { return float64(s.CacheMisses) }),
}

// storeDistribution is a histogram that the store keeps.
type storeDistribution struct {
	desc  *prometheus.Desc
	value func(kg.Stats) kg.Histogram
}

func storeHistogram(name, help string, value func(kg.Stats) kg.Histogram) storeDistribution {
	return storeDistribution{prometheus.NewDesc("koine_store_"+name, help, nil, nil), value}
}

var storeHistograms = []storeDistribution{
	storeHistogram("commit_duration_seconds", "How long committed updates took, from being queued to their answer.", func(s kg.Stats) kg.Histogram { return s.CommitSeconds }),
	storeHistogram("append_duration_seconds", "How long the log took for a group of commits, its sync included.", func(s kg.Stats) kg.Histogram { return s.AppendSeconds }),
	storeHistogram("group_commits", "How many commits shared one sync.", func(s kg.Stats) kg.Histogram { return s.GroupCommits }),
}

// The lag of watchers is a gauge for each bound, because watchers come and go, and the
// counts of a histogram may only grow.
var (
	storeLagging = prometheus.NewDesc("koine_store_watchers_lagging", "Watchers that are more than so many revisions behind.", []string{"revisions"}, nil)
	storeRefused = prometheus.NewDesc("koine_store_updates_refused", "1 for the code with which all updates are refused; absent while they are taken.", []string{"code"}, nil)
)

func boolToFloat(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (c storeCollector) Describe(to chan<- *prometheus.Desc) {
	to <- storeLagging
	to <- storeRefused
	for _, h := range storeHistograms {
		to <- h.desc
	}
	for _, n := range storeNumbers {
		to <- n.desc
	}
}

// Collect implements prometheus.Collector.
func (c storeCollector) Collect(to chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, h := range storeHistograms {
		v := h.value(stats)
		to <- prometheus.MustNewConstHistogram(h.desc, v.Count(), v.Sum, v.Cumulative())
	}
	lag := stats.LagRevisions.Count()
	for i, bound := range stats.LagRevisions.Bounds {
		lag -= stats.LagRevisions.Counts[i]
		to <- prometheus.MustNewConstMetric(storeLagging, prometheus.GaugeValue, float64(lag), strconv.FormatFloat(bound, 'f', -1, 64))
	}
	if stats.Refused != "" {
		to <- prometheus.MustNewConstMetric(storeRefused, prometheus.GaugeValue, 1, string(stats.Refused))
	}
	for _, n := range storeNumbers {
		to <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(stats))
	}
}
