package channels

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Bounds on what is acknowledged.
const (
	MaxAcknowledged = 200         // messages that one acknowledgement names
	receiptPause    = time.Second // between two commits of a channel's receipts

	// maxReceiptChanges is how many changes one commit makes at most, but for one
	// acknowledgement that needs more.
	maxReceiptChanges = 4000
)

// Acknowledgement says what the caller got.
type Acknowledgement struct {
	Channel ChannelID
	// UpTo is a sequence: everything up to it that is for the caller. Or Messages
	// names messages that are for it.
	UpTo     int64
	Messages []MessageID
	// State is IsDelivered or IsRead, which includes it.
	State ReceiptState
}

// Acknowledge writes down what the caller got. The receipts of a channel share one
// commit a second. One that says read returns when its commit is durable; one that
// says delivered returns at once, and is lost where the server is killed before the
// commit. Close writes what waits.
//
// Errors: CodeChannelNotFound; CodeInvalid for a message or sequence that the channel
// does not have; CodePermissionDenied for a message that is not for the caller;
// CodeMessageExpired for one that has expired, and for everything in a channel that
// has closed; CodeOverloaded when too many wait.
func (s *Service) Acknowledge(ctx context.Context, by Caller, a Acknowledgement) error {
	agent, e, err := s.see(by, a.Channel)
	if err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return err
	}
	ack := &acknowledging{Acknowledgement: a, service: s, agent: agent, reader: by.reader(agent), done: make(chan error, 1)}
	if err := s.look(ctx, ack, e); err != nil {
		return err
	}
	if err := s.receipts.add(ack); err != nil || a.State != IsRead {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-ack.done:
		return err
	}
}

func (a *Acknowledgement) check() error {
	switch {
	case a.State != IsDelivered && a.State != IsRead:
		return kg.Errorf(kg.CodeInvalid, "delivered or read is acknowledged, not %.60q", a.State).At("status")
	case (a.UpTo != 0) == (len(a.Messages) > 0):
		return kg.Errorf(kg.CodeInvalid, "either a sequence or messages are acknowledged").At("upToSequence")
	case a.UpTo < 0:
		return kg.Errorf(kg.CodeInvalid, "sequences begin at 1").At("upToSequence")
	case len(a.Messages) > MaxAcknowledged:
		return errTooMuch("messageIds", "%d messages are more than the %d that one acknowledgement names", len(a.Messages), MaxAcknowledged)
	}
	return nil
}

// look refuses what cannot be acknowledged, and finds the messages that are written
// down singly.
func (s *Service) look(ctx context.Context, a *acknowledging, e *entry) error {
	snapshot, err := s.system(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if over, err := s.over(snapshot, e); err != nil || over {
		return errOr(err, errAllExpired())
	}
	if a.UpTo > 0 {
		head, err := countMessages(snapshot, a.Channel)
		if err != nil {
			return err
		}
		if a.UpTo > head {
			return kg.Errorf(kg.CodeInvalid, "the channel has %d messages", head).At("upToSequence")
		}
		k, err := markersOf(snapshot.Match, a.Channel, a.agent)
		if err != nil {
			return err
		}
		a.single, err = expiring(snapshot, a, k.of(a.State), s.options.Clock())
		return err
	}
	for _, id := range a.Messages {
		m, err := readMessage(snapshot.Match, a.Channel, id)
		if err != nil {
			return err
		}
		if m == nil {
			return errNoSuchMessage("messageIds")
		}
		if err := a.refused(m, s.options.Clock()); err != nil {
			return err
		}
	}
	a.single = a.Messages
	return nil
}

// expiring lists the messages behind a marker, up to where is acknowledged, that are
// going to expire: those of the journal, and of the lanes that the agent reads.
func expiring(snapshot *kg.Snapshot, a *acknowledging, marker int64, now time.Time) (out []MessageID, err error) {
	graphs := []kg.Term{a.Channel.MessagesGraph()}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propLaneReader, Object: kg.IRI(string(a.agent)), Graph: a.Channel.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, st.Subject)
	}
	for _, graph := range graphs {
		for st, err := range snapshot.Match(kg.Pattern{Predicate: propExpires, Graph: graph}) {
			if err != nil {
				return nil, err
			}
			n, err := numberOf(snapshot, a.Channel, messageOf(st.Subject), "")
			if err != nil {
				return nil, err
			}
			if n <= marker || n > a.UpTo {
				continue
			}
			m, err := readMessage(snapshot.Match, a.Channel, messageOf(st.Subject))
			if err != nil {
				return nil, err
			}
			if a.refused(m, now) != nil {
				continue
			}
			if out = append(out, m.ID); len(out) > maxExpiryChanges {
				return nil, errTooMuch("upToSequence", "more than %d messages up to there are going to expire: acknowledge in smaller steps", maxExpiryChanges)
			}
		}
	}
	return out, nil
}

// of is the marker of a state.
func (k *markers) of(state ReceiptState) int64 {
	if state == IsRead {
		return k.read
	}
	return k.delivered
}

