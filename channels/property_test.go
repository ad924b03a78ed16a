package channels_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/kg"
)

var (
	seedFlag  = flag.Uint64("channels.seed", 0, "seed of the random test of channels (0: a new one for each run)")
	runsFlag  = flag.Int("channels.runs", 2, "how many random tests of channels to run")
	stepsFlag = flag.Int("channels.steps", 300, "steps of each random test of channels")
)

// Requests of several agents, in sequence and with the store closed and reopened in
// between, are answered as the model predicts. The answer for a hidden channel is the same,
// to the byte, as for one that never existed.
func TestAsTheModel(t *testing.T) {
	runs := slowtest.Size(*runsFlag, (*runsFlag+1)/2)
	if *seedFlag != 0 {
		runs = 1
	}
	for range runs {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Logf("again with: go test ./channels -run TestAsTheModel -channels.steps=%d -channels.seed=%d", *stepsFlag, seed)
			r := newRandom(t, seed)
			for r.step = range *stepsFlag {
				r.do()
				if t.Failed() {
					return
				}
			}
			r.close()
		})
	}
}

// random is a run of the property test.
type random struct {
	t    *testing.T
	dice *rand.Rand
	dir  string
	step int

	*channels.Service
	store *kg.Store

	model *model
	ids   []channel.ID  // of the model's channels
	of    *modelChannel // that a step is about, and its id
	id    channel.ID
}

func newRandom(t *testing.T, seed uint64) *random {
	r := &random{t: t, dice: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "data"), model: newModel([]string{"ann", "bob", "cleo", "dan", "eve"})}
	r.open()
	t.Cleanup(func() {
		if r.store != nil {
			_ = r.store.Close() // after a failure
		}
	})
	return r
}

func (r *random) open() {
	r.Service = channels.New(channels.Options{Agents: func(fn func(kg.AgentID) bool) {
		for _, name := range r.model.agents {
			if !fn(kg.CanonicalAgent(name)) {
				return
			}
		}
	}})
	var err error
	r.store, err = kg.Open(r.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: r.Guard(kg.AllowAll{}), OnSystemChange: r.Follow}})
	if err == nil {
		err = r.Load(context.Background(), r.store)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *random) close() {
	report, err := r.store.Maintenance().Check(context.Background(), kg.CheckOptions{})
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("the store: %v", report.Problems)
	}
	if err = errors.Join(err, r.store.Close()); err != nil {
		r.t.Fatal(err)
	}
	r.store = nil
}

func (r *random) agent() string { return r.model.agents[r.dice.IntN(len(r.model.agents))] }

func (r *random) role() channel.Role {
	return []channel.Role{channel.Owner, channel.Moderator, channel.Ordinary, channel.Observer}[r.dice.IntN(4)]
}

// channel is an existing one, or a direct one; nil, with an unused id, for one that never
// existed.
func (r *random) channel() (*modelChannel, channel.ID) {
	switch n := r.dice.IntN(20); {
	case n < 12: // few of them see much
		at := max(0, len(r.ids)-1-r.dice.IntN(3))
		return r.model.channels[at], r.ids[at]
	case n < 15:
		at := r.dice.IntN(len(r.ids))
		return r.model.channels[at], r.ids[at]
	case n == 15:
		return nil, channel.ID(uuid.NewString())
	}
	a, b := r.agent(), r.agent()
	for a == b {
		b = r.agent()
	}
	return r.model.between(a, b), channel.DirectID(kg.CanonicalAgent(a), kg.CanonicalAgent(b))
}

