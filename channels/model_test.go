package channels_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// model is the specification of channels: plain maps, no store, one call after the other.
// It refers to channels by the number of the call that made them, "direct" ones by their
// agents, and answers with a text or a code.
type model struct {
	agents   []string
	channels []*modelChannel // in the order in which they were made
	direct   map[string]*modelChannel
}

type modelChannel struct {
	name       string
	visibility channel.Visibility
	kind       channel.Kind
	creator    string
	members    map[string]channel.Role
	invited    map[string]bool
	banned     map[string]bool
	muted      map[string]bool
	closed     bool
	keep       int // how many messages keep their content, 0 for all
	metadata   map[string]string
	version    int64
	gone       bool
	messages   []modelMessage
	ids        []message.ID   // of the messages
	keys       map[string]int // of author and key: which message
}

type modelMessage struct {
	author, text, key string
	refs              []string
	retracts          int // the number of the message that it takes back
	retractedBy       int // and the other way round
}

func newModel(agents []string) *model {
	return &model{agents: agents, direct: map[string]*modelChannel{}}
}

// pair names the direct channel of two agents.
func pair(a, b string) string {
	if b < a {
		a, b = b, a
	}
	return a + "+" + b
}

// between is the direct channel of two agents, whether or not it exists.
func (m *model) between(a, b string) *modelChannel {
	c := m.direct[pair(a, b)]
	if c == nil {
		c = newModelChannel(modelChannel{
			visibility: channel.Private, kind: channel.Direct,
			members: map[string]channel.Role{a: channel.Ordinary, b: channel.Ordinary},
		})
		m.direct[pair(a, b)] = c
	}
	return c
}

// modelRights are the default rights in a channel of a kind, private and public.
var modelRights = map[channel.Kind][2]channel.Rights{
	channel.Ordered: {
		{Discover: channel.Members, Join: channel.Owners, Read: channel.Members, Post: channel.Members},
		{Discover: channel.Everybody, Join: channel.Owners, Read: channel.Everybody, Post: channel.Members},
	},
	channel.Room: {
		{Discover: channel.Members, Join: channel.Moderators, Read: channel.Members, Post: channel.Members},
		{Discover: channel.Everybody, Join: channel.Everybody, Read: channel.Members, Post: channel.Members},
	},
	channel.Broadcast: {
		{Discover: channel.Members, Join: channel.Owners, Read: channel.Members, Post: channel.Owners},
		{Discover: channel.Everybody, Join: channel.Everybody, Read: channel.Everybody, Post: channel.Owners},
	},
}

func (c *modelChannel) rights() channel.Rights {
	if c.kind == channel.Direct {
		return modelRights[channel.Ordered][0]
	}
	if c.visibility == channel.Public {
		return modelRights[c.kind][1]
	}
	return modelRights[c.kind][0]
}

// given reports whether an agent belongs to the group. Observers see what members see.
func (c *modelChannel) given(by string, who channel.Grantee, seeing bool) bool {
	switch role := c.members[by]; who {
	case channel.Everybody:
		return true
	case channel.Members:
		return role != "" && (role != channel.Observer || seeing)
	case channel.Moderators:
		return role == channel.Owner || role == channel.Moderator
	default:
		return role == channel.Owner
	}
}

func (c *modelChannel) there(by string) bool { return c != nil && !c.gone && !c.banned[by] }

func (c *modelChannel) reads(by string) bool {
	return c.there(by) && c.given(by, c.rights().Read, true)
}

func (c *modelChannel) finds(by string) bool {
	return c.there(by) && (c.reads(by) || c.given(by, c.rights().Discover, true) || c.invited[by])
}

// mayRead returns the code for callers that may not read the channel, "" for others.
func (c *modelChannel) mayRead(by string) string {
	switch {
	case !c.finds(by):
		return string(kg.CodeChannelNotFound)
	case !c.reads(by):
		return string(kg.CodePermissionDenied)
	}
	return ""
}

