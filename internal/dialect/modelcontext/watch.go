package modelcontext

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Watcher follows GraphQL subscriptions as one caller: a yield without an error stands for
// something that changed. It ends with an error, or with ctx.
type Watcher interface {
	Watch(ctx context.Context, subscription string, variables map[string]any) iter.Seq[error]
}

// The bounds of the subscriptions to resources.
const (
	// MaxSubscriptions bounds the resources that a session or a stream watches.
	MaxSubscriptions = 64
	// UpdateInterval is the shortest time between two notifications about a resource.
	UpdateInterval = 200 * time.Millisecond
)

// watching watches the resources that the client of a server has subscribed to.
type watching struct {
	// exists reports whether there is a resource that a client may subscribe to.
	exists  func(ctx context.Context, uri string) (bool, error)
	life    context.Context // of the watchers; it carries the caller
	watcher Watcher
	log     *slog.Logger
	server  *mcp.Server

	mu      sync.Mutex
	running map[string]*watched // by URI
}

type watched struct {
	subscribers int
	cancel      context.CancelFunc
}

// errNoSession refuses subscriptions of clients that nobody could notify.
var errNoSession = errors.New("a subscription needs a session: send initialize first, or subscriptions/listen with the header Mcp-Method")

// watchResource begins to watch a resource. A hidden one is refused like one that does not exist.
func (w *watching) watchResource(ctx context.Context, r *mcp.SubscribeRequest) error {
	if w == nil {
		return errNoSession
	}
	uri := r.Params.URI
	switch ok, err := w.exists(ctx, uri); {
	case err != nil:
		return err
	case !ok:
		return mcp.ResourceNotFoundError(uri)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[string]*watched{}
	}
	if now := w.running[uri]; now != nil {
		now.subscribers++
		return nil
	}
	if len(w.running) == MaxSubscriptions {
		return fmt.Errorf("there are %d subscriptions, the most of a session; end one first", MaxSubscriptions)
	}
	life, cancel := context.WithCancel(w.life)
	w.running[uri] = &watched{1, cancel}
	if query, variables := subscriptionOf(uri); query != "" {
		go w.followResource(life, uri, query, variables)
	}
	return nil
}

// leaveResource ends the watching of a resource when its last subscriber leaves.
func (w *watching) leaveResource(_ context.Context, r *mcp.UnsubscribeRequest) error {
	if w == nil {
		return errNoSession
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.running[r.Params.URI]
	if now == nil {
		return nil
	}
	if now.subscribers--; now.subscribers == 0 {
		now.cancel()
		delete(w.running, r.Params.URI)
	}
	return nil
}

// subscriptionOf returns the subscription that follows a resource, "" for one that stays.
func subscriptionOf(uri string) (query string, variables map[string]any) {
	if iri, ok := nameIn(uri, entityURI); ok {
		return `subscription($iri: IRI!) { entityChanged(iri: $iri, depth: 1) { __typename } }`, map[string]any{"iri": iri}
	}
	if id, ok := nameIn(uri, channelURI); ok {
		return `subscription($id: ID!) { messagePublished(where: {channelId: $id}) { __typename } }`, map[string]any{"id": id}
	}
	switch uri {
	case vocabularyURI:
		return `subscription { statementChanged { __typename } }`, nil
	case memoryURI:
		return `subscription($of: String) { statementChanged(where: {subject: {startsWith: $of}}) { __typename } }`, map[string]any{"of": memoryEntity}
	}
	return "", nil
}

// followResource notifies the client of changes, at most one in UpdateInterval, until life ends.
func (w *watching) followResource(life context.Context, uri, query string, variables map[string]any) {
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		for err := range w.watcher.Watch(life, query, variables) {
			if err != nil && life.Err() == nil {
				w.log.Debug("a resource is watched no longer", "uri", uri, "err", err)
				return
			}
			select {
			case changed <- struct{}{}:
			default: // a notification is due
			}
		}
	}()
	for range changed {
		if life.Err() != nil {
			continue // until the watcher has ended
		}
		_ = w.server.ResourceUpdated(life, &mcp.ResourceUpdatedNotificationParams{URI: uri}) // the SDK logs it
		pause := time.NewTimer(UpdateInterval)
		select {
		case <-pause.C:
		case <-life.Done():
			pause.Stop()
		}
	}
}