// do does one thing to both.
func (r *random) do() {
	by := r.agent()
	if len(r.ids) == 0 {
		r.create(by)
	}
	r.of, r.id = r.channel()
	if c := r.of; c != nil && len(c.members) > 0 && r.dice.IntN(2) == 0 { // members have more to say
		members := slices.Sorted(maps.Keys(c.members))
		by = members[r.dice.IntN(len(members))]
	}
	switch n := r.dice.IntN(100); {
	case n < 2:
		r.close()
		r.open()
	case n < 4:
		r.create(by)
	case n < 11:
		r.list(by)
	case n < 16:
		r.call(by, "get", func(c *modelChannel) string { return r.model.get(by, c) }, func(id channel.ID) (string, error) {
			return shown(r.Get(within(r.t), as(by), id))
		})
	case n < 25:
		r.update(by)
	case n < 26:
		r.call(by, "delete", func(c *modelChannel) string { return r.model.delete(by, c) }, func(id channel.ID) (string, error) {
			return "deleted", r.Delete(within(r.t), as(by), id)
		})
	case n < 36:
		other, role := r.agent(), r.role()
		r.call(by, "addMember "+other+" "+string(role), func(c *modelChannel) string { return r.model.addMember(by, c, other, role) }, func(id channel.ID) (string, error) {
			return shown(r.Members().Add(within(r.t), as(by), id, kg.AgentID(other), role))
		})
	case n < 40:
		other := r.agent()
		r.call(by, "removeMember "+other, func(c *modelChannel) string { return r.model.removeMember(by, c, other) }, func(id channel.ID) (string, error) {
			return shown(r.Members().Remove(within(r.t), as(by), id, kg.AgentID(other)))
		})
	case n < 48:
		r.invitations(by)
	case n < 53:
		r.bars(by)
	case n < 54:
		r.call(by, "close", func(c *modelChannel) string { return r.model.close(by, c) }, func(id channel.ID) (string, error) {
			return shown(r.CloseChannel(within(r.t), as(by), id, "enough"))
		})
	case n < 59:
		r.retract(by)
	case n < 82:
		r.publish(by)
	case n < 92:
		r.history(by)
	default:
		r.stream(by)
	}
}

// invitations does one of the things by which agents come in.
func (r *random) invitations(by string) {
	other, role := r.agent(), []channel.Role{channel.Ordinary, channel.Observer}[r.dice.IntN(2)]
	one := kg.AgentID(other)
	ctx, who := within(r.t), as(by)
	switch r.dice.IntN(6) {
	case 0, 1:
		r.call(by, "invite "+other, func(c *modelChannel) string { return r.model.invite(by, c, other) }, func(id channel.ID) (string, error) {
			return isDone, r.Members().Invite(ctx, who, id, one)
		})
	case 2:
		for other == by {
			other = r.agent()
		}
		for _, agent := range r.model.agents { // one that is invited, if any
			if r.of != nil && r.of.invited[agent] && agent != by {
				other = agent
			}
		}
		one = kg.AgentID(other)
		r.call(by, "withdraw "+other, func(c *modelChannel) string { return r.model.uninvite(by, c, other) }, func(id channel.ID) (string, error) {
			return isDone, r.Members().Withdraw(ctx, who, id, one)
		})
	case 3:
		r.call(by, "decline", func(c *modelChannel) string { return r.model.uninvite(by, c, by) }, func(id channel.ID) (string, error) {
			return isDone, r.Members().Decline(ctx, who, id)
		})
	case 4:
		r.call(by, "accept", func(c *modelChannel) string { return r.model.enter(by, c, channel.Ordinary, false) }, func(id channel.ID) (string, error) {
			return shown(r.Members().Accept(ctx, who, id))
		})
	default:
		r.call(by, "join as "+string(role), func(c *modelChannel) string { return r.model.enter(by, c, role, true) }, func(id channel.ID) (string, error) {
			return shown(r.Members().Join(ctx, who, id, role))
		})
	}
}

// bars bans or mutes, or ends that.
func (r *random) bars(by string) {
	other, stands := r.agent(), r.dice.IntN(2) == 0
	for _, agent := range r.model.agents { // one with further content
		if r.of != nil && (r.of.invited[agent] || r.of.banned[agent]) && r.dice.IntN(2) == 0 {
			other = agent
		}
	}
	do, end, model, what := r.Members().Ban, r.Members().Unban, r.model.ban, "ban"
	if r.dice.IntN(2) == 0 {
		do, end, model, what = r.Members().Mute, r.Members().Unmute, r.model.mute, "mute"
	}
	r.call(by, fmt.Sprintf("%s %s: %t", what, other, stands), func(c *modelChannel) string { return model(by, c, other, stands) }, func(id channel.ID) (string, error) {
		if stands {
			return isDone, do(within(r.t), as(by), id, kg.AgentID(other), time.Time{})
		}
		return isDone, end(within(r.t), as(by), id, kg.AgentID(other))
	})
}

// retract retracts a message, or something that is none.
func (r *random) retract(by string) {
	number, message := 0, message.ID(uuid.NewString())
	r.call(by, "retract", func(c *modelChannel) string {
		if c != nil && len(c.messages) > 0 && r.dice.IntN(10) > 0 {
			number = 1 + r.dice.IntN(len(c.messages))
			message = c.ids[number-1]
		}
		return r.model.retract(by, c, number)
	}, func(id channel.ID) (string, error) {
		receipt, err := r.Retract(within(r.t), as(by), channels.Retraction{Channel: id, Message: message})
		if err != nil {
			return "", err
		}
		return r.published(&receipt.Receipt), nil
	})
}

