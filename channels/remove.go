package channels

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/records"
	"koine/kg"
)

// RemoveAgent takes an agent out of all channels: the agent itself may, and
// administrators. It is what a protocol calls by which an agent deregisters. It is
// meant for an agent that can do nothing any more, and may be repeated: what is done
// already is not done again. When it returns, there was a moment after the call at
// which the agent was in no channel, whoever added it meanwhile.
//
// Each channel is one commit, or more of them where there is much to expire. In it
// the agent's membership or invitation goes; requests that nobody else could answer
// expire; where it was the last owner, the longest-standing moderator becomes owner,
// else the longest-standing member, else observer; and a notice says so to those
// who are left (content type Notice). A channel in which nobody is left is deleted,
// unless others take part in it: everybody reads it, or whoever has access to its
// scope. Bans and mutes stay, so that nobody gets rid of them by
// coming again, and so do direct channels: their ids say whose they are. In these,
// and in channels that it took part in without being a member, requests expire all
// the same.
//
// Errors: CodePermissionDenied; CodeOverloaded when it is added as fast as it is taken
// out, MaxRemovals times. Others come between two channels; done is how many channels
// it was taken out of.
func (s *Service) RemoveAgent(ctx context.Context, by Caller, agent kg.AgentID) (done int, err error) {
	self, err := by.actingAgent()
	if err != nil {
		return 0, err
	}
	if agent, err = parseMember(agent); err != nil {
		return 0, err
	}
	if self != agent {
		if err := mustAdminister(by.Principal); err != nil {
			return 0, err
		}
	}
	list, err := s.channelsAwaiting(ctx, agent)
	if err != nil {
		return 0, err
	}
	for range MaxRemovals {
		list = append(list, s.table.channelsOfAgent(agent)...)
		slices.Sort(list)
		if list = slices.Compact(list); len(list) == 0 {
			return done, nil
		}
		for _, id := range list {
			r := &removal{service: s, agent: agent, channel: id, meta: by.updateMeta("channels/removeAgent")}
			out, err := r.run(ctx)
			if out {
				done++
			}
			if err != nil {
				return done, err
			}
		}
		list = nil // what comes behind the look there may always be
	}
	e := kg.Errorf(kg.CodeOverloaded, "%s is added to channels as fast as it is taken out of them", agent)
	e.RetryAfter = time.Second
	return done, e
}

// channelsAwaiting lists the channels in which a request waits for the agent.
func (s *Service) channelsAwaiting(ctx context.Context, agent kg.AgentID) (list []ChannelID, err error) {
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found := map[ChannelID]bool{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propRecipient, Object: kg.IRI(string(agent))}) {
		if err != nil {
			return nil, err
		}
		id, part := channelOfGraph(st.Graph)
		if e := s.table.get(id); part != journalPart || found[id] || e == nil || e.deleted {
			continue
		}
		requests, err := snapshot.Count(kg.Pattern{Subject: st.Subject, Predicate: propInteraction, Object: kg.String(string(Request)), Graph: st.Graph})
		if err != nil {
			return nil, err
		}
		if requests > 0 {
			m, err := readMessage(snapshot.Match, id, messageIDIn(st.Subject))
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

// channelsOfAgent lists the channels that an agent is a member of or invited to, but for direct
// ones.
func (t *table) channelsOfAgent(agent kg.AgentID) (ids []ChannelID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, index := range []map[kg.AgentID]*btree.Set[ChannelID]{t.byMember, t.invited} {
		if set := index[agent]; set != nil {
			set.Scan(func(id ChannelID) bool {
				if !id.IsDirect() {
					ids = append(ids, id)
				}
				return true
			})
		}
	}
	return ids
}

// removal takes an agent out of one channel.
type removal struct {
	service *Service
	agent   kg.AgentID
	channel ChannelID
	meta    kg.Meta
}

// run makes the commits. out tells that the agent was in the channel.
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
		err = records.Update(ctx, r.service.store, r.meta, func(tx *kg.Tx) (err error) {
			if wasIn, err = r.removeFromChannel(tx, notice); err != nil {
				return err
			}
			left, err = r.expireRequests(tx, pending)
			return err
		})
		if err != nil {
			return out, err
		}
		// Once it is out, no request to it comes any more: what came between the look
		// and the commit is found by another look.
		out = out || wasIn
		if !left && !wasIn {
			return out, nil
		}
	}
}

