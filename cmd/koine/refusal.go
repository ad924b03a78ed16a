package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/alecthomas/kong"

	"koine/client"
)

// errorText returns the text of a command's error for people. A server's refusal names flags
// instead of fields, and puts each further error and the hint on its own line.
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
	case errs[0].Message == e.Message: // e repeats the first error
		if len(errs) > 1 {
			text = errs[0].Error()
		}
		errs = errs[1:]
	case errs[0].Reason() == reason:
		reason = "" // errs[0] shows it
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
		text += "\nPut a key or a token into KOINE_KEY." // sent as the Authorization header
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

// messageText returns the message, prefixed by the flag or field that it refers to.
func messageText(e *client.Error, command *kong.Context) string {
	field, wrong := e.Field, cmp.Or(e.Detail, e.Message)
	if field == "" { // over HTTP the message contains the field
		field, wrong, _ = strings.Cut(e.Message, ": ")
	}
	if flag, ok := flagOfField(command, field); ok {
		return flag + ": " + wrong
	}
	text := e.Message
	for _, more := range []string{e.Field, e.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}
