package httpd

// Embeddings counts the texts of which an endpoint makes vectors.
type Embeddings struct {
	Waiting int64 // texts that were read from the log and have no vectors yet
	Made    int64 // texts that got vectors since the start
	Refused int64 // texts that the endpoint does not take
	GivenUp int64 // texts at which the endpoint fails, while it answers others
	Failed  int64 // calls that failed
	Today   int64 // texts that were sent today
	Daily   int64
	Stored  int64 // vectors on disk
	Behind  int64 // revisions whose texts may have no vectors
}

var embeddingNumbers = []stateGauge[Embeddings]{
	newStateGauge("embeddings_waiting_texts", "Texts that were read from the log and wait for the embeddings endpoint.", func(x Embeddings) float64 { return float64(x.Waiting) }),
	newStateGauge("embeddings_lag_revisions", "Revisions whose texts may have no vectors yet.", func(x Embeddings) float64 { return float64(x.Behind) }),
	newStateGauge("embeddings_made", "Texts that got vectors since the start.", func(x Embeddings) float64 { return float64(x.Made) }),
	newStateGauge("embeddings_refused", "Texts that the embeddings endpoint did not take since the start; they have no vectors.", func(x Embeddings) float64 { return float64(x.Refused) }),
	newStateGauge("embeddings_given_up", "Texts at which the embeddings endpoint failed while it answered others, since the start; they have no vectors.", func(x Embeddings) float64 { return float64(x.GivenUp) }),
	newStateGauge("embeddings_failed_calls", "Calls of the embeddings endpoint that failed since the start.", func(x Embeddings) float64 { return float64(x.Failed) }),
	newStateGauge("embeddings_sent_today", "Texts that were sent to the embeddings endpoint today, in UTC.", func(x Embeddings) float64 { return float64(x.Today) }),
	newStateGauge("embeddings_daily_limit", "Texts that may be sent to the embeddings endpoint on a day.", func(x Embeddings) float64 { return float64(x.Daily) }),
	newStateGauge("embeddings_stored", "Made vectors on disk.", func(x Embeddings) float64 { return float64(x.Stored) }),
}
