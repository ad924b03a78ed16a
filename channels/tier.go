package channels

import (
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/message"
	"koine/kg"
)

// Tier limits one principal across all channels and all agents that it acts for. 0
// means no limit.
type Tier struct {
	Name              string
	MessagesPerMinute int // in any period of one minute
	Streams           int // open at the same time
	Channels          int // that an agent creates or joins, without direct channels
	MessageBytes      int // of parts, metadata and references
}

// Named tiers.
var (
	Free      = Tier{Name: "free", MessagesPerMinute: 60, Streams: 2, Channels: 10, MessageBytes: 64 << 10}
	Standard  = Tier{Name: "standard", MessagesPerMinute: 600, Streams: 10, Channels: 100, MessageBytes: 64 << 10}
	Unlimited = Tier{Name: "unlimited"}
)

// tierOf returns the tier of a principal: each limit is the most permissive one of its
// roles.
func (o *Options) tierOf(p kg.Principal) Tier {
	if p.Trusted() {
		return Unlimited
	}
	var widest *Tier
	for _, role := range p.Roles {
		t, ok := o.Tiers[role]
		switch {
		case !ok:
		case widest == nil:
			widest = &t
		default:
			*widest = widest.widen(t)
		}
	}
	if widest == nil {
		return o.Tier
	}
	return *widest
}

// TierOf returns the tier of the caller.
func (s *Service) TierOf(by Caller) Tier { return s.options.tierOf(by.Principal) }

// widen returns the more permissive value of each limit.
func (t Tier) widen(other Tier) Tier {
	wider := func(a, b int) int {
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	return Tier{
		Name: t.Name + " or " + other.Name, MessagesPerMinute: wider(t.MessagesPerMinute, other.MessagesPerMinute),
		Streams: wider(t.Streams, other.Streams), Channels: wider(t.Channels, other.Channels), MessageBytes: wider(t.MessageBytes, other.MessageBytes),
	}
}

// admitMessage returns an error if a message is too large for its author or channel, or
// exceeds a rate limit. It counts the message even if it is rejected later.
func (s *Service) admitMessage(by Caller, m *message.Message) error {
	if by.Principal.Trusted() {
		return nil
	}
	tier, own := s.options.tierOf(by.Principal), channel.Limits{}
	if e := s.table.Get(m.Channel).AsPrincipal(by.ReaderPrincipal(m.Author)).SeenBy(by); e.CanDiscover(m.Author) {
		own = e.Limits
	}
	size := m.Size()
	for _, most := range [...]int{tier.MessageBytes, own.MessageBytes} {
		if most > 0 && size > most {
			e := check.TooMuch("parts", "message has %d bytes; the limit is %d", size, most)
			e.Limit = "messageBytes"
			return e
		}
	}
	now := s.options.Clock()
	return s.rateWindows.reserveAll(now, rateLimit{string(by.Principal.ID), tier.MessagesPerMinute}, rateLimit{string(m.Author) + "\n" + string(m.Channel), own.MessagesPerMinute})
}

// checkChannelQuota returns an error if the agent is in as many channels as its
// principal's tier allows. It is called within the commit.
func (s *Service) checkChannelQuota(tx *kg.Tx, agent kg.AgentID) error {
	most := s.options.tierOf(tx.Meta().Principal).Channels
	if most == 0 {
		return nil
	}
	n := 0
	for _, id := range s.table.ChannelsOfAgent(agent) {
		if e := s.table.Get(id); e.RoleOf(agent) != "" && e.Kind != channel.Direct {
			n++
		}
	}
	if n >= most {
		e := check.TooMuch("", "%s is in %d channels, which is the limit", agent, n)
		e.Limit = "channels"
		return e
	}
	return nil
}

// openStream counts an open stream, or fails if there are too many. The caller calls
// release when the stream ends.
func (s *Service) openStream(by Caller, id channel.ID) (release func(), err error) {
	if by.Principal.Trusted() {
		return func() {}, nil
	}
	own := 0
	if e := s.table.Get(id); e != nil {
		own = e.Limits.Streams
	}
	return s.streams.acquireAll(rateLimit{string(by.Principal.ID), s.options.tierOf(by.Principal).Streams}, rateLimit{"\n" + string(id), own})
}

// rateLimit is a limit for a key; 0 means no limit.
type rateLimit struct {
	key   string
	limit int
}

// rateWindows counts events per key in a sliding window of one minute. It is kept in
// memory only.
type rateWindows struct {
	most int // maximum number of keys

	mu   sync.Mutex
	last map[string][]int64 // in milliseconds since the epoch, oldest first
}

// reserveAll counts one event for all limits, or fails without counting it for any.
func (r *rateWindows) reserveAll(now time.Time, paces ...rateLimit) error {
	at := now.UnixMilli()
	begin := at - time.Minute.Milliseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paces {
		if p.limit == 0 {
			continue
		}
		times, known := r.last[p.key]
		for len(times) > 0 && times[0] <= begin {
			times = times[1:]
		}
		if known {
			r.last[p.key] = times
		}
		if most := min(p.limit, channel.MaxPerMinute); len(times) >= most {
			return errTooFast(time.Duration(times[len(times)-most]-begin) * time.Millisecond)
		}
		if !known && len(r.last) >= r.most && !r.evictIdle(begin) {
			return errTooFast(time.Minute)
		}
	}
	for _, p := range paces {
		if p.limit > 0 {
			r.last[p.key] = append(r.last[p.key], at)
		}
	}
	return nil
}

// evictIdle removes keys without events in the window. It reports whether there is room
// for another key.
func (r *rateWindows) evictIdle(begin int64) bool {
	for of, times := range r.last {
		if len(times) == 0 || times[len(times)-1] <= begin {
			delete(r.last, of)
		}
	}
	return len(r.last) < r.most
}

func errTooFast(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "message rate limit exceeded: retry later")
	e.RetryAfter, e.Limit = wait, "messagesPerMinute"
	return e
}

// openCounts counts open streams per key.
type openCounts struct {
	mu   sync.Mutex
	open map[string]int
}

// acquireAll counts one more stream for all limits, or fails without counting it for
// any.
func (c *openCounts) acquireAll(paces ...rateLimit) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paces {
		if p.limit > 0 && c.open[p.key] >= p.limit {
			e := check.TooMuch("", "%d streams are open, which is the limit", p.limit)
			e.Limit = "streams"
			return nil, e
		}
	}
	for _, p := range paces {
		c.open[p.key]++
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range paces {
			if c.open[p.key]--; c.open[p.key] == 0 {
				delete(c.open, p.key)
			}
		}
	}), nil
}
