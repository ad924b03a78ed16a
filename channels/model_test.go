package channels_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"koine/channels"
	"koine/kg"
)

// model is what channels are meant to be: plain maps, no store, one call after the
// other. It speaks of channels by the number of the call that made them, "direct"
// ones by their agents, and answers with a text or a code.
type model struct {
	agents   []string
	channels []*modelChannel // in the order in which they were made
	direct   map[string]*modelChannel
}

type modelChannel struct {
	name       string
	visibility channels.Visibility
	kind       channels.Kind
	members    map[string]channels.Role
	metadata   map[string]string
	version    int64
	gone       bool
	messages   []modelMessage
	keys       map[string]int // of author and key: which message
}

type modelMessage struct {
	author, text, key string
	refs              []string
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

// between is the direct channel of two agents, whether or not it was made.
func (m *model) between(a, b string) *modelChannel {
	c := m.direct[pair(a, b)]
	if c == nil {
		c = &modelChannel{
			visibility: channels.Private, kind: channels.Direct, version: 1, keys: map[string]int{},
			members: map[string]channels.Role{a: channels.Ordinary, b: channels.Ordinary},
		}
		m.direct[pair(a, b)] = c
	}
	return c
}

func (c *modelChannel) reads(by string) bool {
	return c != nil && !c.gone && (c.visibility == channels.Public || c.members[by] != "")
}

func (c *modelChannel) owners() (n int) {
	for _, role := range c.members {
		if role == channels.Owner {
			n++
		}
	}
	return n
}

// text is what a channel looks like.
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
	return fmt.Sprintf("%q %s %s %v %s version %d, %d messages", c.name, c.visibility, c.kind, members, metadata, c.version, len(c.messages))
}

func (c *modelChannel) message(i int) string {
	m := c.messages[i]
	return fmt.Sprintf("%d %s %q %q %v", i+1, m.author, m.text, m.key, m.refs)
}

func (m *model) create(by, name string, visibility channels.Visibility, members map[string]channels.Role) string {
	c := &modelChannel{name: name, visibility: visibility, kind: channels.Ordered, members: maps.Clone(members), metadata: map[string]string{}, version: 1, keys: map[string]int{}}
	c.members[by] = channels.Owner
	m.channels = append(m.channels, c)
	return c.text()
}

func (m *model) get(by string, c *modelChannel) string {
	if !c.reads(by) {
		return string(kg.CodeChannelNotFound)
	}
	return c.text()
}

func (m *model) list(by string, visibility channels.Visibility, member string) (out []string) {
	for _, c := range m.channels {
		if c.reads(by) && (visibility == "" || c.visibility == visibility) && (member == "" || c.members[member] != "") {
			out = append(out, c.text())
		}
	}
	return out
}

// may is the code for who may not change the channel, "" for who may.
func (c *modelChannel) may(by string, roles ...channels.Role) string {
	switch {
	case !c.reads(by):
		return string(kg.CodeChannelNotFound)
	case c.kind == channels.Direct || !slices.Contains(roles, c.members[by]):
		return string(kg.CodePermissionDenied)
	}
	return ""
}

func (m *model) update(by string, c *modelChannel, expected int64, name *string, set map[string]string, remove []string) string {
	if code := c.may(by, channels.Owner, channels.Moderator); code != "" {
		return code
	}
	if c.version != expected {
		return string(kg.CodeVersionConflict)
	}
	if name != nil {
		c.name = *name
	}
	maps.Copy(c.metadata, set)
	for _, key := range remove {
		delete(c.metadata, key)
	}
	c.version++
	return c.text()
}

func (m *model) delete(by string, c *modelChannel) string {
	if code := c.may(by, channels.Owner); code != "" {
		return code
	}
	c.gone = true
	return "deleted"
}

func (m *model) addMember(by string, c *modelChannel, agent string, role channels.Role) string {
	if code := c.may(by, channels.Owner); code != "" {
		return code
	}
	if c.members[agent] == channels.Owner && role != channels.Owner && c.owners() == 1 {
		return string(kg.CodeLastOwner)
	}
	c.members[agent] = role
	c.version++
	return c.text()
}

func (m *model) removeMember(by string, c *modelChannel, agent string) string {
	roles := []channels.Role{channels.Owner}
	if by == agent {
		roles = []channels.Role{channels.Owner, channels.Moderator, channels.Ordinary, channels.Observer}
	}
	if code := c.may(by, roles...); code != "" {
		return code
	}
	switch {
	case c.members[agent] == "":
		return string(kg.CodeNotFound)
	case c.members[agent] == channels.Owner && c.owners() == 1:
		return string(kg.CodeLastOwner)
	}
	delete(c.members, agent)
	c.version++
	return c.text()
}

func (m *model) publish(by string, c *modelChannel, said modelMessage) string {
	switch {
	case !c.reads(by):
		return string(kg.CodeChannelNotFound)
	case c.members[by] == "" || c.members[by] == channels.Observer:
		return string(kg.CodePermissionDenied)
	}
	said.author = by
	if said.key != "" {
		if i, used := c.keys[by+" "+said.key]; used {
			if first := c.messages[i]; first.text != said.text || !slices.Equal(first.refs, said.refs) {
				return string(kg.CodeIdempotencyConflict)
			}
			return "again " + c.message(i)
		}
		c.keys[by+" "+said.key] = len(c.messages)
	}
	c.messages = append(c.messages, said)
	return c.message(len(c.messages) - 1)
}

func (m *model) history(by string, c *modelChannel, since, before int64, author string, descending bool) (out []string) {
	if !c.reads(by) {
		return []string{string(kg.CodeChannelNotFound)}
	}
	for i, said := range c.messages {
		n := int64(i + 1)
		if n > since && (before == 0 || n < before) && (author == "" || said.author == author) {
			out = append(out, c.message(i))
		}
	}
	if descending {
		slices.Reverse(out)
	}
	return out
}

// stream is what a stream from behind since on tells of what was published.
func (m *model) stream(by string, c *modelChannel, since int64) (out []string) {
	if !c.reads(by) {
		return []string{string(kg.CodeChannelNotFound)}
	}
	if since < 0 || since > int64(len(c.messages)) {
		return []string{string(kg.CodeInvalid)}
	}
	return m.history(by, c, since, 0, "", false)
}
