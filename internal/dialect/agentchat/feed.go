package agentchat

import (
	"context"

	"koine/channels"
)

// feed delivers what happens in the rooms of an agent, as frames.
type feed struct {
	handler *Handler
	ctx     context.Context
	who     *requester
	source  *channels.Feed
}

// openFeed opens the feed of an agent from now on. It counts as one of its connections.
func (h *Handler) openFeed(ctx context.Context, who *requester) (*feed, error) {
	source, err := h.deps.Channels.StreamAll(ctx, who.onChannels(), nil)
	if err != nil {
		return nil, err
	}
	return &feed{h, ctx, who, source}, nil
}

func (f *feed) close() { f.source.Close() }

// run passes the frames on until one is refused or the feed ends.
func (f *feed) run(deliver func(*sentFrame) error) error {
	for d, err := range f.source.Messages() {
		if err == nil {
			err = deliver(&sentFrame{Type: frameMessage, Message: encodeMessage(d.Message)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
