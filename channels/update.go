package channels

import (
	"context"
	"encoding/json"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Update changes the description or the settings of a channel. It requires a manager of
// the channel or, for settings such as rights and limits, an owner.
//
// Errors: CodeVersionConflict if the channel has another version; CodePermissionDenied,
// also for direct channels.
func (s *Service) Update(ctx context.Context, by Caller, id channel.ID, r channel.Update) (*channel.Channel, error) {
	for name := range r.Set {
		for _, gone := range r.Remove {
			if name == gone {
				return nil, kg.Errorf(kg.CodeInvalid, "metadata member %q is both set and removed", name).At("metadataPatch")
			}
		}
	}
	if err := channel.CheckTexts(deref(r.Name), deref(r.Topic)); err != nil {
		return nil, err
	}
	must := (*access.Entry).MustManage
	if r.Rights != nil || r.MaxMembers != nil || r.Limits != nil || r.ExpireAfter != nil || r.KeepMessages != nil || r.Audit != nil || r.MemberPolicy != nil {
		must = (*access.Entry).MustOwn
	}
	return s.alterChannel(ctx, by, id, "channels/update", must, func(w *channel.Writer, c *channel.Channel) error {
		if c.Version != r.ExpectedVersion {
			e := kg.Errorf(kg.CodeVersionConflict, "channel has version %d, expected %d", c.Version, r.ExpectedVersion).At("expectedVersion")
			e.Hint = "read the channel again and retry with its version"
			return e
		}
		if r.Name != nil {
			if err := s.checkNameFree(c, *r.Name); err != nil {
				return err
			}
			c.Name = *r.Name
			w.SetText(vocab.Name, c.Name)
		}
		if r.Topic != nil {
			c.Topic = *r.Topic
			w.SetText(vocab.Topic, c.Topic)
		}
		if err := s.applySettings(w, c, &r); err != nil {
			return err
		}
		if len(r.Set)+len(r.Remove) == 0 {
			return nil
		}
		metadata, err := mergeMetadata(&r, c.Metadata)
		if err != nil {
			return err
		}
		if same, err := check.SameJSON(metadata, c.Metadata); same || err != nil {
			return err
		}
		c.Metadata = metadata
		object := kg.Term{}
		if c.Metadata != nil {
			object = vocab.JSON(c.Metadata)
		}
		w.SetProperty(vocab.Metadata, object)
		return nil
	})
}

// mergeMetadata returns the metadata after the update.
func mergeMetadata(r *channel.Update, old []byte) ([]byte, error) {
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
		return nil, kg.Errorf(kg.CodeInvalid, "metadataPatch must be valid JSON").At("metadataPatch")
	}
	metadata, err := check.JSONObject("metadata", raw, channel.MaxMetadataBytes)
	if err != nil {
		return nil, kg.AsError(err).At("metadataPatch")
	}
	return metadata, nil
}

// alterChannel applies fn to a channel if must allows it for the agent.
func (s *Service) alterChannel(ctx context.Context, by Caller, id channel.ID, method string, must func(*access.Entry, kg.AgentID) error, fn func(*channel.Writer, *channel.Channel) error) (*channel.Channel, error) {
	agent, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return nil, err
	}
	if e.Kind == channel.Direct { // even before its first message
		return nil, check.Denied("direct channel cannot be changed")
	}
	var c *channel.Channel
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta(method), func(tx *kg.Tx) (err error) {
		e := s.table.Get(id).AtTime(tx.Time()).AsPrincipal(by.ReaderPrincipal(agent))
		if err := access.MustDiscover(e, agent); err != nil {
			return err // access was lost
		}
		if err := must(e, agent); err != nil {
			return err
		}
		c, err = channel.ChangeRecord(tx, id, fn)
		return err
	})
	if err != nil {
		return nil, err
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	counted, err := s.readChannelState(snapshot, id)
	if err == nil {
		c.JournalState = counted.JournalState
	}
	c.MarkClosedIfDue(s.options.Clock())
	channel.SortMembers(c.Members)
	return c, nil // the result of this update, even if others changed the channel since
}

// CloseChannel closes a channel: it remains readable and accepts no more messages.
// Unread messages become receipts.Expired permanently, and requests can no longer be
// answered. Streams end after the last message, as do Ask and AskAll. It requires an
// owner, the creator, or a manager of the scope.
//
// Errors: CodeChannelClosed if the channel is already closed; CodeChannelNotFound;
// CodePermissionDenied; CodeLimitExceeded.
func (s *Service) CloseChannel(ctx context.Context, by Caller, id channel.ID, reason string) (*channel.Channel, error) {
	if err := checkReason("reason", reason); err != nil {
		return nil, err
	}
	must := func(e *access.Entry, agent kg.AgentID) error {
		if e.CanRead(agent) && e.CreatedBy == agent && (e.Scope == "" || e.MustManageMembers(agent) == nil) {
			return nil
		}
		return e.MustOwn(agent)
	}
	return s.alterChannel(ctx, by, id, "channels/close", must, func(w *channel.Writer, c *channel.Channel) error {
		if err := journal.MustBeOpen(w.Tx, c); err != nil {
			return err
		}
		w.Close(c, w.Tx.Time(), reason)
		return nil
	})
}

