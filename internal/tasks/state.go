package tasks

// State is the state of a task (A2A 1.0, section 4.1.3).
type State string

// The states.
const (
	Submitted     State = "SUBMITTED"      // not claimed yet
	Working       State = "WORKING"        // the handler works on it
	InputRequired State = "INPUT_REQUIRED" // the handler waits for a message
	AuthRequired  State = "AUTH_REQUIRED"  // the handler waits for a credential
	Completed     State = "COMPLETED"
	Failed        State = "FAILED"
	Canceled      State = "CANCELED"
	Rejected      State = "REJECTED" // the handler refused it
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	switch s {
	case Completed, Failed, Canceled, Rejected:
		return true
	}
	return false
}

// Unsuccessful reports whether the state is final without a result. Such a state may have a
// Failure.
func (s State) Unsuccessful() bool { return s == Failed || s == Rejected || s == Canceled }

// AwaitsCreator reports whether the handler waits for the creator.
func (s State) AwaitsCreator() bool { return s == InputRequired || s == AuthRequired }

// Known reports whether s is a defined state.
func (s State) Known() bool {
	return s == Submitted || s == Working || s.AwaitsCreator() || s.Ended()
}
