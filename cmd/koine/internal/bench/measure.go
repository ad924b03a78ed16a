package bench

import (
	"context"
	"slices"
	"sync"
	"time"
)

// measurement collects the latencies and errors that the clients observe. It keeps every
// latency, at 8 bytes each.
type measurement struct {
	Requests   int
	Errors     int
	latencies  []time.Duration
	took       time.Duration
	firstError error
}

// measureAction runs an action repeatedly in the given number of clients for the duration
// d, at least once in each. Actions in flight at the end are completed and counted.
func measureAction(ctx context.Context, clients int, d time.Duration, action func(context.Context) error) *measurement {
	each := make([]measurement, clients)
	began := time.Now()
	end := began.Add(d)
	var all sync.WaitGroup
	for i := range each {
		all.Go(func() { each[i].repeatAction(ctx, end, action) })
	}
	all.Wait()
	out := &measurement{}
	for i := range each {
		out.mergeFrom(&each[i])
	}
	out.took = time.Since(began)
	return out
}

func (m *measurement) repeatAction(ctx context.Context, end time.Time, action func(context.Context) error) {
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		if !first && began.After(end) {
			return
		}
		if err := action(ctx); err != nil {
			m.Errors++
			if m.firstError == nil {
				m.firstError = err
			}
			continue
		}
		m.latencies = append(m.latencies, time.Since(began))
		m.Requests++
	}
}

func (m *measurement) mergeFrom(o *measurement) {
	m.Requests += o.Requests
	m.Errors += o.Errors
	m.latencies = append(m.latencies, o.latencies...)
	m.took += o.took
	if m.firstError == nil {
		m.firstError = o.firstError
	}
}

func (m *measurement) toResult() benchResult {
	slices.Sort(m.latencies)
	at := func(share float64) float64 {
		if len(m.latencies) == 0 {
			return 0
		}
		return float64(m.latencies[int(share*float64(len(m.latencies)-1))]) / float64(time.Millisecond)
	}
	return benchResult{
		Rate:  float64(m.Requests) / max(m.took.Seconds(), 1e-9),
		P50Ms: at(0.50), P99Ms: at(0.99), Requests: m.Requests, Errors: m.Errors,
	}
}