// mayPost is the same for publishing.
func (c *modelChannel) mayPost(by string) string {
	switch {
	case !c.finds(by):
		return string(kg.CodeChannelNotFound)
	case c.muted[by] || !c.given(by, c.rights().Post, false):
		return string(kg.CodePermissionDenied)
	}
	return ""
}

// first is the number of the oldest message that keeps its content.
func (c *modelChannel) first() int {
	if c.keep == 0 {
		return 1
	}
	return max(1, len(c.messages)-c.keep+1)
}

func (c *modelChannel) owners() (n int) {
	for _, role := range c.members {
		if role == channel.Owner {
			n++
		}
	}
	return n
}

// text is the visible state of a channel.
func (c *modelChannel) text() string {
	var members []string
	for agent, role := range c.members {
		members = append(members, fmt.Sprintf("%s=%s", agent, role))
	}
	slices.Sort(members)
	metadata, _ := json.Marshal(c.metadata)
	if len(c.metadata) == 0 {
		metadata = nil
	}
	status := channel.Open
	if c.closed {
		status = channel.Closed
	}
	return fmt.Sprintf("%q %s %s %s %v %s version %d, %d messages, keeps %d", c.name, status, c.visibility, c.kind, members, metadata, c.version, len(c.messages), c.keep)
}

// textFor is its visible state for an agent that may only discover it.
func (c *modelChannel) textFor(by string) string {
	if c.reads(by) {
		return c.text()
	}
	outline := *c
	outline.members, outline.metadata, outline.messages = nil, nil, nil
	return outline.text()
}

func (c *modelChannel) message(i int) string {
	m := c.messages[i]
	if m.retractedBy != 0 || i+1 < c.first() {
		return fmt.Sprintf("%d %s withheld", i+1, m.author)
	}
	return fmt.Sprintf("%d %s %q %q %v", i+1, m.author, m.text, m.key, m.refs)
}

func newModelChannel(c modelChannel) *modelChannel {
	c.version, c.metadata, c.keys = 1, map[string]string{}, map[string]int{}
	c.invited, c.banned, c.muted = map[string]bool{}, map[string]bool{}, map[string]bool{}
	return &c
}

func (m *model) create(by string, made modelChannel) string {
	c := newModelChannel(made)
	c.members, c.creator = maps.Clone(c.members), by
	c.members[by] = channel.Owner
	m.channels = append(m.channels, c)
	return c.text()
}

func (m *model) get(by string, c *modelChannel) string {
	if !c.finds(by) {
		return string(kg.CodeChannelNotFound)
	}
	return c.textFor(by)
}

func (m *model) list(by string, visibility channel.Visibility, member string) (out []string) {
	for _, c := range m.channels {
		if c.finds(by) && (visibility == "" || c.visibility == visibility) && (member == "" || c.reads(by) && c.members[member] != "") {
			out = append(out, c.textFor(by))
		}
	}
	return out
}

// alters returns the code for callers that may not even try to change the channel.
func (c *modelChannel) alters(by string) string {
	switch {
	case !c.finds(by):
		return string(kg.CodeChannelNotFound)
	case c.kind == channel.Direct:
		return string(kg.CodePermissionDenied)
	}
	return ""
}

// may returns the code for callers that may not change the channel, "" for others.
func (c *modelChannel) may(by string, roles ...channel.Role) string {
	if code := c.alters(by); code != "" {
		return code
	}
	if !c.reads(by) || !slices.Contains(roles, c.members[by]) {
		return string(kg.CodePermissionDenied)
	}
	return ""
}

// mayBar is the same for bans and mutes.
func (c *modelChannel) mayBar(by, other string) string {
	if code := c.may(by, channel.Owner, channel.Moderator); code != "" {
		return code
	}
	ranks := []channel.Role{channel.Owner, channel.Moderator, channel.Ordinary, channel.Observer, ""}
	if slices.Index(ranks, c.members[other]) <= slices.Index(ranks, c.members[by]) {
		return string(kg.CodePermissionDenied)
	}
	return ""
}

