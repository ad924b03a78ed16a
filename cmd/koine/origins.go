package main

import (
	"errors"

	"koine/internal/httpd"
)

// originFlags say which web pages may use the server.
type originFlags struct {
	AllowOrigin []string `help:"An origin whose pages may use the server, such as https://app.example, or * for all; may be repeated. The server's own pages always may. Needs --auth." placeholder:"ORIGIN"`
}

// checkOrigins checks the list. In open mode there must be none: who may do anything
// because it is on this machine must not be reached by pages of others.
func (f originFlags) checkOrigins(open bool) ([]string, error) {
	if open && len(f.AllowOrigin) > 0 {
		return nil, usageError{errors.New("--allow-origin needs --auth: in open mode every page that is let in may do anything")}
	}
	list, err := httpd.ParseOrigins(f.AllowOrigin)
	if err != nil {
		return nil, usageError{err}
	}
	return list, nil
}
