package base

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"koine/kg/internal/wal"
)

// Code classifies an Error. Codes are koine's common vocabulary of failures: each adapter maps
// them to its protocol with one table, and clients see them as `reason`. Codes are only ever
// added.
type Code string

// The codes.
const (
	CodeInternal            Code = "INTERNAL"             // a fault of koine; the details belong in the log only
	CodeInvalid             Code = "INVALID"              // the request is invalid
	CodeLimitExceeded       Code = "LIMIT_EXCEEDED"       // a bound was exceeded: Error.Limit
	CodeBudgetExceeded      Code = "BUDGET_EXCEEDED"      // the caller's budget is too small
	CodeNotFound            Code = "NOT_FOUND"            // absent or not visible
	CodeGraphNotFound       Code = "GRAPH_NOT_FOUND"      // the graph is absent or not visible
	CodePermissionDenied    Code = "PERMISSION_DENIED"    // visible, but not permitted
	CodeSourceForbidden     Code = "SOURCE_FORBIDDEN"     // acting for an agent without the right to do so
	CodeReserved            Code = "RESERVED"             // koine's own vocabulary, changed by its own calls only
	CodeConstraintViolation Code = "CONSTRAINT_VIOLATION" // refused by verification
	CodeRevisionConflict    Code = "REVISION_CONFLICT"    // changed since the expected revision
	CodeIdempotencyConflict Code = "IDEMPOTENCY_CONFLICT" // the key was used with other content
	CodeOverloaded          Code = "OVERLOADED"           // a queue is full: retry after RetryAfter
	CodeTimeout             Code = "TIMEOUT"              // a time limit was exceeded
	CodeDiskFull            Code = "DISK_FULL"            // less free space than the reserve; reads still work
	CodeOutcomeUnknown      Code = "OUTCOME_UNKNOWN"      // the store failed while writing: retry with the same key
	CodeReadOnly            Code = "READ_ONLY"            // the store accepts no updates until it is reopened
	CodeLogDamaged          Code = "LOG_DAMAGED"          // the log is damaged; opened read-only
	CodeDataDirInUse        Code = "DATA_DIR_IN_USE"      // another process uses the data directory
	CodeFormatUnknown       Code = "FORMAT_UNKNOWN"       // written by a newer koine, or not by koine
	CodeCursorForeign       Code = "CURSOR_FOREIGN"       // altered, or of another store, query, view or caller
	CodeCursorGone          Code = "CURSOR_GONE"          // its revision is no longer readable
	CodePositionGone        Code = "POSITION_GONE"        // of another log, or the log was cut there
	CodeRevisionGone        Code = "REVISION_GONE"        // older than the history kept
	CodeRevisionAhead       Code = "REVISION_AHEAD"       // newer than the newest revision
	CodeResync              Code = "RESYNC"               // a watcher cannot continue: read a new snapshot
	CodeClosed              Code = "CLOSED"               // the store was closed
	CodeUnauthenticated     Code = "UNAUTHENTICATED"      // no valid credential, or an expired one
	CodeRateLimited         Code = "RATE_LIMITED"         // more than the caller's rate: retry after RetryAfter
	CodeAccessChanged       Code = "ACCESS_CHANGED"       // the caller's rights have changed: read a new snapshot
	CodeAlignmentViolation  Code = "ALIGNMENT_VIOLATION"  // refused by a rule of the operator
	CodeJudgeLimit          Code = "JUDGE_LIMIT"          // judging the update exceeds its limits
	CodeProposalClosed      Code = "PROPOSAL_CLOSED"      // the proposal was decided or withdrawn, or has expired
	CodeChannelNotFound     Code = "CHANNEL_NOT_FOUND"    // the channel is absent or not visible
	CodeVersionConflict     Code = "VERSION_CONFLICT"     // an entity no longer has the caller's version
	CodeLastOwner           Code = "LAST_OWNER"           // there would be no owner left
	CodeScopeNotFound       Code = "SCOPE_NOT_FOUND"      // the scope is absent or not visible
	CodeScopeEnded          Code = "SCOPE_ENDED"          // an ended scope accepts nothing new
	CodeChannelClosed       Code = "CHANNEL_CLOSED"       // the channel is readable and accepts no messages
	CodeNameTaken           Code = "NAME_TAKEN"           // another one in the intent has the name, or the role of which there is one
	CodeLeaseHeld           Code = "LEASE_HELD"           // another lease of the part of the intent holds
	CodeNotMember           Code = "NOT_MEMBER"           // the recipient is not a member of the channel
	CodeNoRecipient         Code = "NO_RECIPIENT"         // no member has the role addressed
	CodeMessageExpired      Code = "MESSAGE_EXPIRED"      // the message can no longer be answered or acknowledged
	CodeTaskNotFound        Code = "TASK_NOT_FOUND"       // the task is absent or not visible
	CodeTaskEnded           Code = "TASK_ENDED"           // a task that has ended does not change
	CodeAgentNotFound       Code = "AGENT_NOT_FOUND"      // no agent of this name accepts tasks
	CodeContentType         Code = "CONTENT_TYPE"         // a content type that the agent does not support
	CodeContentHeld         Code = "CONTENT_HELD"         // the message waits for review: Error.ProposalID
	CodeUnknownPrefix       Code = "UNKNOWN_PREFIX"       // neither a registered prefix nor a known URI scheme
)

