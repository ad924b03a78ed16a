package hub

import (
	"context"
	"sync"

	"koine/kg"
)

// openMailboxes are the mailboxes that are open, so that those of an agent can be ended.
type openMailboxes struct {
	mu  sync.Mutex
	all map[kg.AgentID]map[*context.CancelCauseFunc]struct{}
}

// add gives a context for a mailbox of the agent, which ends with it. Who has it calls
// leave in the end.
func (o *openMailboxes) add(ctx context.Context, agent kg.AgentID) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[kg.AgentID]map[*context.CancelCauseFunc]struct{}{}
	}
	if o.all[agent] == nil {
		o.all[agent] = map[*context.CancelCauseFunc]struct{}{}
	}
	o.all[agent][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		o.mu.Lock()
		defer o.mu.Unlock()
		if delete(o.all[agent], &cancel); len(o.all[agent]) == 0 {
			delete(o.all, agent)
		}
	}
}

// end ends those of an agent, and says why.
func (o *openMailboxes) end(agent kg.AgentID, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for cancel := range o.all[agent] {
		(*cancel)(reason)
	}
}
