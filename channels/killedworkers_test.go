package channels_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// The background work of channels (messages and channels expire, receipts are gathered,
// old content is evicted) runs in a process that is killed repeatedly. The log and the
// acknowledgements show whether it was done, and done once.

const (
	workersName = "workers"        // of a child that TestWorkersAcrossKills starts
	keptNewest  = 5                // messages that keep their content in one of the channels
	tidyTime    = 10 * time.Second // in which due changes are written
)

// working has the channels of the test, which ann created.
type working struct {
	*killed
	talk, short channel.ID
}

func openWorking(dir string) (*working, error) {
	k, err := openKilled(dir)
	if err != nil {
		return nil, err
	}
	w := &working{killed: k}
	for name, id := range map[string]*channel.ID{"talk": &w.talk, "short": &w.short} {
		list, err := w.named(name)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			*id = list[0].ID
			continue
		}
		d := channel.Draft{Name: name, Members: []channel.Member{{Agent: "bob"}, {Agent: "cleo"}}}
		if name == "short" {
			d.KeepMessages = keptNewest
		}
		c, err := w.Create(context.Background(), as("ann"), d)
		if err != nil {
			return nil, err
		}
		*id = c.ID
	}
	return w, nil
}

// named are ann's channels of a name.
func (w *working) named(name string) (out []*channel.Channel, err error) {
	for l := (channel.ListQuery{PageSize: channels.MaxPage}); ; {
		page, next, err := w.List(context.Background(), as("ann"), l)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Name == name {
				out = append(out, c)
			}
		}
		if l.PageToken = next; next == "" {
			return out, nil
		}
	}
}

// deed is a line of a child: an acknowledged operation.
type deed struct {
	Channel channel.ID `json:",omitempty"`
	Said    message.ID `json:",omitempty"`
	Due     time.Time  `json:",omitzero"`  // of the messages
	Answer  message.ID `json:",omitempty"` // a request that was answered
	Reader  string     `json:",omitempty"` // has read up to, or one message
	UpTo    int64      `json:",omitempty"`
	Read    message.ID `json:",omitempty"`
}

