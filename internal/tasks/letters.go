package tasks

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// cancelNumber is the number of the letter that announces the cancellation of a task.
const cancelNumber = 0

// cancelName stands for cancelNumber in the id of a letter.
const cancelName = "cancel"

// LetterID returns the id of the letter with a message of a task, or with its
// cancellation for number 0.
func LetterID(task TaskID, number int) string {
	if number == cancelNumber {
		return string(task) + "." + cancelName
	}
	return string(task) + "." + strconv.Itoa(number)
}

// ParseLetterID parses the id of a letter.
func ParseLetterID(id string) (task TaskID, number int, ok bool) {
	prefix, text, _ := strings.Cut(id, ".")
	task = TaskID(prefix)
	if text == cancelName {
		return task, cancelNumber, task.valid()
	}
	number, err := strconv.Atoi(text)
	return task, number, err == nil && number > 0 && task.valid()
}

// letterEntity returns the entity in the mailbox: a message, or the task itself for its
// cancellation.
func letterEntity(task TaskID, number int) kg.Term {
	if number == cancelNumber {
		return task.Entity()
	}
	return task.messageEntity(number)
}

// letterOf returns the task and the number of an entity in a mailbox.
func letterOf(entity kg.Term) (TaskID, int) {
	if id := IDOf(entity); id != "" {
		return id, cancelNumber
	}
	return messageNumber(entity)
}

// waitingLetter is an unacknowledged letter of a task.
type waitingLetter struct {
	number int
	since  kg.Revision
}

// waitingLetters lists the unacknowledged letters of the task: the cancellation first,
// then messages in order.
func (e *edit) waitingLetters() (out []waitingLetter, err error) {
	from := int(e.was.Integer(propMailFrom))
	if from == 0 { // the newest messages wait, without a gap
		for from = e.task.Messages + 1; from > 1; from-- {
			since, err := e.letterSince(from - 1)
			if err != nil {
				return nil, err
			}
			if since == 0 {
				break
			}
		}
	}
	numbers := []int{cancelNumber}
	for n := from; n <= e.task.Messages; n++ {
		numbers = append(numbers, n)
	}
	for _, n := range numbers {
		since, err := e.letterSince(n)
		if err != nil {
			return nil, err
		}
		if since > 0 {
			out = append(out, waitingLetter{n, since})
		}
	}
	return out, nil
}

// letterSince returns the revision in which a letter came into the mailbox, 0 if it is
// not there.
func (e *edit) letterSince(number int) (kg.Revision, error) {
	mail := kg.Pattern{Subject: letterEntity(e.task.ID, number), Predicate: systemgraph.Property(propMail), Object: kg.IRI(string(e.task.Handler)), Graph: e.graph}
	st, found, err := systemgraph.First(e.tx.MatchOwn, mail)
	if !found {
		return 0, err
	}
	return st.Assertions[0].Revision, nil
}

// removeLetters removes the waiting letters for which gone is true from the mailbox.
func (e *edit) removeLetters(gone func(waitingLetter) bool) error {
	waiting, err := e.waitingLetters()
	if err != nil {
		return err
	}
	oldest := 0
	for _, l := range waiting {
		switch {
		case gone(l):
			if err := e.applyStatement(kg.Remove, letterEntity(e.task.ID, l.number), systemgraph.Property(propMail), kg.IRI(string(e.task.Handler))); err != nil {
				return err
			}
		case oldest == 0:
			oldest = l.number // stays 0 for the cancellation, which comes first
		}
	}
	e.record[propMailFrom] = nil
	if oldest > 0 {
		e.record[propMailFrom] = []kg.Term{kg.Integer(int64(oldest))}
	}
	return nil
}

// removeAllLetters removes all letters of the task from the mailbox, because the handler need
// not answer them any more.
func (e *edit) removeAllLetters() error {
	return e.removeLetters(func(waitingLetter) bool { return true })
}

// addLetter puts a letter into the mailbox of the handler.
func (e *edit) addLetter(number int) error {
	return e.applyStatement(kg.Add, letterEntity(e.task.ID, number), systemgraph.Property(propMail), kg.IRI(string(e.task.Handler)))
}

// numbersOf parses the ids of letters of the task.
func (e *edit) numbersOf(ids []string) (map[int]bool, error) {
	out := make(map[int]bool, len(ids))
	for i, id := range ids {
		task, number, ok := ParseLetterID(id)
		if !ok || task != e.task.ID || number > e.task.Messages {
			err := kg.Errorf(kg.CodeInvalid, "the task has no letter %q", kg.Excerpt(id, MaxKeyBytes)).At("letters[" + strconv.Itoa(i) + "]")
			err.Hint = "Use the id of a delivered letter: " + LetterID(e.task.ID, 1) + " is the first of the task."
			return nil, err
		}
		out[number] = true
	}
	return out, nil
}

// Acknowledge removes a letter from the mailbox of the calling agent. Acknowledging it
// again has no effect.
//
// Errors: CodeTaskNotFound if there is no such letter; CodePermissionDenied.
func (s *Service) Acknowledge(ctx context.Context, by caller.Caller, letter string) error {
	task, _, ok := ParseLetterID(letter)
	if !ok {
		return errNoLetter()
	}
	_, err := s.applyReport(ctx, by, task, Report{Letters: []string{letter}})
	if kg.CodeOf(err) == kg.CodeInvalid || kg.CodeOf(err) == kg.CodeTaskNotFound {
		err = errNoLetter()
	}
	return err
}

func errNoLetter() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "the mailbox has no such letter").At("letter")
}