const isDone = "done"

func (m *model) ban(by string, c *modelChannel, other string, stands bool) string {
	if code := c.mayBar(by, other); code != "" {
		return code
	}
	if c.banned[other] = stands; stands {
		c.invited[other] = false
	}
	return isDone
}

func (m *model) mute(by string, c *modelChannel, other string, stands bool) string {
	if code := c.mayBar(by, other); code != "" {
		return code
	}
	c.muted[other] = stands
	return isDone
}

// mayInvite returns the code for callers that may not admit agents.
func (c *modelChannel) mayInvite(by string) string {
	if code := c.alters(by); code != "" {
		return code
	}
	who := c.rights().Join
	if who == channel.Everybody {
		who = channel.Members
	}
	if !c.given(by, who, false) {
		return string(kg.CodePermissionDenied)
	}
	return ""
}

func (m *model) invite(by string, c *modelChannel, other string) string {
	code := c.mayInvite(by)
	switch {
	case code != "":
		return code
	case c.members[other] != "" || c.invited[other]:
		return isDone
	case c.banned[other]:
		return string(kg.CodePermissionDenied)
	}
	c.invited[other] = true
	return isDone
}

// uninvite is to withdraw an invitation, or to decline one's own.
func (m *model) uninvite(by string, c *modelChannel, other string) string {
	code := c.alters(by)
	if by != other {
		code = c.mayInvite(by)
	}
	switch {
	case code != "":
		return code
	case !c.invited[other]:
		return string(kg.CodeNotFound)
	}
	c.invited[other] = false
	return isDone
}

// enter is to accept an invitation, or to join with or without one.
func (m *model) enter(by string, c *modelChannel, role channel.Role, joins bool) string {
	if code := c.alters(by); code != "" {
		return code
	}
	switch asked := c.members[by] != "" || c.invited[by]; {
	case joins && !asked && c.rights().Join != channel.Everybody:
		return string(kg.CodePermissionDenied)
	case !joins && !asked:
		return string(kg.CodeNotFound)
	case c.members[by] == "":
		c.members[by], c.invited[by] = role, false
		c.version++
	}
	return c.textFor(by)
}

func (m *model) close(by string, c *modelChannel) string {
	if code := c.alters(by); code != "" {
		return code
	}
	if !c.reads(by) || c.creator != by && c.members[by] != channel.Owner {
		return string(kg.CodePermissionDenied)
	}
	if c.closed {
		return string(kg.CodeChannelClosed)
	}
	c.closed = true
	c.version++
	return c.text()
}

// retract takes the message with a number back, 0 for one that there is not.
func (m *model) retract(by string, c *modelChannel, number int) string {
	if code := c.mayRead(by); code != "" {
		return code
	}
	if number == 0 {
		return string(kg.CodeNotFound)
	}
	if c.muted[by] { // an author that may not publish any more retracts its own messages
		return string(kg.CodePermissionDenied)
	}
	target := &c.messages[number-1]
	switch {
	case c.closed:
		return string(kg.CodeChannelClosed)
	case target.author != by && c.members[by] != channel.Owner && c.members[by] != channel.Moderator:
		return string(kg.CodePermissionDenied)
	case target.retractedBy != 0:
		return "again " + c.message(target.retractedBy-1)
	case target.retracts != 0:
		return string(kg.CodeInvalid)
	}
	target.retractedBy = len(c.messages) + 1
	c.messages = append(c.messages, modelMessage{author: by, text: "A message was retracted.", retracts: number})
	return c.message(len(c.messages) - 1)
}