// acknowledging is an acknowledgement that waits for its commit.
type acknowledging struct {
	Acknowledgement
	service *Service
	agent   kg.AgentID
	reader  kg.Principal
	single  []MessageID // that are written down by themselves
	done    chan error
	err     error // what became of it in the last try
}

// refused says why the message is not acknowledged at a time.
func (a *acknowledging) refused(m *Message, at time.Time) error {
	switch {
	case !m.isFor(a.agent):
		return errDenied("only its recipients acknowledge a message").At("messageIds")
	case m.Ended || m.expired(at):
		return kg.Errorf(kg.CodeMessageExpired, "the message has expired").At("messageIds")
	}
	return nil
}

// write writes it down inside of an update. What is refused by now goes to err, and
// leaves the others alone.
func (a *acknowledging) write(tx *kg.Tx, e *entry) error {
	a.err = nil
	if !e.as(a.reader).reads(a.agent) {
		a.err = errNoChannel()
		return nil
	}
	if err := a.service.mustBeOpen(tx, &e.Channel); kg.CodeOf(err) == kg.CodeChannelClosed {
		a.err = errAllExpired()
		return nil
	} else if err != nil {
		return err
	}
	graph, properties := a.Channel.ReceiptsGraph(), receiptProperties[a.State]
	for _, id := range a.single {
		m, err := readMessage(tx.MatchOwn, a.Channel, id)
		if err != nil {
			return err
		}
		if refused := a.refused(m, tx.Time()); refused != nil {
			if a.UpTo == 0 {
				a.err = refused
			}
			continue
		}
		q := kg.Quad{Subject: id.Entity(), Predicate: properties.single, Object: kg.IRI(string(a.agent)), Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	k, err := markersOf(tx.MatchOwn, a.Channel, a.agent)
	if err != nil || a.UpTo <= k.of(a.State) {
		return err
	}
	q := kg.Quad{Subject: kg.IRI(string(a.agent)), Predicate: properties.upTo, Object: kg.Integer(a.UpTo), Graph: graph}
	return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q})
}

// receipts gathers acknowledgements, so that those of a channel share a commit.
type receipts struct {
	service *Service
	done    sync.WaitGroup
	wake    chan struct{}

	mu     sync.Mutex // guards what follows
	closed bool
	count  int
	waits  map[ChannelID][]*acknowledging
	last   map[ChannelID]time.Time // of the last commits, for as long as they hold others up
}

func (s *Service) startReceipts() {
	r := &receipts{service: s, wake: make(chan struct{}, 1), waits: map[ChannelID][]*acknowledging{}, last: map[ChannelID]time.Time{}}
	s.receipts = r
	r.done.Go(r.run)
}

// close writes what waits, and ends.
func (r *receipts) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.tell()
	r.done.Wait()
}

func (r *receipts) tell() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *receipts) add(a *acknowledging) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return kg.Errorf(kg.CodeClosed, "the server is going down")
	}
	if r.count >= r.service.options.MaxReceipts {
		e := kg.Errorf(kg.CodeOverloaded, "%d receipts wait to be written already", r.count)
		e.RetryAfter = receiptPause
		return e
	}
	r.count++
	r.waits[a.Channel] = append(r.waits[a.Channel], a)
	r.tell()
	return nil
}

// run writes what waits until it is closed and nothing does.
func (r *receipts) run() {
	for {
		id, list, pause, closed := r.next()
		if list != nil {
			r.commit(id, list)
			continue
		}
		if closed {
			return
		}
		if pause == 0 {
			<-r.wake
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next takes what is to be written now; or tells when to look again, 0 for when
// something comes.
func (r *receipts) next() (id ChannelID, list []*acknowledging, pause time.Duration, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, at := range r.last {
		if now.Sub(at) >= receiptPause {
			delete(r.last, id)
		}
	}
	for id, all := range r.waits {
		at, held := r.last[id]
		if held && !r.closed {
			if left := at.Add(receiptPause).Sub(now); pause == 0 || left < pause {
				pause = left
			}
			continue
		}
		n := 0
		for changes := 0; n < len(all) && (n == 0 || changes+len(all[n].single) < maxReceiptChanges); n++ {
			changes += 1 + len(all[n].single)
		}
		list = slices.Clone(all[:n])
		if r.waits[id] = all[n:]; len(r.waits[id]) == 0 {
			delete(r.waits, id)
		}
		r.count -= n
		r.last[id] = now
		return id, list, 0, r.closed
	}
	return "", nil, pause, r.closed
}

// receiptTime bounds one commit of receipts.
const receiptTime = 30 * time.Second

func (r *receipts) commit(id ChannelID, list []*acknowledging) {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTime)
	defer cancel()
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/acknowledge", Justification: "receipts"}
	err := records.Update(ctx, r.service.store, meta, func(tx *kg.Tx) error {
		e := r.service.table.get(id)
		for _, a := range list {
			if err := a.write(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, a := range list {
		if err != nil {
			a.err = err
		}
		a.done <- a.err
	}
}