// published is the result of a publication, whose id is remembered.
func (r *random) published(receipt *channels.Receipt) string {
	if receipt.Replayed {
		return "again " + said(receipt.Message)
	}
	r.of.ids = append(r.of.ids, receipt.Message.ID)
	return said(receipt.Message)
}

// call does the same with a channel of both. An answer that it is not there must be
// that for one that never was.
func (r *random) call(by, what string, model func(*modelChannel) string, real func(channel.ID) (string, error)) {
	id := r.id
	want := model(r.of)
	got, err := real(id)
	if err != nil {
		got = string(kg.CodeOf(err))
	}
	if got != want {
		r.t.Errorf("step %d: %s by %s in %s:\n got %s (%v)\nwant %s", r.step, what, by, id, got, err, want)
	}
	if kg.CodeOf(err) == kg.CodeChannelNotFound {
		_, absent := real(channel.ID(uuid.NewString()))
		if a, b := told(err), told(absent); a != b {
			r.t.Errorf("step %d: %s by %s: of %s is told\n%s, of one that never was\n%s", r.step, what, by, id, a, b)
		}
	}
}

// told is all that a caller learns from an error.
func told(err error) string {
	e := kg.AsError(err)
	return fmt.Sprintf("%s %q %q %q %q %v %v", e.Code, e.Message, e.Field, e.Hint, e.Limit, e.RetryAfter, e.Oldest)
}

func shown(c *channel.Channel, err error) (string, error) {
	if err != nil {
		return "", err
	}
	m := &modelChannel{
		name: c.Name, visibility: c.Visibility, kind: c.Kind, members: map[string]channel.Role{}, version: c.Version,
		messages: make([]modelMessage, c.Messages), closed: c.Status() == channel.Closed, keep: int(c.KeepMessages),
	}
	for _, member := range c.Members {
		m.members[short(member.Agent)] = member.Role
	}
	if c.Metadata != nil {
		if err := json.Unmarshal(c.Metadata, &m.metadata); err != nil {
			return "", err
		}
	}
	if len(m.members) != len(c.Members) {
		return "", fmt.Errorf("a member twice: %v", c.Members)
	}
	return m.text(), nil
}

// short is the name that a canonical agent has in the test.
func short(a kg.AgentID) string {
	name := string(a)
	return name[strings.LastIndexAny(name, ":/")+1:]
}

func said(m *message.Message) string {
	if m.Parts == nil && m.Withheld != "" {
		return fmt.Sprintf("%d %s withheld", m.Sequence, short(m.Author))
	}
	var part struct{ Text string }
	if err := json.Unmarshal(m.Parts[0], &part); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s %q %q %v", m.Sequence, short(m.Author), part.Text, m.IdempotencyKey, m.ArtifactRefs)
}

func (r *random) create(by string) {
	made := modelChannel{name: fmt.Sprintf("channel %d", r.step), visibility: channel.Private, members: map[string]channel.Role{}}
	made.kind = []channel.Kind{channel.Ordered, channel.Ordered, channel.Room, channel.Broadcast}[r.dice.IntN(4)]
	if r.dice.IntN(3) == 0 {
		made.visibility = channel.Public
	}
	if r.dice.IntN(3) == 0 {
		made.keep = 1 + r.dice.IntN(4)
	}
	members := made.members
	d := channel.Draft{Name: made.name, Visibility: made.visibility, Kind: made.kind, KeepMessages: int64(made.keep)}
	for range r.dice.IntN(3) {
		agent, role := r.agent(), r.role()
		if members[agent] == "" && agent != by {
			members[agent] = role
			d.Members = append(d.Members, channel.Member{Agent: kg.AgentID(agent), Role: role})
		}
	}
	want := r.model.create(by, made)
	c, err := r.Create(within(r.t), as(by), d)
	if err != nil {
		r.t.Fatal(err)
	}
	if got, err := shown(c, nil); err != nil || got != want {
		r.t.Errorf("step %d: create by %s:\n got %s, %v\nwant %s", r.step, by, got, err, want)
	}
	r.ids = append(r.ids, c.ID)
}

