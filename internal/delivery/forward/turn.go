package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/sse"
	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/kg"
)

// turn is the work on a letter between two waits.
type turn struct {
	*upstream
	ctx    context.Context
	item   *item
	letter *tasks.Letter
	link   link
	// answered means that the upstream has answered in this turn, settled that the letter
	// has left the mailbox.
	answered, settled bool
	// held is a snapshot of the task that waits for its creator: it may be older than the
	// letter, unless the stream ends with it.
	held *Answer
}

// takeTurn calls the upstream about a letter if it is still in the mailbox.
func (u *upstream) takeTurn(it *item) outcome {
	s := u.service
	release, err := s.sender.Acquire(u.ctx, u.agent)
	if err != nil {
		return outcome{}
	}
	defer release()
	t := &turn{upstream: u, item: it}
	var interrupt context.CancelFunc
	t.ctx, interrupt = context.WithTimeout(u.ctx, s.options.CallTimeout)
	defer interrupt()
	ready, err := t.prepareLetter()
	switch {
	case err != nil:
		return t.outcomeOf(err)
	case t.letter == nil:
		return t.leaveLetter()
	case !ready:
		return outcome{again: s.options.Retry.Max}
	case !t.letter.Canceled() && t.letter.Task.Status.State.Ended():
		return t.acknowledgeLetter() // it came while the upstream finished the task
	case t.link.task != "" && u.nameTask(it, interrupt):
		return outcome{}
	}
	return t.outcomeOf(t.exchangeMessage(interrupt))
}

// prepareLetter reads the letter, and reports whether the upstream may be called about it.
func (t *turn) prepareLetter() (ready bool, err error) {
	s := t.service
	if t.letter, err = s.tasks.ReadLetter(t.ctx, t.item.Notice); err != nil || t.letter == nil {
		return false, err
	}
	snapshot, err := s.store.View(t.ctx, systemView)
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	now, err := s.settingIn(snapshot.Match, t.agent)
	if err != nil {
		return false, err
	}
	if now == nil || now.sealed != t.sealed {
		t.stop()
		return false, nil
	}
	r, err := systemgraph.Read(snapshot.Match, Graph, t.letter.Task.ID.Entity())
	t.link = linkOf(r)
	return s.options.MayForward(t.agent), err
}

// outcomeOf decides how the letter continues after an exchange.
func (t *turn) outcomeOf(err error) outcome {
	o := &t.service.options
	var own *kg.Error
	var refused *Refusal
	switch {
	case t.settled:
		return outcome{settled: true}
	case t.upstream.ctx.Err() != nil:
		return outcome{}
	case t.isCanceled(): // its letter has left the mailbox
		return outcome{}
	case err == nil:
		t.item.polls++
		return outcome{again: o.Poll.After(t.item.polls-1, 0)}
	case errors.As(err, &own) && (own.Code == kg.CodeTaskEnded || own.Code == kg.CodeTaskNotFound):
		return t.leaveLetter()
	case t.letter != nil && t.letter.Canceled() && (errors.As(err, &refused) || errors.Is(err, ErrTaskUnknown) || errors.Is(err, ErrUnsupported)):
		return t.acknowledgeLetter() // it cannot be canceled any more
	case errors.As(err, &refused):
		return t.failTask(tasks.FailureRefused, "the agent refused the message: "+refused.Reason)
	case errors.Is(err, ErrTaskUnknown):
		return t.failTask(tasks.FailureRefused, "the agent does not know its task any more")
	case errors.Is(err, ErrUnsupported):
		return t.failTask(tasks.FailureRefused, "the agent does not support the operation")
	case errors.Is(err, errTooLarge), errors.As(err, &own) && own.Code == kg.CodeLimitExceeded:
		return t.failTask(tasks.FailureAnswer, "the answer of the agent exceeds a limit of this server")
	case errors.Is(err, ErrMalformed), errors.As(err, &own) && own.Code == kg.CodeInvalid:
		return t.failTask(tasks.FailureAnswer, "the answer of the agent is not one of A2A")
	case errors.Is(err, errSuspended):
		return outcome{again: o.Retry.Max}
	case errors.Is(err, errLoop):
		return t.failTask(tasks.FailureLoop, fmt.Sprintf("%d servers forwarded the message, which is the limit: their agents forward to each other", MaxHops))
	case own != nil: // the store
		o.Logger.Error("cannot forward a letter", "agent", t.agent, "letter", t.letterID(), "error", err)
		t.item.tries++
		return outcome{again: o.Retry.After(t.item.tries-1, 0)}
	case t.answered: // the connection broke
		return outcome{again: o.Retry.Min}
	}
	return t.putAway(err)
}

