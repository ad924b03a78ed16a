package receipts

import (
	"context"
	"time"

	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/systemgraph"
	"koine/kg"
)

// readTimes finds the times at which agents read messages. A marker is replaced when its
// agent reads on, so the acknowledgement that first covered a message is looked up in the
// past of the marker.
type readTimes struct {
	ctx   context.Context
	store *kg.Store
	past  map[kg.Revision]*kg.Snapshot // shared by the agents: the first probes are the same
}

func (s *Receipts) newReadTimes(ctx context.Context) *readTimes {
	return &readTimes{ctx, s.journal.Store, map[kg.Revision]*kg.Snapshot{}}
}

func (r *readTimes) close() {
	for _, snapshot := range r.past {
		snapshot.Close()
	}
}

// timeOf returns the commit time of the acknowledgement by which the agent of the markers
// read a message, or the zero time if it did not, or if the history no longer tells.
func (r *readTimes) timeOf(k *markers, m *message.Message) (at time.Time, err error) {
	st, found, err := systemgraph.First(k.match, kg.Pattern{Subject: m.ID.Entity(), Predicate: vocab.ReadBy, Object: kg.IRI(string(k.agent)), Graph: k.graph})
	if err != nil {
		return at, err
	}
	if found {
		at = st.Assertions[0].Time
	}
	if m.Sequence > k.read {
		return at, nil
	}
	// A receipt may have been derived later from a marker, whose time then counts.
	covered, err := r.coveredAt(k, m)
	if err == nil && (at.IsZero() || !covered.IsZero() && covered.Before(at)) {
		at = covered
	}
	return at, err
}

// coveredAt returns the time of the commit that first moved the marker to the message or
// behind it; the zero time if the history no longer tells.
func (r *readTimes) coveredAt(k *markers, m *message.Message) (at time.Time, err error) {
	at = k.readTime
	// The marker covers the message at hi. It did not at lo, if that is known, as it is for
	// the commit that published the message.
	known := true
	for lo, hi := m.Revision, k.readRevision; lo+1 < hi; {
		// Most messages were read by the last step of the marker.
		mid := hi - 1
		if hi < k.readRevision || !known {
			mid = lo + (hi-lo)/2
		}
		then, err := r.markerAt(k, mid)
		switch {
		case kg.CodeOf(err) == kg.CodeRevisionGone:
			lo, known = mid, false
		case err != nil:
			return at, err
		case then.read < m.Sequence:
			lo, known = mid, true
		default:
			hi, at = then.readRevision, then.readTime
		}
	}
	if !known {
		return time.Time{}, nil
	}
	return at, nil
}

// markerAt returns the markers of the same agent as of a revision.
func (r *readTimes) markerAt(k *markers, at kg.Revision) (*markers, error) {
	snapshot := r.past[at]
	if snapshot == nil {
		var err error
		if snapshot, err = r.store.View(r.ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, At: at}); err != nil {
			return nil, err
		}
		r.past[at] = snapshot
	}
	then := &markers{match: snapshot.Match, graph: k.graph, agent: k.agent}
	return then, then.load()
}