// pendingRequests lists the requests to the agent that do not go on as they are without it: in
// a channel that has closed none waits any more.
func (r *removal) pendingRequests(ctx context.Context) (list []MessageID, err error) {
	snapshot, err := r.service.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if over, err := r.service.closedInSnapshot(snapshot, r.service.table.get(r.channel)); err != nil || over {
		return nil, err
	}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propRecipient, Object: kg.IRI(string(r.agent)), Graph: r.channel.MessagesGraph()}) {
		if err != nil {
			return nil, err
		}
		m, err := readMessage(snapshot.Match, r.channel, messageIDIn(st.Subject))
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

// requestOutcome is what becomes of a message when the agent is gone.
type requestOutcome int

const (
	requestUnaffected     requestOutcome = iota // it is no request that waits for the agent
	requestLosesRecipient                       // others still answer it: it is noted that the agent does not
	requestExpires                              // nobody answers it any more: it expires
)

// outcomeOf tells what becomes of the message. What became of its content does not matter,
// unless it was taken back: then it is answered by nobody.
func (r *removal) outcomeOf(match matcher, m *Message) (requestOutcome, error) {
	if m == nil || m.Interaction != Request || m.Answered != "" || m.DeadlinePassed || m.Withheld == Retracted || !slices.Contains(m.Recipients, r.agent) {
		return requestUnaffected, nil
	}
	e := r.service.table.get(r.channel)
	if e.isMembersOnly() {
		if slices.ContainsFunc(m.Recipients, func(other kg.AgentID) bool { return other != r.agent && e.roles[other] != "" }) {
			return requestUnaffected, nil
		}
		return requestExpires, nil
	}
	// Who was there needed not be a member: who is gone was noted then.
	gone := map[kg.AgentID]bool{}
	for st, err := range match(kg.Pattern{Subject: m.ID.Entity(), Predicate: propGone, Graph: r.channel.ReceiptsGraph()}) {
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

// expireRequests lets requests expire now, as many as one commit may; left tells that there
// are more.
func (r *removal) expireRequests(tx *kg.Tx, pending []MessageID) (left bool, err error) {
	switch err := r.service.mustBeOpen(tx, &r.service.table.get(r.channel).Channel); {
	case kg.CodeOf(err) == kg.CodeChannelClosed: // meanwhile
		return false, nil
	case err != nil:
		return false, err
	}
	changes, size := 0, 0
	for i, id := range pending {
		m, err := readMessage(tx.MatchOwn, r.channel, id)
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
			changes, size = changes+6+len(m.Tags)+2*len(m.Recipients), size+m.size()
		}
		if i > 0 && (changes > maxExpiryChanges || size > maxExpiryBytes) {
			return true, nil
		}
		if end == requestLosesRecipient {
			q := kg.Quad{Subject: id.Entity(), Predicate: propGone, Object: kg.IRI(string(r.agent)), Graph: r.channel.ReceiptsGraph()}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return false, err
			}
			continue
		}
		at := tx.Time()
		if m.hasExpired(at) {
			at = m.ExpiresAt
		}
		if err := m.writeIndividualReceipts(tx); err != nil {
			return false, err
		}
		if err := m.expireAt(tx, at); err != nil {
			return false, err
		}
	}
	return false, nil
}

// writeIndividualReceipts writes down singly, of a message that was not going to expire, who got
// it by a marker: of one that has expired markers say nothing.
func (m *Message) writeIndividualReceipts(tx *kg.Tx) error {
	if !m.ExpiresAt.IsZero() {
		return nil
	}
	for _, agent := range m.Recipients {
		k, err := markersOf(tx.MatchOwn, m.Channel, agent)
		if err != nil {
			return err
		}
		for _, state := range []ReceiptState{ReceiptDelivered, ReceiptRead} {
			if m.Sequence > k.forState(state) {
				continue
			}
			q := kg.Quad{Subject: m.ID.Entity(), Predicate: receiptProperties[state].single, Object: kg.IRI(string(agent)), Graph: k.graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFromChannel takes the agent out, unless it is out already.
func (r *removal) removeFromChannel(tx *kg.Tx, notice *publishOp) (wasIn bool, err error) {
	e := r.service.table.get(r.channel)
	if e == nil || e.deleted || e.Kind == Direct || e.roles[r.agent] == "" && !e.isInvited(r.agent) {
		return false, nil
	}
	_, err = r.service.changeChannel(tx, r.channel, func(w *writer, c *Channel) error {
		w.removeInvitation(c, r.agent)
		at := slices.IndexFunc(c.Members, func(m Member) bool { return m.Agent == r.agent })
		if at < 0 {
			w.quiet = true
			return nil
		}
		wasIn = true
		w.removeMember(c.Members[at])
		if c.Members = slices.Delete(c.Members, at, at+1); len(c.Members) == 0 && e.isMembersOnly() {
			w.clearProperty(propInvited)
			w.setProperty(propDeleted, kg.DateTime(tx.Time()))
			return nil
		}
		if len(c.Members) > 0 && c.ownerCount() == 0 {
			heir := c.nextOwner()
			w.removeMember(heir)
			heir.Role = Owner
			w.addMember(heir)
		}
		switch err := r.service.mustBeOpen(tx, c); {
		case kg.CodeOf(err) == kg.CodeChannelClosed: // nothing is said there any more
		case err != nil:
			return err
		case w.err == nil:
			_, w.err = notice.publishMessage(tx, "")
		}
		return nil
	})
	return wasIn, err
}

// nextOwner is who becomes owner when there is none any more.
func (c *Channel) nextOwner() Member {
	for _, role := range []Role{Moderator, Ordinary, Observer} {
		for _, m := range c.Members { // in the order in which they joined
			if m.Role == role {
				return m
			}
		}
	}
	return Member{}
}

// newNotice is what is said in the channel.
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
		Channel: r.channel, Parts: []json.RawMessage{part}, Metadata: about, Envelope: Envelope{Interaction: Notification, ContentType: Notice},
	})
}
