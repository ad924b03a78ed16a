package channels

import "koine/kg"

// Tier bounds what one principal does, whatever channel it is in and however many
// agents it acts for. 0 is no bound.
type Tier struct {
	Name              string
	MessagesPerMinute int // in any minute
	Streams           int // open at once
	Channels          int // that an agent makes and enters; direct ones do not count
	MessageBytes      int // of parts, metadata and references
}

// The tiers that have a name.
var (
	Free      = Tier{Name: "free", MessagesPerMinute: 60, Streams: 2, Channels: 10, MessageBytes: 64 << 10}
	Standard  = Tier{Name: "standard", MessagesPerMinute: 600, Streams: 10, Channels: 100, MessageBytes: 64 << 10}
	Unlimited = Tier{Name: "unlimited"}
)

// Limits are bounds that a channel has of its own. 0 is no bound.
type Limits struct {
	MessagesPerMinute int // of each author
	Streams           int // open at once
	MessageBytes      int
}

// limits pairs the bounds with the properties that say them.
var limits = [...]struct {
	name     string
	property kg.Term
	of       func(*Limits) *int
}{
	{"messagesPerMinute", propPerMinute, func(l *Limits) *int { return &l.MessagesPerMinute }},
	{"streams", propStreams, func(l *Limits) *int { return &l.Streams }},
	{"messageBytes", propMessageBytes, func(l *Limits) *int { return &l.MessageBytes }},
}

// forProperty is the bound that a property of a channel's record says, nil for another
// property.
func (l *Limits) forProperty(property kg.Term) *int {
	for _, limit := range limits {
		if limit.property == property {
			return limit.of(l)
		}
	}
	return nil
}

func (l Limits) validate() error {
	for _, limit := range limits {
		switch n := *limit.of(&l); {
		case n < 0:
			return kg.Errorf(kg.CodeInvalid, "a bound is not negative").At("limits." + limit.name)
		case n > maxOf[limit.name]:
			return errTooMuch("limits."+limit.name, "a bound is at most %d", maxOf[limit.name])
		}
	}
	return nil
}

// maxOf is what a channel may say at most, by the name of the bound.
var maxOf = map[string]int{"messagesPerMinute": MaxPerMinute, "streams": 1 << 20, "messageBytes": MaxMessageBytes}

// MaxPerMinute bounds what a tier or channel says about messages in a minute: as
// many times are remembered.
const MaxPerMinute = 6000

// tierOf is the tier of a principal: of each bound, the widest that one of its roles
// has.
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

// TierOf is the tier of who asks.
func (s *Service) TierOf(by Caller) Tier { return s.options.tierOf(by.Principal) }

// widen is the wider of each bound.
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

// admitMessage refuses a message that is too large for its author or its channel, or one
// too many in a minute. It counts the message, whatever becomes of it.
func (s *Service) admitMessage(by Caller, m *Message) error {
	if by.Principal.Trusted() {
		return nil
	}
	tier, own := s.options.tierOf(by.Principal), Limits{}
	if e := s.table.get(m.Channel).asPrincipal(by.readerPrincipal(m.Author)).seenBy(by); e.canDiscover(m.Author) {
		own = e.Limits
	}
	size := m.size()
	for _, most := range [...]int{tier.MessageBytes, own.MessageBytes} {
		if most > 0 && size > most {
			e := errTooMuch("parts", "a message of %d bytes is larger than the %d that one may have here", size, most)
			e.Limit = "messageBytes"
			return e
		}
	}
	now := s.options.Clock()
	return s.rateWindows.reserveAll(now, rateLimit{string(by.Principal.ID), tier.MessagesPerMinute}, rateLimit{string(m.Author) + "\n" + string(m.Channel), own.MessagesPerMinute})
}

// checkChannelQuota refuses an agent that is in as many channels as its principal's tier
// has. It is asked inside of the commit.
func (s *Service) checkChannelQuota(tx *kg.Tx, agent kg.AgentID) error {
	most := s.options.tierOf(tx.Meta().Principal).Channels
	if most == 0 {
		return nil
	}
	n := 0
	for _, id := range s.table.channelsOfAgent(agent) {
		if e := s.table.get(id); e.roles[agent] != "" && e.Kind != Direct {
			n++
		}
	}
	if n >= most {
		e := errTooMuch("", "%s is in %d channels, as many as it may be", agent, n)
		e.Limit = "channels"
		return e
	}
	return nil
}

// openStream counts a stream, and refuses one too many. release is called at its
// end, once.
func (s *Service) openStream(by Caller, id ChannelID) (release func(), err error) {
	if by.Principal.Trusted() {
		return func() {}, nil
	}
	own := 0
	if e := s.table.get(id); e != nil {
		own = e.Limits.Streams
	}
	return s.streams.acquireAll(rateLimit{string(by.Principal.ID), s.options.tierOf(by.Principal).Streams}, rateLimit{"\n" + string(id), own})
}
