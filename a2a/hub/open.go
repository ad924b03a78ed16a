package hub

import (
	"context"
	"sync"

	"koine/kg"
)

// openMailboxes tracks the open mailboxes of each agent, so that they can be ended.
type openMailboxes struct {
	mu  sync.Mutex
	all map[kg.AgentID]map[*context.CancelCauseFunc]struct{}
}

// addMailbox returns a context for a mailbox of the agent; endAll cancels it. The caller must
// call leave at the end.
func (o *openMailboxes) addMailbox(ctx context.Context, agent kg.AgentID) (_ context.Context, leave func()) {
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

// endAll ends the mailboxes of an agent with a reason.
func (o *openMailboxes) endAll(agent kg.AgentID, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for cancel := range o.all[agent] {
		(*cancel)(reason)
	}
}
