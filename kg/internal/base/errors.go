package base

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"koine/kg/internal/wal"
)

// Code says what kind of failure an Error is. Codes are the one vocabulary of
// failures in koine: adapters turn them into their protocol's own by one table
// each, and clients see them as `reason`. The list only ever grows.
type Code string

// The codes.
const (
	CodeInternal            Code = "INTERNAL"             // a fault of ours; details belong in the log only
	CodeInvalid             Code = "INVALID"              // the request itself is wrong
	CodeLimitExceeded       Code = "LIMIT_EXCEEDED"       // a named bound was passed
	CodeBudgetExceeded      Code = "BUDGET_EXCEEDED"      // the budget that the caller set does not reach
	CodeNotFound            Code = "NOT_FOUND"            // absent, or not to be seen
	CodeGraphNotFound       Code = "GRAPH_NOT_FOUND"      // absent, or not to be seen, said of a graph
	CodePermissionDenied    Code = "PERMISSION_DENIED"    // it may be seen but not done
	CodeSourceForbidden     Code = "SOURCE_FORBIDDEN"     // acting for an agent without the right to
	CodeReserved            Code = "RESERVED"             // koine's own vocabulary, changed by its own calls only
	CodeConstraintViolation Code = "CONSTRAINT_VIOLATION" // refused by verification
	CodeRevisionConflict    Code = "REVISION_CONFLICT"    // changed since the expected revision
	CodeIdempotencyConflict Code = "IDEMPOTENCY_CONFLICT" // the key was used with other content
	CodeOverloaded          Code = "OVERLOADED"           // a queue is full: try again after RetryAfter
	CodeTimeout             Code = "TIMEOUT"              // a time bound was passed
	CodeDiskFull            Code = "DISK_FULL"            // below the reserve of free space; reads go on
	CodeOutcomeUnknown      Code = "OUTCOME_UNKNOWN"      // the store failed while writing; ask again with the same key
	CodeReadOnly            Code = "READ_ONLY"            // the store takes no updates until it is reopened
	CodeLogDamaged          Code = "LOG_DAMAGED"          // the log does not hold what it must; opened read-only
	CodeDataDirInUse        Code = "DATA_DIR_IN_USE"      // another process has the data directory
	CodeFormatUnknown       Code = "FORMAT_UNKNOWN"       // written by a newer koine, or not by koine
	CodeCursorForeign       Code = "CURSOR_FOREIGN"       // of another store, query, view or caller, or changed
	CodeCursorGone          Code = "CURSOR_GONE"          // its revision can no longer be read
	CodePositionGone        Code = "POSITION_GONE"        // of another log, or the log there was trimmed
	CodeRevisionGone        Code = "REVISION_GONE"        // older than the history that is kept
	CodeRevisionAhead       Code = "REVISION_AHEAD"       // newer than the newest
	CodeResync              Code = "RESYNC"               // a watcher cannot go on from where it is
	CodeClosed              Code = "CLOSED"               // the store was closed
	CodeUnauthenticated     Code = "UNAUTHENTICATED"      // no valid credential, or it has ended
	CodeRateLimited         Code = "RATE_LIMITED"         // more than the caller's share: try again after RetryAfter
	CodeAccessChanged       Code = "ACCESS_CHANGED"       // what the caller may see is no longer what it was: read anew
	CodeAlignmentViolation  Code = "ALIGNMENT_VIOLATION"  // a rule of the operator's refuses what was asked
	CodeJudgeLimit          Code = "JUDGE_LIMIT"          // judging the update takes more than it may
	CodeProposalClosed      Code = "PROPOSAL_CLOSED"      // it has been decided, was withdrawn, or has expired
	CodeChannelNotFound     Code = "CHANNEL_NOT_FOUND"    // absent, or not to be seen, said of a channel
	CodeVersionConflict     Code = "VERSION_CONFLICT"     // an entity is no longer of the version that the caller knows
	CodeLastOwner           Code = "LAST_OWNER"           // nobody would be left who owns it
	CodeScopeNotFound       Code = "SCOPE_NOT_FOUND"      // absent, or not to be seen, said of a scope
	CodeScopeEnded          Code = "SCOPE_ENDED"          // nothing new comes into a scope that has ended
	CodeChannelClosed       Code = "CHANNEL_CLOSED"       // it is read on, but takes no message any more
	CodeNameTaken           Code = "NAME_TAKEN"           // another of the same scope has it
	CodeNotMember           Code = "NOT_MEMBER"           // whom a message is addressed to takes no part in its channel
	CodeNoRecipient         Code = "NO_RECIPIENT"         // nobody has the role that a message is addressed to
	CodeMessageExpired      Code = "MESSAGE_EXPIRED"      // it is not answered or acknowledged any more
	CodeTaskNotFound        Code = "TASK_NOT_FOUND"       // absent, or not to be seen, said of a task
	CodeTaskEnded           Code = "TASK_ENDED"           // a task that has ended does not change any more
	CodeAgentNotFound       Code = "AGENT_NOT_FOUND"      // nobody takes tasks under the name
	CodeContentType         Code = "CONTENT_TYPE"         // of a kind that an agent can do nothing with
	CodeUnknownPrefix       Code = "UNKNOWN_PREFIX"       // a name with neither a registered prefix nor a known URI scheme
)

// Error is a failure with its code. Message is meant for the caller and holds
// nothing that it may not see; Err is meant for the log.
type Error struct {
	Code    Code
	Message string
	// Field names the part of the request that is wrong, as a path such as
	// "mutations[3].statement.object"; "" when it is not about one part.
	Field string
	// Hint says what to do, where that is not plain from Message.
	Hint string
	// Limit is the name of the bound that was passed, for CodeLimitExceeded, where
	// it is one that can be set.
	Limit string
	// RetryAfter is set where trying again later makes sense.
	RetryAfter time.Duration
	// Oldest is the oldest position that can be had, for codes that end a
	// reader because the log behind it is gone.
	Oldest *Position
	// OldestSequence is the oldest message that is left, where it is about those of a
	// channel.
	OldestSequence int64
	Err            error
}

// Errorf makes an Error with a message. A %w verb sets what it wraps.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Message
	}
	return e.Message
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// At says which part of the request the error is about. An outer caller's part
// goes before an inner one's.
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

// CodeOf is the code of the first Error in err's chain, CodeInternal if there
// is none, and "" for nil.
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

// AsError is the first Error in err's chain; an error of another kind becomes
// one with CodeInternal and a fixed message.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error", Err: err}
}

func ErrClosed() error { return Errorf(CodeClosed, "the store is closed") }

// ErrLog gives what the log reports a code.
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

// ErrLogDamaged tells where the damage is. What the system said of a file stays out of
// the message, which goes to whoever asks.
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
