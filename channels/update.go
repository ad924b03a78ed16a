package channels

import (
	"context"
	"encoding/json"
	"time"

	"koine/internal/plainjson"
	"koine/internal/records"
	"koine/kg"
)

// ChannelUpdate is what of a channel is to be changed. Nil leaves a text as it is.
type ChannelUpdate struct {
	// ExpectedVersion is the version that the caller knows.
	ExpectedVersion int64
	Name, Topic     *string
	// Set and Remove are members of the metadata.
	Set    map[string]json.RawMessage
	Remove []string
	// Rights, if set, take the place of all that the channel has of its own;
	// MaxMembers and Limits, that of its bounds. Owners change these.
	Rights     *Rights
	MaxMembers *int
	Limits     *Limits
	// ExpireAfter is 0 for never. Owners change it.
	ExpireAfter *time.Duration
	// KeepMessages is 0 for all; what is too much goes as messages come. Owners change
	// it, and Audit.
	KeepMessages *int64
	Audit        *bool
}

// Update changes what a channel says of itself. Who manages it may, unless it is
// about rights and bounds: those are changed by owners.
//
// Errors: CodeVersionConflict when the channel is of another version by then;
// CodePermissionDenied for other members and readers, and for direct channels.
func (s *Service) Update(ctx context.Context, by Caller, id ChannelID, r ChannelUpdate) (*Channel, error) {
	for name := range r.Set {
		for _, gone := range r.Remove {
			if name == gone {
				return nil, kg.Errorf(kg.CodeInvalid, "%q cannot be set and removed", name).At("metadataPatch")
			}
		}
	}
	if err := checkTexts(deref(r.Name), deref(r.Topic)); err != nil {
		return nil, err
	}
	must := (*entry).mustManage
	if r.Rights != nil || r.MaxMembers != nil || r.Limits != nil || r.ExpireAfter != nil || r.KeepMessages != nil || r.Audit != nil {
		must = (*entry).mustOwn
	}
	return s.alterChannel(ctx, by, id, "channels/update", must, func(w *writer, c *Channel) error {
		if c.Version != r.ExpectedVersion {
			e := kg.Errorf(kg.CodeVersionConflict, "the channel is of version %d, not of the expected %d", c.Version, r.ExpectedVersion).At("expectedVersion")
			e.Hint = "read the channel again, and decide anew"
			return e
		}
		if r.Name != nil {
			if err := s.checkNameFree(c, *r.Name); err != nil {
				return err
			}
			c.Name = *r.Name
			w.setText(propName, c.Name)
		}
		if r.Topic != nil {
			c.Topic = *r.Topic
			w.setText(propTopic, c.Topic)
		}
		if err := s.applySettings(w, c, &r); err != nil {
			return err
		}
		if len(r.Set)+len(r.Remove) == 0 {
			return nil
		}
		metadata, err := r.mergeMetadata(c.Metadata)
		if err != nil {
			return err
		}
		if same, err := sameJSON(metadata, c.Metadata); same || err != nil {
			return err
		}
		c.Metadata = metadata
		object := kg.Term{}
		if c.Metadata != nil {
			object = jsonLiteral(c.Metadata)
		}
		w.setProperty(propMetadata, object)
		return nil
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// mergeMetadata is the metadata after the change.
func (r *ChannelUpdate) mergeMetadata(old []byte) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if old != nil {
		if err := json.Unmarshal(old, &members); err != nil {
			return nil, err
		}
	}
	for name, value := range r.Set {
		members[name] = value
	}
	for _, name := range r.Remove {
		delete(members, name)
	}
	if len(members) == 0 {
		return nil, nil
	}
	raw, err := plainjson.Encode(members)
	if err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "metadata is JSON").At("metadataPatch")
	}
	metadata, err := checkMetadata(raw)
	if err != nil {
		return nil, kg.AsError(err).At("metadataPatch")
	}
	return metadata, nil
}

// alterChannel changes a channel as an agent whom must does not refuse.
func (s *Service) alterChannel(ctx context.Context, by Caller, id ChannelID, method string, must func(*entry, kg.AgentID) error, fn func(*writer, *Channel) error) (*Channel, error) {
	agent, e, err := s.requireDiscoverable(by, id)
	if err != nil {
		return nil, err
	}
	if e.Kind == Direct { // whether it has come into being or not
		return nil, errDenied("a direct channel is that of its two agents, and stays as it is")
	}
	var c *Channel
	err = records.Update(ctx, s.store, by.updateMeta(method), func(tx *kg.Tx) (err error) {
		e := s.table.get(id).atTime(tx.Time()).asPrincipal(by.readerPrincipal(agent))
		if !e.canDiscover(agent) {
			return errNoChannel() // no longer
		}
		if err := must(e, agent); err != nil {
			return err
		}
		c, err = s.changeChannel(tx, id, fn)
		return err
	})
	if err != nil {
		return nil, err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	counted, err := s.readChannelState(snapshot, id)
	if err == nil {
		c.Messages, c.LastMessageAt = counted.Messages, counted.LastMessageAt
	}
	c.markClosedIfDue(s.options.Clock())
	c.sortMembers()
	return c, nil // gone or changed by others since: this is what was made
}
