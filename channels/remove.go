package channels

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/internal/retention"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/internal/systemgraph"
	"koine/kg"
)

// RemoveAgent removes an agent from all channels. It requires the agent itself or an
// administrator, and serves protocols in which agents deregister. The agent should
// already be unable to act. The call may be repeated; completed steps are not repeated.
// When it returns without an error, there was a moment during the call at which the
// agent was in no channel, even if it was added concurrently.
//
// Each channel takes one commit, or more if many requests expire. The commit removes
// the membership or invitation of the agent and expires the requests that no other
// agent can answer. If the agent was the last owner, the longest-standing moderator
// becomes owner, else the longest-standing member, else the longest-standing observer.
// A notice (content type Notice) informs the remaining participants. A channel without
// members is deleted unless others can take part in it, because everyone can read it or
// through its scope.
//
// Bans and mutes stay, so that an agent cannot escape them by registering again. Direct
// channels stay, because their ids name their two agents. Requests expire there too,
// and in channels that the agent took part in without being a member.
//
// Errors: CodePermissionDenied; CodeOverloaded if the agent is still being added after
// MaxRemovals passes. Other errors may occur between two channels; done is the number
// of channels that the agent was removed from.
func (m *Members) RemoveAgent(ctx context.Context, by Caller, agent kg.AgentID) (done int, err error) {
	self, err := by.ActingAgent()
	if err != nil {
		return 0, err
	}
	if agent, err = channel.ParseMember(agent); err != nil {
		return 0, err
	}
	if self != agent {
		if err := mustAdminister(by.Principal); err != nil {
			return 0, err
		}
	}
	list, err := m.service.channelsAwaiting(ctx, agent)
	if err != nil {
		return 0, err
	}
	for range MaxRemovals {
		list = append(list, m.service.table.ChannelsOfAgent(agent)...)
		slices.Sort(list)
		if list = slices.Compact(list); len(list) == 0 {
			return done, nil
		}
		for _, id := range list {
			r := &removal{service: m.service, agent: agent, channel: id, meta: by.UpdateMeta("channels/removeAgent")}
			out, err := r.run(ctx)
			if out {
				done++
			}
			if err != nil {
				return done, err
			}
		}
		list = nil // the next pass considers only channels that it is in by then
	}
	e := kg.Errorf(kg.CodeOverloaded, "%s is being added to channels concurrently: retry", agent)
	e.RetryAfter = time.Second
	return done, e
}

// channelsAwaiting lists the channels with an open request to the agent.
func (s *Service) channelsAwaiting(ctx context.Context, agent kg.AgentID) (list []channel.ID, err error) {
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found := map[channel.ID]bool{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Recipient, Object: kg.IRI(string(agent))}) {
		if err != nil {
			return nil, err
		}
		id, part := channel.OfGraph(st.Graph)
		if e := s.table.Get(id); part != channel.JournalPart || found[id] || e == nil || e.Deleted {
			continue
		}
		requests, err := snapshot.Count(kg.Pattern{Subject: st.Subject, Predicate: vocab.Interaction, Object: kg.String(string(message.Request)), Graph: st.Graph})
		if err != nil {
			return nil, err
		}
		if requests > 0 {
			m, err := message.Read(snapshot.Match, id, message.IDIn(st.Subject))
			if err != nil {
				return nil, err
			}
			r := &removal{service: s, agent: agent, channel: id}
			end, err := r.outcomeOf(snapshot.Match, m)
			if err != nil {
				return nil, err
			}
			found[id] = end != requestUnaffected
		}
	}
	for id, waits := range found {
		if waits {
			list = append(list, id)
		}
	}
	return list, nil
}

// removal removes an agent from one channel.
type removal struct {
	service *Service
	agent   kg.AgentID
	channel channel.ID
	meta    kg.Meta
}

// run makes the commits. out reports that the agent was in the channel.
func (r *removal) run(ctx context.Context) (out bool, err error) {
	for {
		pending, err := r.pendingRequests(ctx)
		if err != nil {
			return out, err
		}
		notice, err := r.newNotice()
		if err != nil {
			return out, err
		}
		wasIn, left := false, false
		err = systemgraph.Update(ctx, r.service.store, r.meta, func(tx *kg.Tx) (err error) {
			if wasIn, err = r.removeFromChannel(tx, notice); err != nil {
				return err
			}
			left, err = r.expireRequests(tx, pending)
			return err
		})
		if err != nil {
			return out, err
		}
		// After the removal no new request to the agent can arrive. A request that
		// arrived before it, but after pendingRequests, is found by the next iteration.
		out = out || wasIn
		if !left && !wasIn {
			return out, nil
		}
	}
}

// pendingRequests lists the open requests that the removal affects. A closed channel
// has none.
func (r *removal) pendingRequests(ctx context.Context) (list []message.ID, err error) {
	snapshot, err := r.service.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if over, err := r.service.journal.ClosedInSnapshot(snapshot, r.service.table.Get(r.channel)); err != nil || over {
		return nil, err
	}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Recipient, Object: kg.IRI(string(r.agent)), Graph: r.channel.MessagesGraph()}) {
		if err != nil {
			return nil, err
		}
		m, err := message.Read(snapshot.Match, r.channel, message.IDIn(st.Subject))
		if err != nil {
			return nil, err
		}
		end, err := r.outcomeOf(snapshot.Match, m)
		if err != nil {
			return nil, err
		}
		if end != requestUnaffected {
			list = append(list, m.ID)
		}
	}
	return list, nil
}

// requestOutcome is the effect of the removal on a message.
type requestOutcome int

