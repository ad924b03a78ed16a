package base

// Class is a group of codes that callers handle alike: see Code.Class.
type Class uint8

// The classes.
const (
	ClassInternal    Class = iota // a defect of the server, or damage: retrying does not help
	ClassInvalid                  // the request is wrong and stays wrong
	ClassNotFound                 // absent, or hidden from the caller
	ClassDenied                   // the caller may not do it, or a rule refuses it
	ClassConflict                 // the state is not the one that the request expects
	ClassLimit                    // a bound is exceeded: ask for less
	ClassRate                     // too much at once: retry after RetryAfter
	ClassUnavailable              // the server or its store cannot do it now
)

// Answers is the table of a protocol: its answer to each class of errors, and to the codes
// that have an answer of their own.
type Answers[T any] struct {
	Classes map[Class]T
	Codes   map[Code]T
}

// Of returns the answer to a code. ok is false if the table has neither the code nor its
// class, as for ClassInternal: then the error is internal.
func (a Answers[T]) Of(code Code) (answer T, ok bool) {
	if answer, ok = a.Codes[code]; !ok {
		answer, ok = a.Classes[code.Class()]
	}
	return answer, ok
}

// Class returns the class of the code. A code that the table lacks is ClassInternal.
func (c Code) Class() Class { return classes[c] }

var classes = map[Code]Class{
	CodeInternal:            ClassInternal,
	CodeInvalid:             ClassInvalid,
	CodeLimitExceeded:       ClassLimit,
	CodeBudgetExceeded:      ClassLimit,
	CodeNotFound:            ClassNotFound,
	CodeGraphNotFound:       ClassNotFound,
	CodePermissionDenied:    ClassDenied,
	CodeSourceForbidden:     ClassDenied,
	CodeReserved:            ClassDenied,
	CodeConstraintViolation: ClassDenied,
	CodeRevisionConflict:    ClassConflict,
	CodeIdempotencyConflict: ClassConflict,
	CodeOverloaded:          ClassRate,
	CodeTimeout:             ClassUnavailable,
	CodeDiskFull:            ClassUnavailable,
	CodeOutcomeUnknown:      ClassUnavailable,
	CodeReadOnly:            ClassUnavailable,
	CodeLogDamaged:          ClassUnavailable,
	CodeDataDirInUse:        ClassUnavailable,
	CodeFormatUnknown:       ClassInternal,
	CodeCursorForeign:       ClassInvalid,
	CodeCursorGone:          ClassConflict,
	CodePositionGone:        ClassConflict,
	CodeRevisionGone:        ClassConflict,
	CodeRevisionAhead:       ClassInvalid,
	CodeResync:              ClassConflict,
	CodeClosed:              ClassUnavailable,
	CodeUnauthenticated:     ClassDenied,
	CodeRateLimited:         ClassRate,
	CodeAccessChanged:       ClassConflict,
	CodeAlignmentViolation:  ClassDenied,
	CodeJudgeLimit:          ClassLimit,
	CodeProposalClosed:      ClassConflict,
	CodeChannelNotFound:     ClassNotFound,
	CodeVersionConflict:     ClassConflict,
	CodeLastOwner:           ClassConflict,
	CodeScopeNotFound:       ClassNotFound,
	CodeScopeEnded:          ClassConflict,
	CodeChannelClosed:       ClassConflict,
	CodeNameTaken:           ClassConflict,
	CodeLeaseHeld:           ClassConflict,
	CodeNotMember:           ClassDenied,
	CodeNoRecipient:         ClassNotFound,
	CodeMessageExpired:      ClassConflict,
	CodeTaskNotFound:        ClassNotFound,
	CodeTaskEnded:           ClassConflict,
	CodeAgentNotFound:       ClassNotFound,
	CodeContentType:         ClassInvalid,
	CodeContentHeld:         ClassDenied,
	CodeUnknownPrefix:       ClassInvalid,
}
