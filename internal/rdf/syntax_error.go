package rdf

import (
	"strconv"

	"koine/kg"
)

// SyntaxError is what is wrong with a document, and where.
type SyntaxError struct {
	Document string // Options.Name
	Line     int    // from 1; 0 where the format has none to tell
	Err      error  // usually a *kg.Error
}

// Error is "document:line: message", as editors and people know it.
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

// Unwrap gives the error without its place.
func (e *SyntaxError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, format, args...)
}

func tooLong(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...)
}

// excerpt is the beginning of a text for an error message.
func excerpt(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}
