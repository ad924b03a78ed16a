package tasks

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// cancelNumber is the number of the letter that tells of the cancel of its task.
const cancelNumber = 0

// cancelName is what stands for cancelNumber in the id of a letter.
const cancelName = "cancel"

// LetterID names the letter with a message of a task, or with its cancel for number 0.
func LetterID(task TaskID, number int) string {
	if number == cancelNumber {
		return string(task) + "." + cancelName
	}
	return string(task) + "." + strconv.Itoa(number)
}

// ParseLetterID takes the id of a letter apart.
func ParseLetterID(id string) (task TaskID, number int, ok bool) {
	of, text, _ := strings.Cut(id, ".")
	task = TaskID(of)
	if text == cancelName {
		return task, cancelNumber, task.valid()
	}
	number, err := strconv.Atoi(text)
	return task, number, err == nil && number > 0 && task.valid()
}

// letterEntity is the entity that is in the mailbox: a message, or the task itself for its
// cancel.
func letterEntity(task TaskID, number int) kg.Term {
	if number == cancelNumber {
		return task.Entity()
	}
	return task.message(number)
}

// letterOf is the task and the number of what is in a mailbox.
func letterOf(entity kg.Term) (TaskID, int) {
	if id := idOf(entity); id != "" {
		return id, cancelNumber
	}
	return messageNumber(entity)
}

// waitingLetter is a letter of a task that its handler has not acknowledged.
type waitingLetter struct {
	number int
	since  kg.Revision
}

// waitingLetters lists the letters of the task that its handler has not acknowledged: the
// cancel first, then the others in order.
func (e *edit) waitingLetters() (out []waitingLetter, err error) {
	from := int(integer(e.was, propMailFrom))
	if from == 0 { // they are the newest messages, if there are any
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

// letterSince is when a letter came into the mailbox, 0 for one that is not there.
func (e *edit) letterSince(number int) (kg.Revision, error) {
	mail := kg.Pattern{Subject: letterEntity(e.task.ID, number), Predicate: records.Property(propMail), Object: kg.IRI(string(e.task.Handler)), Graph: e.graph}
	for st, err := range e.tx.MatchOwn(mail) {
		if err != nil {
			return 0, err
		}
		return st.Assertions[0].Revision, nil
	}
	return 0, nil
}

// acknowledge takes the letters that are gone out of the mailbox, of all that wait.
func (e *edit) acknowledge(gone func(waitingLetter) bool) error {
	waiting, err := e.waitingLetters()
	if err != nil {
		return err
	}
	oldest := 0
	for _, l := range waiting {
		switch {
		case gone(l):
			if err := e.state(kg.Remove, letterEntity(e.task.ID, l.number), records.Property(propMail), kg.IRI(string(e.task.Handler))); err != nil {
				return err
			}
		case oldest == 0:
			oldest = l.number // 0 again for the cancel, which comes first
		}
	}
	e.record[propMailFrom] = nil
	if oldest > 0 {
		e.record[propMailFrom] = []kg.Term{kg.Integer(int64(oldest))}
	}
	return nil
}

// withdraw takes all letters of the task out of the mailbox: nobody waits for what comes of
// them.
func (e *edit) withdraw() error { return e.acknowledge(func(waitingLetter) bool { return true }) }

// deliver puts a letter into the mailbox of the handler.
func (e *edit) deliver(number int) error {
	return e.state(kg.Add, letterEntity(e.task.ID, number), records.Property(propMail), kg.IRI(string(e.task.Handler)))
}

// numbersOf are the letters of the task with these ids.
func (e *edit) numbersOf(ids []string) (map[int]bool, error) {
	out := make(map[int]bool, len(ids))
	for i, id := range ids {
		task, number, ok := ParseLetterID(id)
		if !ok || task != e.task.ID || number > e.task.Messages {
			err := kg.Errorf(kg.CodeInvalid, "there is no letter %q of this task", clip(id)).At("letters[" + strconv.Itoa(i) + "]")
			err.Hint = "A letter's id is in the letter: " + LetterID(e.task.ID, 1) + " is the first of the task."
			return nil, err
		}
		out[number] = true
	}
	return out, nil
}

func clip(text string) string { return text[:min(len(text), MaxKeyBytes)] }

// Acknowledge takes a letter out of the mailbox of the agent that asks. It does nothing
// for one that was acknowledged before.
//
// Errors: CodeTaskNotFound where there is no such letter; CodePermissionDenied.
func (s *Service) Acknowledge(ctx context.Context, by caller.Caller, letter string) error {
	task, _, ok := ParseLetterID(letter)
	if !ok {
		return errNoLetter()
	}
	_, err := s.report(ctx, by, task, Report{Letters: []string{letter}})
	if kg.CodeOf(err) == kg.CodeInvalid || kg.CodeOf(err) == kg.CodeTaskNotFound {
		err = errNoLetter()
	}
	return err
}

func errNoLetter() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "there is no such letter in this mailbox").At("letter")
}

// MaxToldAhead bounds the letters of an agent that were told before an older one, of which
// it is remembered that they were.
const MaxToldAhead = 1024

