package observertest

// Ignored lists types, and fields of types, that are not derived from the log, with the reason. Packages are
// named by the last element of their path.
var Ignored = map[string]string{
	"kg.Store":     "its index is compared with a rebuilt one by the tests of kg",
	"kgtest.Store": "as kg.Store",
	"slog.Logger":  "a logger",
	"time.Timer":   "what runs out with it is compared",

	"systemgraph.RecentChanges": "changes of access for open streams",
	"systemgraph.Mirror":        "the newest commit that it was told of",

	"shapes.Set.active": "compiled from quads, which are compared",

	"policy.Policies.version": "a counter of this process's cached decisions",

	"presence.Tracker.tracked":   "who is present: this process, or the cluster's leader, sees it and writes it to the log",
	"presence.Tracker.upcoming":  "as tracked",
	"presence.Tracker.journal":   "where tracked is written",
	"presence.Tracker.listeners": "readers in this process",
	"presence.Tracker.writer":    "as journal",

	"jobs.Group": "what runs in the background",

	"channels.Service.journal":     "a cache of messages, and what lags behind in streams that were open: TestSecondServiceTellsTheSame compares what they tell",
	"channels.Service.rateWindows": "calls of this process",
	"channels.Service.streams":     "streams of this process",
	"channels.Service.signals":     "listeners of this process",
	"channels.Service.digests":     "a cache of commits",
	"channels.Service.receipts":    "acknowledgements that are not committed yet",
	"channels.Service.counter":     "counts that are to be committed soon",
	"channels.Service.expiry":      "what may be due: each entry is compared with the store before it is committed",
	"channels.Service.idle":        "the earliest time at which a channel may close: compared with its last message before it is closed",
	"access.Entry.table":           "the table that the entry is in",
	"access.Entry.BeforeDeletion":  "who may see in an open stream that its channel was deleted",
	"access.Table.appliedRevision": "the newest commit of a system graph, or the newest of all when loaded",
	"access.Table.version":         "a counter of this process's cached decisions",
}

// unordered lists the fields of types whose lists are sets, in no order.
var unordered = map[string]bool{
	"proposals.entry.about": true,
}