func (m *model) update(by string, c *modelChannel, expected int64, name *string, set map[string]string, remove []string) string {
	if code := c.may(by, channel.Owner, channel.Moderator); code != "" {
		return code
	}
	if c.version != expected {
		return string(kg.CodeVersionConflict)
	}
	before, was := maps.Clone(c.metadata), c.name
	if name != nil {
		c.name = *name
	}
	maps.Copy(c.metadata, set)
	for _, key := range remove {
		delete(c.metadata, key)
	}
	if c.name != was || !maps.Equal(c.metadata, before) {
		c.version++
	}
	return c.text()
}

func (m *model) delete(by string, c *modelChannel) string {
	if code := c.may(by, channel.Owner); code != "" {
		return code
	}
	c.gone = true
	return "deleted"
}

func (m *model) addMember(by string, c *modelChannel, agent string, role channel.Role) string {
	if code := c.may(by, channel.Owner); code != "" {
		return code
	}
	if c.members[agent] == channel.Owner && role != channel.Owner && c.owners() == 1 {
		return string(kg.CodeLastOwner)
	}
	if c.members[agent] == "" && c.banned[agent] {
		return string(kg.CodePermissionDenied)
	}
	if c.members[agent] != role || c.invited[agent] {
		c.version++
	}
	c.members[agent], c.invited[agent] = role, false
	return c.text()
}

func (m *model) removeMember(by string, c *modelChannel, agent string) string {
	code := c.alters(by)
	switch {
	case code != "":
	case by != agent:
		code = c.may(by, channel.Owner)
	case c.members[by] == "":
		code = string(kg.CodePermissionDenied)
	}
	switch {
	case code != "":
		return code
	case c.members[agent] == "":
		return string(kg.CodeNotFound)
	case c.members[agent] == channel.Owner && c.owners() == 1:
		return string(kg.CodeLastOwner)
	}
	delete(c.members, agent)
	c.version++
	return c.text()
}

func (m *model) publish(by string, c *modelChannel, said modelMessage) string {
	if code := c.mayPost(by); code != "" {
		return code
	}
	said.author = by
	if said.key != "" {
		if i, used := c.keys[by+" "+said.key]; used {
			gone := c.messages[i].retractedBy != 0 || i+1 < c.first() // and with it its former role
			if first := c.messages[i]; !gone && (first.text != said.text || !slices.Equal(first.refs, said.refs)) {
				return string(kg.CodeIdempotencyConflict)
			}
			return "again " + c.message(i)
		}
	}
	if c.closed {
		return string(kg.CodeChannelClosed)
	}
	if said.key != "" {
		c.keys[by+" "+said.key] = len(c.messages)
	}
	c.messages = append(c.messages, said)
	return c.message(len(c.messages) - 1)
}

func (m *model) history(by string, c *modelChannel, since, before int64, author string, descending bool) (out []string) {
	if code := c.mayRead(by); code != "" {
		return []string{code}
	}
	first := int64(c.first())
	if since > int64(len(c.messages)) {
		return []string{string(kg.CodeInvalid)}
	}
	if since >= 0 && since+1 < first {
		return []string{string(kg.CodePositionGone)}
	}
	for i, said := range c.messages {
		n := int64(i + 1)
		if n >= first && n > since && (before == 0 || n < before) && (author == "" || said.author == author) {
			out = append(out, c.message(i))
		}
	}
	if descending {
		slices.Reverse(out)
	}
	return out
}

// stream is the expected output of a stream from a sequence number on.
func (m *model) stream(by string, c *modelChannel, since int64) (out []string) {
	if code := c.mayRead(by); code != "" {
		return []string{code}
	}
	switch {
	case since < 0 || since > int64(len(c.messages)):
		return []string{string(kg.CodeInvalid)}
	case since+1 < int64(c.first()):
		return []string{string(kg.CodePositionGone)}
	}
	out = m.history(by, c, since, 0, "", false)
	if c.closed {
		out = append(out, string(kg.CodeChannelClosed))
	}
	return out
}