func (t *turn) letterID() string { return tasks.LetterID(t.item.Task, t.item.Number) }

// Errors of an exchange, beside those of Wire.
var (
	errTooLarge = errors.New("answer of the agent is too large")
	errLoop     = errors.New("message was forwarded too often")
	// errSuspended means that nothing may be reported for the agent now.
	errSuspended = errors.New("agent is suspended")
)

// putAway retries a letter that its upstream did not answer, up to Options.MaxAway.
func (t *turn) putAway(err error) outcome {
	o := &t.service.options
	t.noteFailed(err)
	t.item.tries++
	again := outcome{again: o.Retry.After(t.item.tries-1, 0), failed: err}
	now := time.Now()
	switch {
	case t.link.away.IsZero():
		t.link.away, t.item.said = now, "" // the next answer is news
		if err := t.saveLink(t.upstream.ctx); err != nil {
			return again
		}
		if !t.letter.Canceled() {
			message := &tasks.Message{Parts: []tasks.Part{tasks.TextPart("The agent cannot be reached. The message is sent again until " + now.Add(o.MaxAway).UTC().Format(time.RFC3339) + ".")}}
			if err := t.reportOnTask(tasks.Report{State: t.letter.Task.Status.State, Message: message, Letters: []string{}}); err != nil {
				o.Logger.Debug("cannot report that an upstream is away", "agent", t.agent, "letter", t.letterID(), "error", err)
			}
		}
	case now.Sub(t.link.away) < o.MaxAway:
	case t.letter.Canceled():
		return t.acknowledgeLetter()
	default:
		return t.failTask(tasks.FailureUnreachable, "the agent could not be reached for "+o.MaxAway.String())
	}
	return again
}

// failTask ends the task.
func (t *turn) failTask(code, text string) outcome {
	err := t.reportOnTask(tasks.Report{State: tasks.Failed, Failure: &tasks.Failure{Code: code, Message: text}, Letters: []string{t.letterID()}})
	return t.forgetTask(err)
}

// acknowledgeLetter removes the letter from the mailbox.
func (t *turn) acknowledgeLetter() outcome {
	err := t.service.tasks.Acknowledge(t.upstream.ctx, t.reporter(), t.letterID())
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		err = nil
	}
	return t.forgetTask(err)
}

// leaveLetter ends the work on a letter that others have settled. The link stays as long
// as the task or its cancellation needs it.
func (t *turn) leaveLetter() outcome {
	ctx := t.upstream.ctx
	canceled, err := t.service.tasks.ReadLetter(ctx, tasks.Notice{Task: t.item.Task})
	if err != nil {
		return t.forgetTask(err)
	}
	now, err := t.service.tasks.Get(ctx, systemCaller, t.item.Task, tasks.ReadOptions{})
	if canceled == nil && (err != nil || now.Status.State.Ended()) {
		return t.forgetTask(err)
	}
	t.settled = err == nil
	return outcome{settled: t.settled, again: t.service.options.Retry.Min}
}

// forgetTask removes the link of a task that has ended, unless err tells that it has not.
func (t *turn) forgetTask(err error) outcome {
	if err == nil || kg.CodeOf(err) == kg.CodeTaskEnded || kg.CodeOf(err) == kg.CodeTaskNotFound {
		err = t.service.update(t.upstream.ctx, systemCaller, "upstream/forget", func(tx *kg.Tx) error { return forgetLink(tx, t.item.Task) })
		t.settled = true
	}
	if err != nil && t.upstream.ctx.Err() == nil {
		t.service.options.Logger.Error("cannot end the forwarding of a task", "agent", t.agent, "letter", t.letterID(), "error", err)
	}
	return outcome{settled: t.settled, again: t.service.options.Retry.Max}
}

var systemCaller = caller.Caller{Principal: kg.SystemPrincipal()}

// reporter returns koine acting for the agent.
func (t *turn) reporter() caller.Caller {
	return caller.Caller{Principal: kg.SystemPrincipal(), Actor: t.agent}
}

