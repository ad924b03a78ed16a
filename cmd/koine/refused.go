package main

import (
	"errors"
	"strings"

	"koine/client"
)

// told is the text of an error for people. That of a server's refusal has each of
// several errors, and what to do about it, on a line of its own.
func told(err error) string {
	text := err.Error()
	var refused *client.Error
	if errors.As(err, &refused) {
		if around, ok := strings.CutSuffix(text, refused.Error()); ok {
			text = around + refusal(refused)
		}
	}
	return strings.TrimSpace(text)
}

func refusal(e *client.Error) string {
	text := e.Message
	for _, more := range []string{e.Field, e.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	for i := range e.Errors {
		one := &e.Errors[i]
		if one.Message == e.Message {
			continue
		}
		text += "\n  " + one.Error()
		if reason := one.Reason(); reason != "" && reason != e.Reason {
			text += " (" + string(reason) + ")"
		}
	}
	if e.Reason != "" {
		text += " (" + string(e.Reason) + ")"
	}
	switch {
	case e.Hint == "":
	case e.Reason == client.Unauthenticated && strings.Contains(e.Hint, "Authorization"):
		text += "\nPut a key or a token into KOINE_KEY." // which becomes that header
	default:
		text += "\n" + e.Hint
	}
	return text
}
