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
	return s.alter(ctx, by, id, "channels/update", must, func(w *writer, c *Channel) error {
		if c.Version != r.ExpectedVersion {
			e := kg.Errorf(kg.CodeVersionConflict, "the channel is of version %d, not of the expected %d", c.Version, r.ExpectedVersion).At("expectedVersion")
			e.Hint = "read the channel again, and decide anew"
			return e
		}
		if r.Name != nil {
			if err := s.mayBeNamed(c, *r.Name); err != nil {
				return err
			}
			c.Name = *r.Name
			w.text(propName, c.Name)
		}
		if r.Topic != nil {
			c.Topic = *r.Topic
			w.text(propTopic, c.Topic)
		}
		if err := s.settings(w, c, &r); err != nil {
			return err
		}
		if len(r.Set)+len(r.Remove) == 0 {
			return nil
		}
		metadata, err := r.metadata(c.Metadata)
		if err != nil {
			return err
		}
		if same, err := sameJSON(metadata, c.Metadata); same || err != nil {
			return err
		}
		c.Metadata = metadata
		object := kg.Term{}
		if c.Metadata != nil {
			object = jsonText(c.Metadata)
		}
		w.set(propMetadata, object)
		return nil
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// metadata is the metadata after the change.
func (r *ChannelUpdate) metadata(old []byte) ([]byte, error) {
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

// alter changes a channel as an agent whom must does not refuse.
func (s *Service) alter(ctx context.Context, by Caller, id ChannelID, method string, must func(*entry, kg.AgentID) error, fn func(*writer, *Channel) error) (*Channel, error) {
	agent, e, err := s.discover(by, id)
	if err != nil {
		return nil, err
	}
	if e.Kind == Direct { // whether it has come into being or not
		return nil, errDenied("a direct channel is that of its two agents, and stays as it is")
	}
	var c *Channel
	err = records.Update(ctx, s.store, by.meta(method), func(tx *kg.Tx) (err error) {
		e := s.table.get(id).at(tx.Time()).as(by.reader(agent))
		if !e.discovers(agent) {
			return errNoChannel() // no longer
		}
		if err := must(e, agent); err != nil {
			return err
		}
		c, err = s.change(tx, id, fn)
		return err
	})
	if err != nil {
		return nil, err
	}
	snapshot, err := s.system(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	counted, err := s.read(snapshot, id)
	if err == nil {
		c.Messages, c.LastMessageAt = counted.Messages, counted.LastMessageAt
	}
	c.settle(s.options.Clock())
	c.inOrder()
	return c, nil // gone or changed by others since: this is what was made
}