func (t *turn) reportOnTask(r tasks.Report) error {
	_, err := t.service.tasks.SubmitReport(t.upstream.ctx, t.reporter(), t.item.Task, r, tasks.ReadOptions{})
	return err
}

// saveLink stores the link.
func (t *turn) saveLink(ctx context.Context) error {
	return t.service.update(ctx, systemCaller, "upstream/link", func(tx *kg.Tx) error {
		return systemgraph.Write(tx, Graph, t.item.Task.Entity(), t.link.toRecord())
	})
}

// exchangeMessage makes the calls of a turn and applies the answers.
func (t *turn) exchangeMessage(interrupt context.CancelFunc) error {
	if t.letter.Canceled() {
		return t.cancelTask()
	}
	if t.link.sent < t.item.Number {
		if t.letter.Message.Hops >= MaxHops {
			return errLoop
		}
		return t.sendLetter(interrupt)
	}
	if err := t.makeCall(Get, interrupt); err != nil || t.settled || t.isUnary() {
		return err
	}
	err := t.makeCall(Subscribe, interrupt)
	if errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTaskUnknown) { // it has ended meanwhile
		return nil
	}
	return err
}

// sendLetter sends the message.
func (t *turn) sendLetter(interrupt context.CancelFunc) error {
	if !t.isUnary() {
		if err := t.makeCall(SendStream, interrupt); !errors.Is(err, ErrUnsupported) {
			return err
		}
		t.noteUnary()
	}
	return t.makeCall(Send, interrupt)
}

// cancelTask forwards the cancellation of a task.
func (t *turn) cancelTask() error {
	if t.link.task != "" {
		if _, err := t.callOnce(Cancel); err != nil {
			return err
		}
	}
	t.acknowledgeLetter()
	return nil
}

func (t *turn) isCanceled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.item.canceled
}

func (u *upstream) isUnary() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.unary
}

func (u *upstream) noteUnary() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unary = true
}

// makeCall makes a call and applies its answers.
func (t *turn) makeCall(op Op, interrupt context.CancelFunc) error {
	if op.streams() {
		return t.followStream(op, interrupt)
	}
	a, err := t.callOnce(op)
	if err != nil {
		return err
	}
	if op == Send && t.link.task != "" && a.Whole && a.State.AwaitsCreator() {
		held := *a // perhaps as before the message: GetTask tells
		held.State, held.Message = "", nil
		a = &held
	}
	return t.applyAnswer(a, interrupt)
}

// followStream reads the events of a call.
func (t *turn) followStream(op Op, interrupt context.CancelFunc) error {
	events := 0
	for e, err := range sse.Subscribe(t.ctx, t.streamOptions(op)) {
		if err != nil {
			return t.endStream(op, err, interrupt)
		}
		if len(e.Data) == 0 {
			continue
		}
		if events++; events > t.service.options.MaxEvents {
			return errTooLarge
		}
		a, err := t.readAnswer(op, 0, e.Data)
		if err != nil {
			return err
		}
		if op == Subscribe && events == 1 && !a.Whole {
			return nil // the events before it are unknown: GetTask tells
		}
		t.held = nil
		if a.Whole && a.State.AwaitsCreator() {
			held := *a
			t.held, held.State, held.Message = a, "", nil
			a = &held
		}
		if err := t.applyAnswer(a, interrupt); err != nil || t.settled {
			return err
		}
	}
	return nil
}

// endStream returns the error of a stream that ended, nil if the task is to be read again.
func (t *turn) endStream(op Op, err error, interrupt context.CancelFunc) error {
	var other *sse.ResponseError
	switch {
	case errors.As(err, &other):
		a, err := t.readAnswer(op, other.Status, other.Body)
		if err != nil {
			return err
		}
		return t.applyAnswer(a, interrupt)
	case errors.Is(err, sse.ErrEventTooLarge):
		return errTooLarge
	case errors.Is(err, sse.ErrEnded) && t.held != nil:
		return t.applyAnswer(t.held, interrupt)
	case t.answered && (errors.Is(err, sse.ErrEnded) || errors.Is(err, sse.ErrIdle) || t.ctx.Err() != nil):
		return nil
	}
	return delivery.Sanitize(err)
}
