package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
	"koine/internal/rdf"
	"koine/kg"
)

// Exit codes. They are part of the interface: scripts rely on them.
const (
	ExitOK          = 0
	ExitFailure     = 1   // any failure without a code of its own
	ExitUsage       = 2   // the command line or the configuration; no store in the directory, no such file
	ExitRefused     = 3   // the request or its input: a bad line in a file, an invalid query, a refused update
	ExitDamaged     = 4   // the store or a backup: a check found faults, the log is damaged, its format is unknown
	ExitUnreachable = 5   // the server does not answer, the data directory is in use
	ExitUnanswered  = 6   // no response to a request in time
	ExitInterrupted = 130 // ended by a signal
)

const ExitHelp = `Exit codes: 0 success, 1 failure, 2 invalid usage, 3 request or input refused, 4 store or backup damaged or of a newer version, 5 server unreachable or data directory in use, 6 no response in time, 130 interrupted.`

// UsageError marks an error in the command line.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// AsUsage marks err as an error in the command line.
func AsUsage(err error) error { return UsageError{err} }

// Usagef returns an error in the command line.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// NotOneOf returns the error of a value that is not among the allowed ones.
func NotOneOf(flag, value string, allowed ...string) error {
	last := len(allowed) - 1
	return Usagef("%s: %q is not one of %s and %s", flag, value, strings.Join(allowed[:last], ", "), allowed[last])
}

// CheckRange returns an error unless the value of a flag is between least and most.
func CheckRange[N int | int64 | float64 | time.Duration](flag string, value, least, most N) error {
	if value >= least && value <= most { // false for NaN
		return nil
	}
	return Usagef("--%s must be between %s and %s", flag, boundText(least), boundText(most))
}

func boundText(bound any) string {
	if f, ok := bound.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(bound)
}

// notInEnum matches the parser's error for such a value.
var notInEnum = regexp.MustCompile(`^(.*) must be one of ("[^"]*"(?:,"[^"]*")*) but got (".*")$`)

// PlainUsage converts an error of the parser to a usageError in plain words.
func PlainUsage(err error) error {
	found := notInEnum.FindStringSubmatch(err.Error())
	if found == nil {
		return AsUsage(err)
	}
	value, unquoting := strconv.Unquote(found[3])
	if unquoting != nil {
		return AsUsage(err)
	}
	allowed := slices.DeleteFunc(strings.Split(strings.ReplaceAll(found[2], `"`, ""), ","), func(one string) bool { return one == "" })
	return NotOneOf(found[1], value, allowed...)
}

// InvalidResponse returns the error of a response that cannot be decoded.
func InvalidResponse(err error) error { return fmt.Errorf("invalid response of the server: %w", err) }

// exitError is an error with an explicit exit code.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// WithCode returns err with an explicit exit code.
func WithCode(err error, code int) error { return exitError{err, code} }

// Refusedf returns the error of a request that cannot be granted, such as one for an object
// that does not exist.
func Refusedf(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), ExitRefused}
}

// Interruption is the error of a command that a signal ended. Its text describes the
// completed work and follows the word "interrupted".
type Interruption struct {
	error
	Standing string
}

func (i Interruption) Unwrap() error { return i.error }

// InterruptedWith adds a description of the completed work to the error of a command that
// a signal ended.
func InterruptedWith(err error, standing string) error {
	if !errors.Is(err, context.Canceled) || errors.As(err, new(Interruption)) {
		return err
	}
	return Interruption{err, standing}
}

// ExitStatus ends a successful command with this code and no message, such as a comparison
// that finds differences.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var usage UsageError
	var own exitError
	var syntax *rdf.SyntaxError
	var refused *client.Error
	var called *url.Error
	var network *net.OpError // net.Error would match every system error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage), errors.Is(err, kg.ErrNoStore): // a wrong directory, not a damaged store
		return ExitUsage
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &refused):
		return exitCodeAt(refused)
	case errors.Is(err, context.Canceled): // before SyntaxError: reading a document may fail because of it
		return ExitInterrupted
	case errors.As(err, &syntax):
		return ExitRefused
	case errors.As(err, &called) && called.Timeout():
		return ExitFailure
	case errors.As(err, &network), errors.As(err, &called):
		return ExitUnreachable
	}
	return exitCodeOf(kg.CodeOf(err))
}

// exitCodeAt returns the exit code for an error of a server. It agrees with the code of
// the same error from a local store.
func exitCodeAt(e *client.Error) int {
	switch {
	case e.Reason == "SERVER_SHUTDOWN", e.Reason == "" && e.Code == 0: // the second case: the response is not koine's
		return ExitFailure
	case e.Reason == client.Timeout: // the query exceeds the time that the operator allows
		return ExitRefused
	}
	return exitCodeOf(kg.Code(e.Reason))
}

func exitCodeOf(code kg.Code) int {
	switch code {
	case kg.CodeDataDirInUse:
		return ExitUnreachable
	case kg.CodeLogDamaged, kg.CodeFormatUnknown:
		return ExitDamaged
	case kg.CodeInternal, kg.CodeOutcomeUnknown, kg.CodeDiskFull, kg.CodeReadOnly, kg.CodeOverloaded, kg.CodeRateLimited, kg.CodeTimeout, kg.CodeClosed:
		return ExitFailure
	}
	return ExitRefused
}