func (r *random) list(by string) {
	l := channel.ListQuery{PageSize: 1 + r.dice.IntN(5), Visibility: []channel.Visibility{"", channel.Private, channel.Public}[r.dice.IntN(3)]}
	member := ""
	if r.dice.IntN(2) == 0 {
		member = r.agent()
		l.Member = kg.AgentID(member)
	}
	var got []string
	for {
		page, next, err := r.List(within(r.t), as(by), l)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, c := range page {
			text, err := shown(c, nil)
			if err != nil {
				r.t.Error(err)
			}
			got = append(got, text)
		}
		if l.PageToken = next; next == "" {
			break
		}
	}
	if want := r.model.list(by, l.Visibility, member); !slices.Equal(got, want) {
		r.t.Errorf("step %d: list %+v by %s:\n got %s\nwant %s", r.step, l, by, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func (r *random) update(by string) {
	var name *string
	if r.dice.IntN(2) == 0 {
		text := fmt.Sprintf("name %d", r.step)
		name = &text
	}
	set, raw := map[string]string{}, map[string]json.RawMessage{}
	var remove []string
	for _, key := range []string{"x", "y", "z"} {
		switch r.dice.IntN(4) {
		case 0:
			set[key] = fmt.Sprint(r.step)
			raw[key] = json.RawMessage(fmt.Sprintf("%q", set[key]))
		case 1:
			remove = append(remove, key)
		}
	}
	stale := r.dice.IntN(4) == 0
	var expected int64
	r.call(by, "update", func(c *modelChannel) string {
		expected = 1
		if c != nil {
			expected = c.version
		}
		if stale {
			expected--
		}
		return r.model.update(by, c, expected, name, set, remove)
	}, func(id channel.ID) (string, error) {
		return shown(r.Update(within(r.t), as(by), id, channel.Update{ExpectedVersion: expected, Name: name, Set: raw, Remove: remove}))
	})
}

func (r *random) publish(by string) {
	m := modelMessage{text: fmt.Sprintf("text %d", r.dice.IntN(3))}
	if r.dice.IntN(2) == 0 {
		m.key = fmt.Sprintf("key %d", r.dice.IntN(4))
	}
	if r.dice.IntN(4) == 0 {
		m.refs = []string{"artifact"}
	}
	p := channels.Publication{Parts: text("%s", m.text), IdempotencyKey: m.key, ArtifactRefs: m.refs}
	publish := func(id channel.ID) (string, error) {
		p.Channel = id
		receipt, err := r.Publish(within(r.t), as(by), p)
		if err != nil {
			return "", err
		}
		return r.published(receipt), nil
	}
	r.call(by, "publish", func(c *modelChannel) string { return r.model.publish(by, c, m) }, publish)
}

func (r *random) history(by string) {
	q := channels.HistoryQuery{PageSize: 1 + r.dice.IntN(6), Descending: r.dice.IntN(2) == 0}
	since := int64(-1) // none is said
	if r.dice.IntN(2) == 0 {
		since = r.dice.Int64N(12)
		q.SinceSequence = &since
	}
	if r.dice.IntN(3) == 0 {
		q.BeforeSequence = r.dice.Int64N(12)
	}
	author := ""
	if r.dice.IntN(3) == 0 {
		author = r.agent()
		q.Authors = []kg.AgentID{kg.AgentID(author)}
	}
	r.call(by, fmt.Sprintf("history behind %d, %+v", since, q), func(c *modelChannel) string {
		return strings.Join(r.model.history(by, c, since, q.BeforeSequence, author, q.Descending), "\n")
	}, func(id channel.ID) (string, error) {
		var got []string
		for q := q; ; {
			page, next, err := r.History(within(r.t), as(by), id, q)
			if err != nil {
				return "", err
			}
			for _, m := range page {
				got = append(got, said(m))
			}
			if q.PageToken = next; next == "" {
				return strings.Join(got, "\n"), nil
			}
		}
	})
}

func (r *random) stream(by string) {
	since := r.dice.Int64N(12) - 1
	var want []string
	r.call(by, fmt.Sprintf("stream behind %d", since), func(c *modelChannel) string {
		want = r.model.stream(by, c, since)
		return strings.Join(want, "\n")
	}, func(id channel.ID) (string, error) {
		stream, err := r.Stream(within(r.t), as(by), id, &since)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		var got []string
		if len(want) == 0 {
			return "", nil
		}
		for m, err := range stream.Messages() {
			if err != nil && len(got) == len(want)-1 { // its end
				got = append(got, string(kg.CodeOf(err)))
				break
			}
			if err != nil {
				return "", err
			}
			if got = append(got, said(m)); len(got) == len(want) {
				break
			}
		}
		return strings.Join(got, "\n"), nil
	})
}
