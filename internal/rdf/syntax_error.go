package rdf

import (
	"strconv"

	"koine/kg"
)

// SyntaxError is an error of a document with its location.
type SyntaxError struct {
	Document string // Options.Name
	Line     int    // from 1; 0 if unknown
	Err      error  // usually a *kg.Error
}

// Error returns "document:line: message", the form that editors understand.
func (e *SyntaxError) Error() string {
	where := e.Document
	if where == "" && e.Line > 0 {
		where = "line " + strconv.Itoa(e.Line)
	} else if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if where == "" {
		return e.Err.Error()
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns the error without its location.
func (e *SyntaxError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, format, args...)
}

func tooLong(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...)
}

// excerpt returns the beginning of a text for an error message.
func excerpt(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}
