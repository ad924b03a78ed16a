package tasks

// State is how far a task is (A2A 1.0, section 4.1.3).
type State string

// The states.
const (
	Submitted     State = "SUBMITTED"      // nobody has begun
	Working       State = "WORKING"        // the handler is at it
	InputRequired State = "INPUT_REQUIRED" // the handler waits for a message
	AuthRequired  State = "AUTH_REQUIRED"  // the handler waits for a credential
	Completed     State = "COMPLETED"
	Failed        State = "FAILED"
	Canceled      State = "CANCELED"
	Rejected      State = "REJECTED" // the handler does not do it
)

// Ended tells whether nothing comes any more.
func (s State) Ended() bool {
	switch s {
	case Completed, Failed, Canceled, Rejected:
		return true
	}
	return false
}

// Fails tells whether it is an end without what was asked for, which may have a reason.
func (s State) Fails() bool { return s == Failed || s == Rejected || s == Canceled }

// Waits tells whether the handler waits for its creator.
func (s State) Waits() bool { return s == InputRequired || s == AuthRequired }

// Known tells whether it is one of the states.
func (s State) Known() bool {
	return s == Submitted || s == Working || s.Waits() || s.Ended()
}
