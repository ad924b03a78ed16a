package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/alecthomas/kong"

	"koine/client"
)

// errorText is the text of an error of a command for people. That of a server's refusal
// names flags in place of fields, and has each of several errors, and what to do about
// it, on a line of its own.
func errorText(err error, command *kong.Context) string {
	text := err.Error()
	var refused *client.Error
	if errors.As(err, &refused) {
		if around, ok := strings.CutSuffix(text, refused.Error()); ok {
			text = around + refusalText(refused, command)
		}
	}
	return strings.TrimSpace(text)
}

func refusalText(e *client.Error, command *kong.Context) string {
	text, reason, errs := messageText(e, command), e.Reason, e.Errors
	switch {
	case len(errs) == 0:
	case errs[0].Message == e.Message: // the first of them is told as the whole
		if len(errs) > 1 {
			text = errs[0].Error()
		}
		errs = errs[1:]
	case errs[0].Reason() == reason:
		reason = "" // which is told there
	}
	text += bracketReason(reason)
	for i := range errs {
		text += "\n  " + errs[i].Error() + bracketReason(errs[i].Reason())
	}
	switch {
	case e.Hint == "" && e.Reason == client.NotMember && strings.HasSuffix(e.Field, "recipient"):
		text += "\nkoine channel add takes an agent in, or gives it another role; koine channel invite lets it join."
	case e.Hint == "":
	case e.Reason == client.Unauthenticated && strings.Contains(e.Hint, "Authorization"):
		text += "\nPut a key or a token into KOINE_KEY." // which becomes that header
	default:
		text += "\n" + e.Hint
	}
	return text
}

func bracketReason(reason client.Reason) string {
	if reason == "" {
		return ""
	}
	return " (" + string(reason) + ")"
}

// messageText is the message, and what it is about.
func messageText(e *client.Error, command *kong.Context) string {
	field, wrong := e.Field, cmp.Or(e.Detail, e.Message)
	if field == "" { // over HTTP it is part of the message
		field, wrong, _ = strings.Cut(e.Message, ": ")
	}
	if said, ok := flagOfField(command, field); ok {
		return said + ": " + wrong
	}
	text := e.Message
	for _, more := range []string{e.Field, e.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}