// isClosed reports whether the closing of the channel is recorded.
func (s *Service) isClosed(id channel.ID) bool {
	e := s.table.Get(id)
	return e != nil && e.Status() == channel.Closed
}

// Delete deletes a channel. It removes all members, and from then on no agent can read
// the channel at any revision. Its readers keep the audit copies of its messages, as
// long as it has access to the scope. It requires an owner.
func (s *Service) Delete(ctx context.Context, by Caller, id channel.ID) error {
	agent, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return err
	}
	if e.Kind == channel.Direct {
		return check.Denied("direct channel cannot be deleted")
	}
	return systemgraph.Update(ctx, s.store, by.UpdateMeta("channels/delete"), func(tx *kg.Tx) error {
		e := s.table.Get(id).AtTime(tx.Time()).AsPrincipal(by.ReaderPrincipal(agent))
		if err := access.MustDiscover(e, agent); err != nil {
			return err
		}
		if err := e.MustOwn(agent); err != nil {
			return err
		}
		_, err := channel.ChangeRecord(tx, id, func(w *channel.Writer, c *channel.Channel) error {
			for _, m := range c.Members {
				w.RemoveMember(m)
			}
			if c.Scope != "" {
				for _, agent := range access.MembersWhoRead(e) {
					w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.FormerReader, kg.IRI(string(agent)))})
				}
			}
			w.ClearProperty(vocab.Invited)
			w.SetProperty(vocab.Deleted, kg.DateTime(tx.Time()))
			return nil
		})
		return err
	})
}

// applySettings applies the part of an update that only owners can make.
func (s *Service) applySettings(w *channel.Writer, c *channel.Channel, r *channel.Update) error {
	if r.MemberPolicy != nil {
		if err := applyMemberPolicy(w, c, *r.MemberPolicy, r.Rights == nil); err != nil {
			return err
		}
	}
	if r.Rights != nil {
		if err := r.Rights.ValidateFor(channel.EffectiveVisibility(c.Visibility, c.MemberPolicy)); err != nil {
			return err
		}
		c.Rights = *r.Rights
		w.SetRights(&c.Rights)
	}
	if r.Limits != nil {
		if err := r.Limits.Validate(); err != nil {
			return err
		}
		c.Limits = *r.Limits
		w.SetLimits(&c.Limits)
	}
	if r.KeepMessages != nil {
		if err := channel.CheckKeepMessages(*r.KeepMessages); err != nil {
			return err
		}
		c.KeepMessages = *r.KeepMessages
		w.SetNumber(vocab.Keep, c.KeepMessages)
	}
	if r.Audit != nil && *r.Audit != c.Audit {
		if c.Scope == "" {
			return errNoEvents()
		}
		if c.Audit = *r.Audit; c.Audit {
			w.SetProperty(vocab.Audit, kg.Boolean(true))
		} else {
			w.ClearProperty(vocab.Audit)
		}
	}
	if r.ExpireAfter != nil && *r.ExpireAfter != c.ExpireAfter {
		if err := channel.CheckExpireAfter(*r.ExpireAfter); err != nil {
			return err
		}
		if err := journal.MustBeOpen(w.Tx, c); err != nil {
			return err
		}
		c.ExpireAfter, c.ExpireAfterSetAt = *r.ExpireAfter, w.Tx.Time()
		w.SetNumber(vocab.ExpireAfter, c.ExpireAfter.Milliseconds())
	}
	if r.MaxMembers != nil {
		if err := s.checkMaxMembers(*r.MaxMembers, len(c.Members)); err != nil {
			return err
		}
		c.MaxMembers = *r.MaxMembers
		w.SetNumber(vocab.MaxMembers, int64(c.MaxMembers))
	}
	return nil
}

// applyMemberPolicy changes the participation in a channel of a scope. The rights that it keeps
// must be possible with the new policy.
func applyMemberPolicy(w *channel.Writer, c *channel.Channel, policy channel.MemberPolicy, keepsRights bool) error {
	policy, err := channel.ParseMemberPolicy(policy)
	if err != nil {
		return err
	}
	if c.Scope == "" {
		return channel.ErrPolicyWithoutScope()
	}
	if keepsRights {
		if err := c.Rights.ValidateFor(channel.EffectiveVisibility(c.Visibility, policy)); err != nil {
			e := kg.AsError(err).At("memberPolicy")
			e.Hint = "change the rights in the same update"
			return e
		}
	}
	c.MemberPolicy = policy
	w.SetText(vocab.Policy, string(policy))
	return nil
}

// checkMaxMembers validates a member limit for a channel with this many members.
func (s *Service) checkMaxMembers(most, members int) error {
	switch {
	case most < 0:
		return kg.Errorf(kg.CodeInvalid, "maxMembers must not be negative").At("maxMembers")
	case most > s.options.MaxMembers:
		return check.TooMuch("maxMembers", "maxMembers is %d; the limit of this server is %d", most, s.options.MaxMembers)
	case most > 0 && most < members:
		return check.TooMuch("maxMembers", "channel has %d members, more than maxMembers %d", members, most)
	}
	return nil
}

// memberLimit returns the maximum number of members of the channel.
func (s *Service) memberLimit(c *channel.Channel) int {
	if c.MaxMembers > 0 {
		return min(c.MaxMembers, s.options.MaxMembers)
	}
	return s.options.MaxMembers
}