const (
	requestUnaffected     requestOutcome = iota // not an open request to the agent
	requestLosesRecipient                       // others can still answer: the removed recipient is recorded
	requestExpires                              // no recipient remains: the request expires
)

// outcomeOf returns the effect on the message. It does not depend on the content,
// except that a retracted request can no longer be answered.
func (r *removal) outcomeOf(match systemgraph.Matcher, m *message.Message) (requestOutcome, error) {
	if m == nil || m.Interaction != message.Request || m.Answered != "" || m.DeadlinePassed || m.Withheld == message.Retracted || !slices.Contains(m.Recipients, r.agent) {
		return requestUnaffected, nil
	}
	e := r.service.table.Get(r.channel)
	if e.IsMembersOnly() {
		if slices.ContainsFunc(m.Recipients, func(other kg.AgentID) bool { return other != r.agent && e.RoleOf(other) != "" }) {
			return requestUnaffected, nil
		}
		return requestExpires, nil
	}
	// In other channels recipients need not be members, so the removed ones are on
	// record.
	gone := map[kg.AgentID]bool{}
	for st, err := range match(kg.Pattern{Subject: m.ID.Entity(), Predicate: vocab.Gone, Graph: r.channel.ReceiptsGraph()}) {
		if err != nil {
			return requestUnaffected, err
		}
		gone[kg.AgentID(st.Object.Value())] = true
	}
	switch {
	case !slices.ContainsFunc(m.Recipients, func(other kg.AgentID) bool { return other != r.agent && !gone[other] }):
		return requestExpires, nil
	case gone[r.agent]:
		return requestUnaffected, nil
	}
	return requestLosesRecipient, nil
}

// expireRequests expires as many requests as one commit may hold. left reports that
// there are more.
func (r *removal) expireRequests(tx *kg.Tx, pending []message.ID) (left bool, err error) {
	switch err := journal.MustBeOpen(tx, &r.service.table.Get(r.channel).Channel); {
	case kg.CodeOf(err) == kg.CodeChannelClosed: // closed concurrently
		return false, nil
	case err != nil:
		return false, err
	}
	changes, size := 0, 0
	for i, id := range pending {
		m, err := message.Read(tx.MatchOwn, r.channel, id)
		if err != nil {
			return false, err
		}
		end, err := r.outcomeOf(tx.MatchOwn, m)
		if err != nil {
			return false, err
		}
		switch end {
		case requestUnaffected:
			continue
		case requestLosesRecipient:
			changes++
		case requestExpires:
			changes, size = changes+6+len(m.Tags)+2*len(m.Recipients), size+m.Size()
		}
		if i > 0 && (changes > retention.MaxExpiryChanges || size > retention.MaxExpiryBytes) {
			return true, nil
		}
		if end == requestLosesRecipient {
			q := kg.Quad{Subject: id.Entity(), Predicate: vocab.Gone, Object: kg.IRI(string(r.agent)), Graph: r.channel.ReceiptsGraph()}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return false, err
			}
			continue
		}
		at := tx.Time()
		if m.HasExpired(at) {
			at = m.ExpiresAt
		}
		if err := receipts.WriteIndividualReceipts(tx, m); err != nil {
			return false, err
		}
		if err := m.ExpireAt(tx, at); err != nil {
			return false, err
		}
	}
	return false, nil
}

// removeFromChannel removes the agent from the channel if it is still in it.
func (r *removal) removeFromChannel(tx *kg.Tx, notice *publishOp) (wasIn bool, err error) {
	e := r.service.table.Get(r.channel)
	if e == nil || e.Deleted || e.Kind == channel.Direct || e.RoleOf(r.agent) == "" && !e.IsInvited(r.agent) {
		return false, nil
	}
	_, err = channel.ChangeRecord(tx, r.channel, func(w *channel.Writer, c *channel.Channel) error {
		w.RemoveInvitation(c, r.agent)
		at := slices.IndexFunc(c.Members, func(m channel.Member) bool { return m.Agent == r.agent })
		if at < 0 {
			w.Quiet = true
			return nil
		}
		wasIn = true
		w.RemoveMember(c.Members[at])
		if c.Members = slices.Delete(c.Members, at, at+1); len(c.Members) == 0 && e.IsMembersOnly() {
			w.ClearProperty(vocab.Invited)
			w.SetProperty(vocab.Deleted, kg.DateTime(tx.Time()))
			return nil
		}
		if len(c.Members) > 0 && c.OwnerCount() == 0 {
			heir := c.NextOwner()
			w.RemoveMember(heir)
			heir.Role = channel.Owner
			w.AddMember(heir)
		}
		err := journal.MustBeOpen(tx, c)
		if kg.CodeOf(err) == kg.CodeChannelClosed {
			return nil // a closed channel gets no notice
		}
		if err == nil {
			_, err = notice.publishMessage(tx, "")
		}
		return err
	})
	return wasIn, err
}

// newNotice returns the notice for the channel.
func (r *removal) newNotice() (*publishOp, error) {
	part, err := json.Marshal(map[string]string{"type": "text", "text": string(r.agent) + " was removed from the channel"})
	if err != nil {
		return nil, err
	}
	about, err := json.Marshal(map[string]string{"event": "agentRemoved", "agent": string(r.agent)})
	if err != nil {
		return nil, err
	}
	return r.service.newPublishOp(Caller{Principal: kg.SystemPrincipal()}, Publication{
		Channel: r.channel, Parts: []json.RawMessage{part}, Metadata: about, Envelope: message.Envelope{Interaction: message.Notification, ContentType: message.Notice},
	})
}
