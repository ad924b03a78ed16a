package agentchat

import (
	"context"
	"fmt"

	"koine/channels/channel"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/rest"
	"koine/kg"
)

// authenticate authenticates the client with its first frame.
func (s *socket) authenticate(who *requester, f *received) error {
	if who != nil {
		return kg.Errorf(kg.CodeInvalid, "the socket is authenticated already").At("type")
	}
	opened := caller.From(s.conn.Context())
	err := s.checkResume(f.Resume)
	if err != nil {
		return err
	}
	by, token := opened, f.Token
	if f.Type == frameJoin {
		s.guest, token = true, f.Key
	}
	if token == "" {
		err = errNoAuthFrame()
	} else {
		by, err = s.handler.connect(s.conn.Context(), s.conn.End, opened, token)
	}
	if err == nil {
		who, err = requesterOf(by)
	}
	if err == nil {
		if admitErr := s.conn.Admit(who.Caller); admitErr != nil {
			err = rest.StreamError(admitErr)
		}
	}
	var joined *sentFrame
	if err == nil && s.guest {
		joined, err = s.joinAsGuest(who, f)
	}
	if err == nil {
		err = s.begin(who, f.RequestID, f.Resume, joined)
	}
	if err != nil {
		s.endWith(opened, err)
	}
	return nil
}

// joinAsGuest joins the room of an invitation and returns the answer.
func (s *socket) joinAsGuest(who *requester, f *received) (*sentFrame, error) {
	id := f.RoomID
	if id == "" {
		id = f.Room
	}
	joined, err := s.handler.join(caller.With(s.conn.Context(), who.Caller), who, channel.ID(id))
	if err != nil {
		return nil, err
	}
	return &sentFrame{Type: frameJoined, AgentID: agents.ShortID(who.agent), Room: joined, Members: &joined.Members}, nil
}

func (s *socket) checkResume(resume map[string]int64) error {
	if len(resume) > MaxResumedRooms {
		return kg.Errorf(kg.CodeLimitExceeded, "resume has %d rooms; the limit is %d", len(resume), MaxResumedRooms).At("resume")
	}
	for id, after := range resume {
		if after < 0 {
			return kg.Errorf(kg.CodeInvalid, "must be a sequence").At(fmt.Sprintf("resume.%.60s", id))
		}
	}
	return nil
}

// begin opens the feed of an authenticated client, answers auth_ok, and starts to deliver.
// Messages after the sequences of resume come first.
// hello is the answer, nil for auth_ok.
func (s *socket) begin(who *requester, requestID rawID, resume map[string]int64, hello *sentFrame) (err error) {
	ctx := caller.With(s.conn.Context(), who.Caller)
	var feed *feed
	// It reads rooms, which takes a large stack: that of the caller is kept as long as the
	// socket is open.
	opened := make(chan struct{})
	s.conn.Go(func() error {
		defer close(opened)
		feed, err = s.open(ctx, who, requestID, hello)
		return nil
	})
	<-opened
	if err != nil {
		return err
	}
	if feed == nil { // it panicked
		return context.Cause(s.conn.Context())
	}
	if s.guest {
		s.conn.Go(s.pingGuest)
	}
	s.conn.Go(func() error {
		defer feed.close()
		for id, after := range resume {
			if err := s.replay(ctx, who, channel.ID(id), after); err != nil {
				return err
			}
		}
		return feed.run(s.deliver)
	})
	return nil
}

// open opens the feed of an authenticated client, and answers.
func (s *socket) open(ctx context.Context, who *requester, requestID rawID, hello *sentFrame) (*feed, error) {
	feed, err := s.handler.openFeed(ctx, who, s.guest)
	if err != nil {
		return nil, err
	}
	if hello == nil {
		if hello, err = s.handler.hello(ctx, who); err != nil {
			feed.close()
			return nil, err
		}
	}
	hello.RequestID = requestID
	s.mu.Lock()
	s.who = who
	s.mu.Unlock()
	if err := s.send(hello); err != nil {
		feed.close()
		return nil, err
	}
	return feed, nil
}

// hello returns the answer to an authentication.
func (h *Handler) hello(ctx context.Context, who *requester) (*sentFrame, error) {
	record, err := h.deps.Agents.Get(ctx, who.agent)
	if err != nil && kg.CodeOf(err) != kg.CodeAgentNotFound {
		return nil, err
	}
	joined := true
	page, _, err := h.findRooms(ctx, who, roomQuery{joined: &joined}, MaxPage, "")
	if err != nil {
		return nil, err
	}
	rooms := []*room{}
	for _, c := range page {
		one, err := h.encodeRoomFor(ctx, who, c)
		if err != nil {
			return nil, err
		}
		rooms = append(rooms, one)
	}
	return &sentFrame{Type: frameAuthOK, Agent: h.encodeAgent(who.agent, record), Rooms: &rooms, ServerTime: h.now()}, nil
}

func (h *Handler) now() string { return formatTime(h.options.Clock()) }