// MaxDeliveredAhead bounds, for each agent, the remembered letters that were delivered
// before an older one.
const MaxDeliveredAhead = 1024

// deliveries remembers the letters delivered to each agent since the process started. It
// decides which letters a report without Letters acknowledges. Losing it loses nothing:
// the acknowledged letters are in the report's commit, and a letter not known as
// delivered is delivered again.
type deliveries struct {
	mu  sync.Mutex // guards all and everything in it
	all map[kg.AgentID]*deliveredTo
}

// deliveredTo holds the letters delivered to an agent.
type deliveredTo struct {
	upTo  kg.Revision               // all letters up to this revision
	ahead map[kg.Revision]bool      // and letters of these later revisions
	calls map[kg.Revision]*Delivery // deliveries in progress
}

// stateOf returns the state of an agent, creating it. The caller holds t.mu.
func (t *deliveries) stateOf(agent kg.AgentID) *deliveredTo {
	if t.all == nil {
		t.all = map[kg.AgentID]*deliveredTo{}
	}
	state := t.all[agent]
	if state == nil {
		state = &deliveredTo{ahead: map[kg.Revision]bool{}, calls: map[kg.Revision]*Delivery{}}
		t.all[agent] = state
	}
	return state
}

// markUpTo records that all waiting letters up to a revision were delivered to the agent.
func (t *deliveries) markUpTo(agent kg.AgentID, r kg.Revision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.stateOf(agent)
	if r <= state.upTo {
		return
	}
	state.upTo = r
	for ahead := range state.ahead {
		if ahead <= r {
			delete(state.ahead, ahead)
		}
	}
}

// wasDelivered reports whether a letter was delivered to the agent. If its delivery is in
// progress, wasDelivered appends it to reported.
func (t *deliveries) wasDelivered(agent kg.AgentID, since kg.Revision, reported *[]*Delivery) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.all[agent]
	if state == nil {
		return false
	}
	if call := state.calls[since]; call != nil {
		*reported = append(*reported, call)
	}
	return since <= state.upTo || state.ahead[since]
}

// Delivery is the delivery of a letter by a call, during which the agent may report on
// the task.
type Delivery struct {
	service *Service
	agent   kg.AgentID
	notice  Notice
	// reported means that the agent reported on the task during the call without naming
	// letters; accepted means that the call ended and the agent accepted the letter. The
	// later of the two acknowledges the letter. Both are guarded by service.delivered.mu.
	reported, accepted bool
}

// StartDelivery starts the delivery of a letter by a call. The caller must call Done at its end.
func (s *Service) StartDelivery(agent kg.AgentID, n Notice) *Delivery {
	call := &Delivery{service: s, agent: agent, notice: n}
	s.delivered.mu.Lock()
	defer s.delivered.mu.Unlock()
	s.delivered.stateOf(agent).calls[n.Since] = call
	return call
}

// Done ends a delivery; accepted reports whether the agent accepted the letter. If so, a
// report that came during the call without naming letters acknowledges it.
func (c *Delivery) Done(ctx context.Context, accepted bool) error {
	s := c.service
	s.delivered.mu.Lock()
	state := s.delivered.stateOf(c.agent)
	delete(state.calls, c.notice.Since)
	if accepted && c.notice.Since > state.upTo && len(state.ahead) < MaxDeliveredAhead {
		state.ahead[c.notice.Since] = true
	}
	c.accepted = accepted
	reported := c.reported
	s.delivered.mu.Unlock()
	if !accepted || !reported {
		return nil
	}
	return c.removeLetter(ctx)
}

// removeLetter removes the letter from the mailbox.
func (c *Delivery) removeLetter(ctx context.Context) error {
	err := c.service.Acknowledge(ctx, systemCaller(), LetterID(c.notice.Task, c.notice.Number))
	if kg.CodeOf(err) == kg.CodeTaskNotFound { // deleted
		err = nil
	}
	return err
}

// MarkDelivered records that all letters up to a revision were delivered to an agent.
func (s *Service) MarkDelivered(agent kg.AgentID, r kg.Revision) { s.delivered.markUpTo(agent, r) }

// removeLetters removes the letters that the report covers from the mailbox. It returns
// deliveries in progress in calls.
func (r *Report) removeLetters(s *Service, e *edit, calls *[]*Delivery) error {
	if r.Letters == nil && r.State == "" {
		return nil
	}
	named, err := e.numbersOf(r.Letters)
	if err != nil {
		return err
	}
	return e.removeLetters(func(l waitingLetter) bool {
		switch {
		case r.Letters != nil:
			return named[l.number]
		case s.Worker(e.task.Handler) != nil:
			return true // left by an older build: workers have no mailbox
		case e.task.Handler != e.agent:
			return false
		}
		// An agent that reports on a task has seen its first message.
		return s.delivered.wasDelivered(e.task.Handler, l.since, calls) || l.number == 1
	})
}

// noteReported marks deliveries in progress as reported. It acknowledges those that
// ended while the report was committed. If that fails, the letter is delivered again.
func (s *Service) noteReported(ctx context.Context, calls []*Delivery) {
	if len(calls) == 0 {
		return
	}
	var ended []*Delivery
	s.delivered.mu.Lock()
	for _, c := range calls {
		if c.accepted && !c.reported {
			ended = append(ended, c)
		}
		c.reported = true
	}
	s.delivered.mu.Unlock()
	for _, c := range ended {
		if err := c.removeLetter(context.WithoutCancel(ctx)); err != nil {
			s.options.Logger.Warn("cannot acknowledge a letter that was reported on", "agent", c.agent, "letter", LetterID(c.notice.Task, c.notice.Number), "error", err)
		}
	}
}
