package main

import (
	"errors"

	"koine/internal/httpd"
)

// originFlags list the web origins that may use the server.
type originFlags struct {
	AllowOrigin []string `help:"Origin whose pages may use the server, such as https://app.example, or * for all; may be repeated. The server's own pages are always allowed. Requires --auth." placeholder:"ORIGIN"`
}

// checkOrigins validates the list. Open mode allows none: every local process is trusted
// there, and pages of other origins must not inherit that.
func (f originFlags) checkOrigins(open bool) ([]string, error) {
	if open && len(f.AllowOrigin) > 0 {
		return nil, usageError{errors.New("--allow-origin requires --auth: in open mode, every allowed page may do anything")}
	}
	list, err := httpd.ParseOrigins(f.AllowOrigin)
	if err != nil {
		return nil, usageError{err}
	}
	return list, nil
}