// beWorking talks until the process is killed.
func beWorking(dir string) {
	w, err := openWorking(dir)
	if err == nil {
		var out sync.Mutex
		err = w.work(func(d deed) {
			line, err := json.Marshal(d)
			out.Lock()
			defer out.Unlock()
			if err == nil {
				_, err = os.Stdout.Write(append(line, '\n'))
			}
			if err != nil {
				os.Exit(1)
			}
		})
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

// work lets agents do all that gives the workers something to do.
func (w *working) work(note func(deed)) error {
	ctx := context.Background()
	failed := make(chan error, 8)
	loop := func(pause time.Duration, fn func() error) {
		go func() {
			for {
				if err := fn(); err != nil {
					failed <- err
					return
				}
				time.Sleep(time.Duration(rand.Int64N(int64(2 * pause))))
			}
		}()
	}
	// A machine may be so busy that the time of a message or a channel has come before
	// it is published.
	late := func(err error) bool {
		return kg.CodeOf(err) == kg.CodeChannelClosed || kg.CodeOf(err) == kg.CodeInvalid && kg.AsError(err).Field == "expiresAt"
	}
	soon := func() time.Time {
		return time.Now().Add(200*time.Millisecond + time.Duration(rand.IntN(1500))*time.Millisecond).UTC().Truncate(time.Millisecond)
	}
	var newest atomic.Int64
	for _, id := range []channel.ID{w.talk, w.short} {
		loop(10*time.Millisecond, func() error { // messages, requests, answers
			p := channels.Publication{Channel: id, Parts: text("message"), Envelope: message.Envelope{Tags: []string{"t"}}}
			if rand.IntN(3) > 0 {
				p.ExpiresAt = soon()
			}
			if rand.IntN(3) == 0 {
				p.Interaction, p.Envelope.To = message.Request, "bob"
			}
			r, err := w.Publish(ctx, as("ann"), p)
			if late(err) {
				return nil
			} else if err != nil {
				return err
			}
			m := r.Message
			note(deed{Channel: id, Said: m.ID, Due: m.ExpiresAt})
			if id == w.talk {
				newest.Store(m.Sequence)
			}
			if m.Interaction != message.Request || rand.IntN(2) == 0 {
				return nil
			}
			answer := channels.Publication{Channel: id, Parts: text("answer"), Envelope: message.Envelope{Interaction: message.Response, Correlation: m.ID}}
			r, err = w.Publish(ctx, as("bob"), answer)
			if kg.CodeOf(err) == kg.CodeMessageExpired {
				return nil
			}
			if err == nil {
				note(deed{Channel: id, Answer: m.ID})
				note(deed{Channel: id, Said: r.Message.ID})
			}
			return err
		})
	}
	for _, who := range []string{"bob", "cleo"} {
		read := func(a receipts.Acknowledgement) error {
			a.Channel = w.talk
			err := w.Receipts().Acknowledge(ctx, as(who), a)
			if code := kg.CodeOf(err); code == kg.CodeMessageExpired || code == kg.CodePermissionDenied {
				return nil
			}
			if err == nil && a.State == receipts.Read {
				d := deed{Channel: w.talk, Reader: who, UpTo: a.UpTo}
				if len(a.Messages) > 0 {
					d.Read = a.Messages[0]
				}
				note(d)
			}
			return err
		}
		loop(20*time.Millisecond, func() error { // up to somewhere, also where it was before
			if n := newest.Load(); n > 0 {
				return read(receipts.Acknowledgement{UpTo: 1 + rand.Int64N(n), State: []receipts.State{receipts.Delivered, receipts.Read}[rand.IntN(2)]})
			}
			return nil
		})
		loop(20*time.Millisecond, func() error { // one that may be about to expire
			page, _, err := w.History(ctx, as(who), w.talk, channels.HistoryQuery{PageSize: 20, Descending: true})
			if err != nil || len(page) == 0 {
				return err
			}
			return read(receipts.Acknowledgement{Messages: []message.ID{page[rand.IntN(len(page))].ID}, State: receipts.Read})
		})
	}
	loop(100*time.Millisecond, func() error { // channels that come to their end
		c, err := w.Create(ctx, as("ann"), channel.Draft{Name: "idle", ExpireAfter: channel.MinExpireAfter + time.Duration(rand.IntN(300))*time.Millisecond})
		if err != nil {
			return err
		}
		note(deed{Channel: c.ID})
		for range rand.IntN(3) {
			r, err := w.Publish(ctx, as("ann"), channels.Publication{Channel: c.ID, Parts: text("message")})
			if late(err) {
				return nil
			} else if err != nil {
				return err
			}
			note(deed{Channel: c.ID, Said: r.Message.ID})
		}
		return nil
	})
	return <-failed
}

// deeds are the acknowledged operations of the children.
type deeds struct {
	said     map[message.ID]time.Time // when it expires
	answered map[message.ID]bool
	upTo     map[string]int64 // by reader
	read     map[string]map[message.ID]bool
	idle     map[channel.ID]bool
}

func (d *deeds) note(line deed) {
	switch {
	case line.Answer != "":
		d.answered[line.Answer] = true
	case line.Said != "":
		d.said[line.Said] = line.Due
	case line.Read != "":
		d.read[line.Reader][line.Read] = true
	case line.Reader != "":
		d.upTo[line.Reader] = max(d.upTo[line.Reader], line.UpTo)
	default:
		d.idle[line.Channel] = true
	}
}

func TestWorkersAcrossKills(t *testing.T) {
	slowtest.Long(t)
	dir := filepath.Join(t.TempDir(), "data")
	d := &deeds{said: map[message.ID]time.Time{}, answered: map[message.ID]bool{}, upTo: map[string]int64{},
		read: map[string]map[message.ID]bool{"bob": {}, "cleo": {}}, idle: map[channel.ID]bool{}}
	var late time.Duration
	var had logged
	for range max(2, *killsFlag/2) {
		killWorking(t, dir, time.Second+time.Duration(rand.IntN(2000))*time.Millisecond, d)
		took, found := tidied(t, dir, d)
		if t.Failed() {
			return
		}
		late, had = max(late, took), found
	}
	t.Logf("%d messages of which %d expired and %d lost their content to newer ones, %d channels that expired, %d receipts; what was due was written down within %v",
		len(had.messages), had.expired, had.evicted, len(had.closed), had.receipts, late)
	if had.expired == 0 || had.evicted == 0 || len(had.closed) == 0 || had.receipts == 0 {
		t.Error("a worker had nothing to do")
	}
}

// killWorking lets a child work for a time, from when it has opened, and kills it.
func killWorking(t *testing.T, dir string, lives time.Duration, d *deeds) {
	t.Helper()
	var opened time.Time
	err := kgtest.Child(childTime, func(text []byte) (bool, error) {
		if opened.IsZero() {
			opened = time.Now()
		}
		var line deed
		if err := json.Unmarshal(text, &line); err != nil {
			return false, fmt.Errorf("a child says %q", text)
		}
		d.note(line)
		return time.Since(opened) > lives, nil
	}, killedVariable+"="+dir, killedVariable+"_NAME="+workersName)
	if err != nil {
		t.Fatal(err)
	}
}

// tidied opens the store after a kill, waits until due changes are written, and compares
// everything with the acknowledgements. took is the duration.
func tidied(t *testing.T, dir string, d *deeds) (took time.Duration, found logged) {
	t.Helper()
	opened := time.Now()
	w, err := openWorking(dir)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine delays workers like everything else.
	var held time.Duration
	eventually(t, "what was due is written down", func() bool {
		began := time.Now()
		if _, err := w.Publish(within(t), as("ann"), channels.Publication{Channel: w.ids[0], Parts: text("probe")}); err != nil {
			t.Fatal(err)
		}
		held = max(held, time.Since(began))
		if found, err = w.logOf(within(t)); err != nil {
			t.Fatal(err)
		}
		return found.isTidy(opened)
	})
	if took = time.Since(opened); took > tidyTime+5*held {
		t.Errorf("what was due when the store was opened took %v, on a machine that makes a commit in %v", took, held)
	}
	if err := errors.Join(found.check(d), w.check(within(t), d, &found)); err != nil {
		t.Error(err)
	}
	// The next child begins behind the messages that were read to the end, and reads the
	// earlier ones.
	c, err := w.Get(within(t), as("ann"), w.talk)
	if err != nil {
		t.Fatal(err)
	}
	if c.Messages > 0 {
		if err := w.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: w.talk, UpTo: c.Messages, State: receipts.Read}); err != nil {
			t.Fatal(err)
		}
		d.upTo["bob"] = c.Messages
	}
	w.Close()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	return took, found
}

