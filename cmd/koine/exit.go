package main

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

	"koine/client"
	"koine/internal/rdf"
	"koine/kg"
)

// Exit codes. They are part of the interface: scripts rely on them.
const (
	exitOK          = 0
	exitFailure     = 1   // any failure without a code of its own
	exitUsage       = 2   // the command line or the configuration; no store in the directory, no such file
	exitRefused     = 3   // the request or its input: a bad line in a file, an invalid query, a refused update
	exitDamaged     = 4   // the store or a backup: a check found faults, the log is damaged, its format is unknown
	exitUnreachable = 5   // the server does not answer, the data directory is in use
	exitUnanswered  = 6   // no response to a request in time
	exitInterrupted = 130 // ended by a signal
)

const exitHelp = `Exit codes: 0 success, 1 failure, 2 invalid usage, 3 request or input refused, 4 store or backup damaged or of a newer version, 5 server unreachable or data directory in use, 6 no response in time, 130 interrupted.`

// usageError marks an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// notOneOf returns the error of a value that is not among the allowed ones.
func notOneOf(flag, value string, allowed ...string) error {
	last := len(allowed) - 1
	return usageError{fmt.Errorf("%s: %q is not one of %s and %s", flag, value, strings.Join(allowed[:last], ", "), allowed[last])}
}

// notInEnum matches the parser's error for such a value.
var notInEnum = regexp.MustCompile(`^(.*) must be one of ("[^"]*"(?:,"[^"]*")*) but got (".*")$`)

// plainUsage converts an error of the parser to a usageError in plain words.
func plainUsage(err error) error {
	found := notInEnum.FindStringSubmatch(err.Error())
	if found == nil {
		return usageError{err}
	}
	value, unquoting := strconv.Unquote(found[3])
	if unquoting != nil {
		return usageError{err}
	}
	allowed := slices.DeleteFunc(strings.Split(strings.ReplaceAll(found[2], `"`, ""), ","), func(one string) bool { return one == "" })
	return notOneOf(found[1], value, allowed...)
}

// invalidResponse returns the error of a response that cannot be decoded.
func invalidResponse(err error) error { return fmt.Errorf("invalid response of the server: %w", err) }

// exitError is an error with an explicit exit code.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// interruption is the error of a command that a signal ended. Its text describes the
// completed work and follows the word "interrupted".
type interruption struct {
	error
	standing string
}

func (i interruption) Unwrap() error { return i.error }

// interruptedWith adds a description of the completed work to the error of a command that
// a signal ended.
func interruptedWith(err error, standing string) error {
	if !errors.Is(err, context.Canceled) || errors.As(err, new(interruption)) {
		return err
	}
	return interruption{err, standing}
}

// exitStatus ends a successful command with this code and no message, such as a comparison
// that finds differences.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	var usage usageError
	var own exitError
	var syntax *rdf.SyntaxError
	var refused *client.Error
	var called *url.Error
	var network *net.OpError // net.Error would match every system error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.Is(err, kg.ErrNoStore): // a wrong directory, not a damaged store
		return exitUsage
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &refused):
		return exitCodeAt(refused)
	case errors.Is(err, context.Canceled): // before SyntaxError: reading a document may fail because of it
		return exitInterrupted
	case errors.As(err, &syntax):
		return exitRefused
	case errors.As(err, &called) && called.Timeout():
		return exitFailure
	case errors.As(err, &network), errors.As(err, &called):
		return exitUnreachable
	}
	return exitCodeOf(kg.CodeOf(err))
}

// exitCodeAt returns the exit code for an error of a server. It agrees with the code of
// the same error from a local store.
func exitCodeAt(e *client.Error) int {
	switch {
	case e.Reason == "SERVER_SHUTDOWN", e.Reason == "" && e.Code == 0: // the second case: the response is not koine's
		return exitFailure
	case e.Reason == client.Timeout: // the query exceeds the time that the operator allows
		return exitRefused
	}
	return exitCodeOf(kg.Code(e.Reason))
}

func exitCodeOf(code kg.Code) int {
	switch code {
	case kg.CodeDataDirInUse:
		return exitUnreachable
	case kg.CodeLogDamaged, kg.CodeFormatUnknown:
		return exitDamaged
	case kg.CodeInternal, kg.CodeOutcomeUnknown, kg.CodeDiskFull, kg.CodeReadOnly, kg.CodeOverloaded, kg.CodeRateLimited, kg.CodeTimeout, kg.CodeClosed:
		return exitFailure
	}
	return exitRefused
}