// Error is a failure with its code. Message is for the caller and contains only what it may
// see; Err is for the log.
type Error struct {
	Code    Code
	Message string
	// Field is the path of the invalid part of the request, such as
	// "mutations[3].statement.object"; "" if the error is not about one part.
	Field string
	// Hint tells what to do next, if Message does not.
	Hint string
	// Limit is the name of the configurable bound that was exceeded, for
	// CodeLimitExceeded.
	Limit string
	// ProposalID is the proposal that holds the message, for CodeContentHeld.
	ProposalID string
	// RetryAfter is set if a later retry can succeed.
	RetryAfter time.Duration
	// Oldest is the oldest readable position, for codes that end a reader because the log
	// before it was trimmed.
	Oldest *Position
	// OldestSequence is the oldest retained message of the channel, for errors about its
	// messages.
	OldestSequence int64
	Err            error
}

// Errorf returns an Error with a message. A %w verb sets the wrapped error.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error returns the message, with the field before it.
func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Message
	}
	return e.Message
}

// Unwrap returns the wrapped error, or nil.
func (e *Error) Unwrap() error { return e.Err }

// At returns a copy of the error with field prepended to its path. Callers add their part
// from the inside out.
func (e *Error) At(field string) *Error {
	f := *e
	switch {
	case f.Field == "":
		f.Field = field
	case f.Field[0] == '[':
		f.Field = field + f.Field
	default:
		f.Field = field + "." + f.Field
	}
	return &f
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal if there is none,
// and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// AsError returns the first Error in err's chain. Any other error becomes one with
// CodeInternal and a fixed message.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error", Err: err}
}

// ErrClosed returns the error of a closed store.
func ErrClosed() error { return Errorf(CodeClosed, "the store is closed") }

// ErrLog returns an error of the log with its code.
func ErrLog(err error) error {
	switch {
	case errors.Is(err, wal.ErrVersion):
		return Errorf(CodeFormatUnknown, "the log was written by a newer koine: %w", err)
	case errors.Is(err, wal.ErrDamaged):
		return ErrLogDamaged(err)
	case errors.Is(err, wal.ErrClosed):
		return ErrClosed()
	}
	return fmt.Errorf("the log: %w", err)
}

// ErrLogDamaged returns the error about a damaged log. The message, which every caller may
// see, has the place of the damage and no file path.
func ErrLogDamaged(cause error) *Error {
	e := Errorf(CodeLogDamaged, "the log is damaged")
	var d *wal.DamageError
	var file *fs.PathError
	switch {
	case errors.As(cause, &d):
		e = Errorf(CodeLogDamaged, "the log is damaged at entry %d: %s", d.Index, d.Detail)
		if d.Index == 0 {
			e = Errorf(CodeLogDamaged, "the log is damaged: %s", d.Detail)
		}
	case !errors.As(cause, &file):
		e = Errorf(CodeLogDamaged, "the log is damaged: %v", cause)
	}
	e.Err = cause
	e.Hint = "updates are refused so that no revision is used twice; restore a backup, or export what can be read and load it into a new directory"
	return e
}
