package channel

import (
	"cmp"
	"encoding/json"
	"slices"

	"koine/channels/internal/vocab"
	"koine/kg"
)

// SettingChange is a change of one setting of a channel.
type SettingChange struct {
	// Name is the name of the setting: name, topic, metadata, maxMembers, expireAfter (in
	// milliseconds), keepMessages, audit, memberPolicy, one of the rights (discover, join,
	// read, post, manage) or of the limits (messagesPerMinute, streams, messageBytes), or
	// SettingOverseer.
	Name string
	// Old and New are the values before and after as JSON; nil if the setting was, or is
	// now, not set.
	Old, New json.RawMessage
}

// SettingOverseer is the name of the change by which an agent that reads the channel as an
// overseer, the new value, is on record.
const SettingOverseer = "overseer"

// settings maps the properties that an update can change to names.
var settings = map[kg.Term]string{
	vocab.Name: "name", vocab.Topic: "topic", vocab.Metadata: "metadata", vocab.MaxMembers: "maxMembers",
	vocab.ExpireAfter: "expireAfter", vocab.Keep: "keepMessages", vocab.Audit: "audit", vocab.Policy: "memberPolicy", vocab.Overseer: SettingOverseer,
	vocab.Discover: "discover", vocab.Join: "join", vocab.Read: "read", vocab.Post: "post", vocab.Manage: "manage",
	vocab.PerMinute: "messagesPerMinute", vocab.Streams: "streams", vocab.MessageBytes: "messageBytes",
}

// SettingChanges collects the changes of a commit, by name.
type SettingChanges map[string]*SettingChange

// Add adds a change of the channel's record if it concerns a setting.
func (s SettingChanges) Add(ch *kg.Change) bool {
	name := settings[ch.Quad.Predicate]
	if name == "" {
		return false
	}
	if s[name] == nil {
		s[name] = &SettingChange{Name: name}
	}
	value := settingValue(ch.Quad.Predicate, ch.Quad.Object)
	if len(ch.Before) > 0 {
		s[name].Old = value
	}
	if len(ch.After) > 0 {
		s[name].New = value
	}
	return true
}

// List returns the changes sorted by name.
func (s SettingChanges) List() (out []SettingChange) {
	for _, one := range s {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b SettingChange) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func settingValue(property, object kg.Term) json.RawMessage {
	switch property {
	case vocab.Metadata:
		return json.RawMessage(object.Value())
	case vocab.MaxMembers, vocab.ExpireAfter, vocab.Keep, vocab.PerMinute, vocab.Streams, vocab.MessageBytes:
		return encode(vocab.IntegerOf(object))
	case vocab.Audit:
		return encode(object.Value() == "true")
	}
	return encode(object.Value())
}

// encode returns a text, a number or a boolean as JSON.
func encode(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // none of these can fail
	}
	return raw
}