// telling remembers which letters agents were told of since the process began: what a
// report that names no letter can be about. It decides nothing that is not in the log
// behind it: which letters a report takes out of the mailbox stands in its commit, and a
// letter that nobody knows to be told is told again.
type telling struct {
	mu  sync.Mutex // guards what follows
	all map[kg.AgentID]*toldOf
}

// toldOf is what an agent was told of.
type toldOf struct {
	upTo  kg.Revision              // letters of up to here
	ahead map[kg.Revision]bool     // and these
	calls map[kg.Revision]*Telling // that are being told
}

// of is what is known of the agent. The telling is locked.
func (t *telling) of(agent kg.AgentID) *toldOf {
	if t.all == nil {
		t.all = map[kg.AgentID]*toldOf{}
	}
	of := t.all[agent]
	if of == nil {
		of = &toldOf{ahead: map[kg.Revision]bool{}, calls: map[kg.Revision]*Telling{}}
		t.all[agent] = of
	}
	return of
}

// upTo notes that the agent was told of all letters up to a revision that wait.
func (t *telling) upTo(agent kg.AgentID, r kg.Revision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(agent)
	if r <= of.upTo {
		return
	}
	of.upTo = r
	for ahead := range of.ahead {
		if ahead <= r {
			delete(of.ahead, ahead)
		}
	}
}

// knows tells whether the agent was told of a letter. Where it is being told, reported notes
// that it may have been.
func (t *telling) knows(agent kg.AgentID, since kg.Revision, reported *[]*Telling) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.all[agent]
	if of == nil {
		return false
	}
	if call := of.calls[since]; call != nil {
		*reported = append(*reported, call)
	}
	return since <= of.upTo || of.ahead[since]
}

// Telling is a letter that is being told by a call, which the agent may report in.
type Telling struct {
	service *Service
	agent   kg.AgentID
	notice  Notice
	// reported tells that the agent reported on the task meanwhile, and named no letter;
	// taken that the call has ended and the agent took the letter. The later of the two
	// acknowledges the letter. Both are guarded by service.told.mu.
	reported, taken bool
}

// Tell begins to tell an agent of a letter by a call. Done is to be called at its end.
func (s *Service) Tell(agent kg.AgentID, n Notice) *Telling {
	call := &Telling{service: s, agent: agent, notice: n}
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	s.told.of(agent).calls[n.Since] = call
	return call
}

// Done ends a call; taken tells whether the agent took the letter. Then a report that came
// during the call, and named no letter, was about it.
func (c *Telling) Done(ctx context.Context, taken bool) error {
	s := c.service
	s.told.mu.Lock()
	of := s.told.of(c.agent)
	delete(of.calls, c.notice.Since)
	if taken && c.notice.Since > of.upTo && len(of.ahead) < MaxToldAhead {
		of.ahead[c.notice.Since] = true
	}
	c.taken = taken
	reported := c.reported
	s.told.mu.Unlock()
	if !taken || !reported {
		return nil
	}
	return c.acknowledge(ctx)
}

// acknowledge takes the letter out of the mailbox.
func (c *Telling) acknowledge(ctx context.Context) error {
	err := c.service.Acknowledge(ctx, own(), LetterID(c.notice.Task, c.notice.Number))
	if kg.CodeOf(err) == kg.CodeTaskNotFound { // deleted
		err = nil
	}
	return err
}

// ToldUpTo says that an agent was told of all letters up to a revision.
func (s *Service) ToldUpTo(agent kg.AgentID, r kg.Revision) { s.told.upTo(agent, r) }

// acknowledge takes out of the mailbox what the report is about. Letters that are being told
// come back in calls.
func (r *Report) acknowledge(s *Service, e *edit, calls *[]*Telling) error {
	if r.Letters == nil && r.State == "" {
		return nil
	}
	named, err := e.numbersOf(r.Letters)
	if err != nil {
		return err
	}
	return e.acknowledge(func(l waitingLetter) bool {
		switch {
		case r.Letters != nil:
			return named[l.number]
		case s.worker(e.task.Handler) != nil:
			return true // of an older build: it has no mailbox
		case e.task.Handler != e.agent:
			return false
		}
		// Who reports on a task knows of it, and so of its first message.
		return s.told.knows(e.task.Handler, l.since, calls) || l.number == 1
	})
}

// noteReported notes that letters that were being told may be what was reported on. It
// acknowledges those whose calls ended while the report was committed. A letter for which
// that fails is told again.
func (s *Service) noteReported(ctx context.Context, calls []*Telling) {
	if len(calls) == 0 {
		return
	}
	var ended []*Telling
	s.told.mu.Lock()
	for _, c := range calls {
		if c.taken && !c.reported {
			ended = append(ended, c)
		}
		c.reported = true
	}
	s.told.mu.Unlock()
	for _, c := range ended {
		if err := c.acknowledge(context.WithoutCancel(ctx)); err != nil {
			s.options.Logger.Warn("a letter that was reported on is not acknowledged", "agent", c.agent, "letter", LetterID(c.notice.Task, c.notice.Number), "error", err)
		}
	}
}