// logged is the content of the log about messages and channels.
type logged struct {
	messages map[message.ID]*loggedMessage
	idle     map[channel.ID]*loggedChannel
	closed   map[channel.ID]time.Time
	expired  int
	evicted  int
	receipts int
}

type loggedMessage struct {
	sequence               int64
	channel                string // its journal
	expires                time.Time
	expired, evicted, gone int
	answered               bool
}

type loggedChannel struct {
	last    time.Time // message, or when it was made
	expires time.Duration
}

// logOf reads the whole log. A duplicate or a contradiction is an error.
func (w *working) logOf(ctx context.Context) (logged, error) {
	l := logged{messages: map[message.ID]*loggedMessage{}, idle: map[channel.ID]*loggedChannel{}, closed: map[channel.ID]time.Time{}}
	marks := map[string]int64{} // the markers as they went up
	for rev := kg.Revision(1); rev <= w.store.Head().Revision; rev++ {
		c, err := w.store.Commit(ctx, kg.SystemPrincipal(), rev)
		if err != nil {
			return l, err
		}
		for i := range c.Changes {
			if err := l.take(c, &c.Changes[i], marks); err != nil {
				return l, fmt.Errorf("revision %d: %w", rev, err)
			}
		}
	}
	return l, nil
}

func vocab(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

func (l *logged) take(c *kg.Commit, ch *kg.Change, marks map[string]int64) error {
	q := &ch.Quad
	subject := q.Subject.Value()
	at, _ := q.Object.DateTimeValue()
	added := ch.Op != kg.Remove
	if id, ok := strings.CutPrefix(subject, "urn:koine:channel:"); ok && added {
		channel := channel.ID(id)
		switch q.Predicate {
		case vocab("channelExpireAfter"):
			n, _ := strconv.ParseInt(q.Object.Value(), 10, 64)
			l.idle[channel] = &loggedChannel{last: c.Time, expires: time.Duration(n) * time.Millisecond}
		case vocab("channelClosedAt"):
			if _, twice := l.closed[channel]; twice {
				return fmt.Errorf("the channel %s is closed twice", id)
			}
			if of := l.idle[channel]; !at.Equal(of.last.Add(of.expires)) {
				return fmt.Errorf("the channel %s is closed as of %v, its last was %v before %v", id, at, of.expires, of.last)
			}
			l.closed[channel] = at
		}
		return nil
	}
	if q.Predicate == vocab("readUpTo") || q.Predicate == vocab("deliveredUpTo") {
		l.receipts++
		key := q.Graph.Value() + subject + q.Predicate.Value()
		if n, _ := strconv.ParseInt(q.Object.Value(), 10, 64); added && n <= marks[key] {
			return fmt.Errorf("the marker %s goes from %d to %d", key, marks[key], n)
		} else if added {
			marks[key] = n
		}
		return nil
	}
	id, ok := strings.CutPrefix(subject, "urn:koine:message:")
	if !ok {
		return nil
	}
	m := l.messages[message.ID(id)]
	if m == nil {
		m = new(loggedMessage)
		l.messages[message.ID(id)] = m
	}
	switch q.Predicate {
	case kg.Sequence:
		if !added {
			return fmt.Errorf("the number of message %s goes", id)
		}
		m.sequence, _ = strconv.ParseInt(q.Object.Value(), 10, 64)
		m.channel = q.Graph.Value()
		channel := channel.ID(m.channel[len("urn:koine:graph:journal:messages:"):])
		if _, closed := l.closed[channel]; closed {
			return fmt.Errorf("message %d comes to the channel %s, which was closed", m.sequence, channel)
		}
		if of := l.idle[channel]; of != nil {
			if !c.Time.Before(of.last.Add(of.expires)) {
				return fmt.Errorf("message %d comes to the channel %s when it had expired", m.sequence, channel)
			}
			of.last = c.Time
		}
	case vocab("expiresAt"):
		if added {
			m.expires = at
		}
	case vocab("answeredBy"):
		if m.expired > 0 || !m.expires.IsZero() && !c.Time.Before(m.expires) {
			return fmt.Errorf("message %s is answered when it has expired", id)
		}
		m.answered = true
	case vocab("expiredAt"):
		m.expired++
		l.expired++
		if !added || m.expired > 1 || !at.Equal(m.expires) || c.Time.Before(at) || m.answered || m.evicted > 0 {
			return fmt.Errorf("message %s, %+v, expires as of %v", id, *m, at)
		}
	case vocab("evicted"):
		m.evicted++
		l.evicted++
		if !added || m.evicted > 1 {
			return fmt.Errorf("message %s goes twice", id)
		}
	case vocab("parts"):
		if added {
			return nil
		}
		if m.gone++; m.gone > 1 {
			return fmt.Errorf("the content of message %s goes twice", id)
		}
	case vocab("readBy"), vocab("deliveredTo"):
		l.receipts++
		if !m.expires.IsZero() && !c.Time.Before(m.expires) && !m.answered {
			return fmt.Errorf("message %s is acknowledged when it has expired", id)
		}
	}
	return nil
}

// isTidy reports whether everything that was due at a time is written.
func (l *logged) isTidy(at time.Time) bool {
	for _, m := range l.messages {
		if !m.expires.IsZero() && !at.Before(m.expires) && !m.answered && m.expired == 0 && m.evicted == 0 {
			return false
		}
	}
	for id, c := range l.idle {
		if _, closed := l.closed[id]; !closed && !at.Before(c.last.Add(c.expires)) {
			return false
		}
	}
	return true
}

// check compares the log with the acknowledgements.
func (l *logged) check(d *deeds) error {
	for id, due := range d.said {
		if m := l.messages[id]; m == nil || !m.expires.Equal(due) || m.answered != d.answered[id] && !m.answered {
			return fmt.Errorf("message %s, which expires %v (answered: %t), is %+v in the log", id, due, d.answered[id], m)
		}
	}
	for id := range d.idle {
		if l.idle[id] == nil {
			return fmt.Errorf("the channel %s is not in the log", id)
		}
	}
	return nil
}

// check compares the answers of the service with the log and the acknowledgements.
func (w *working) check(ctx context.Context, d *deeds, l *logged) error {
	for id, at := range l.closed {
		c, err := w.Get(ctx, as("ann"), id)
		if err != nil || c.Status() != channel.Closed || !c.ClosedAt.Equal(at) {
			return fmt.Errorf("the channel %s, closed as of %v, is %+v, %v", id, at, c, err)
		}
		if _, err := w.Publish(ctx, as("ann"), channels.Publication{Channel: id, Parts: text("late")}); kg.CodeOf(err) != kg.CodeChannelClosed {
			return fmt.Errorf("a message to the closed channel %s: %v", id, err)
		}
	}
	for _, who := range []string{"bob", "cleo"} {
		if n, err := w.Receipts().ReadMarker(ctx, as(who), w.talk); err != nil || n < d.upTo[who] {
			return fmt.Errorf("%s had read up to %d, and now up to %d, %v", who, d.upTo[who], n, err)
		}
		for id := range d.read[who] {
			list, err := w.Receipts().List(ctx, as("ann"), w.talk, id)
			if err != nil || !slices.ContainsFunc(list, func(r receipts.Receipt) bool {
				return r.Agent == kg.CanonicalAgent(who) && r.State == receipts.Read && !r.ReadAt.IsZero()
			}) {
				return fmt.Errorf("%s had read message %s, and now there is %v, %v", who, id, list, err)
			}
		}
	}
	for _, id := range []channel.ID{w.talk, w.short} {
		if err := w.shows(ctx, id, l); err != nil {
			return err
		}
	}
	return nil
}

// shows compares the messages of a channel, as they are read, with the log.
func (w *working) shows(ctx context.Context, id channel.ID, l *logged) error {
	c, err := w.Get(ctx, as("ann"), id)
	if err != nil {
		return err
	}
	next := int64(1)
	if id == w.short {
		next = max(1, c.Messages-keptNewest+1)
	}
	for q := (channels.HistoryQuery{PageSize: channels.MaxPage}); ; {
		page, token, err := w.History(ctx, as("ann"), id, q)
		if err != nil {
			return err
		}
		for _, m := range page {
			was := l.messages[m.ID]
			if m.Sequence != next || was == nil || was.sequence != next || was.evicted > 0 {
				return fmt.Errorf("where message %d comes next, there is %d, in the log %+v", next, m.Sequence, was)
			}
			if (m.Withheld == message.Expired) != (was.expired > 0) && was.expired > 0 || (m.Parts == nil) != (m.Withheld != "") {
				return fmt.Errorf("message %d, in the log %+v, is %+v", next, *was, m)
			}
			next++
		}
		if q.PageToken = token; token == "" {
			break
		}
	}
	if next != c.Messages+1 {
		return fmt.Errorf("of %d messages history ends at %d", c.Messages, next-1)
	}
	for _, m := range l.messages {
		old := m.channel == w.short.MessagesGraph().Value() && m.sequence <= c.Messages-keptNewest
		if id == w.short && (m.evicted > 0) != old {
			return fmt.Errorf("of %d messages the log has %+v", c.Messages, *m)
		}
	}
	return nil
}
