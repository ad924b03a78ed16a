package main

import (
	"cmp"
	"errors"
	"slices"
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
		text += "\nkoine channel add adds a member or changes its role; koine channel invite lets an agent join."
	case e.Hint == "":
	case e.Reason == client.Unauthenticated && strings.Contains(e.Hint, "Authorization"):
		text += "\nSet KOINE_KEY to a key or a token." // sent as the Authorization header
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

// messageText returns the message with the flag or the field that it refers to, once: the
// message may begin with the field.
func messageText(e *client.Error, command *kong.Context) string {
	field, wrong := e.Field, cmp.Or(e.Detail, e.Message)
	if field == "" { // over HTTP the message contains the field
		field, wrong, _ = strings.Cut(e.Message, ": ")
	}
	flag, ok := flagOfField(command, field)
	last := field[strings.LastIndexByte(field, '.')+1:]
	rest, named := strings.CutPrefix(wrong, last+" ")
	switch {
	case ok && named && slices.Contains(flagNames(last), strings.Trim(flag, "-<>")):
		return flag + " " + rest
	case ok:
		return flag + ": " + wrong
	case e.Field != "" && !named:
		wrong = e.Field + ": " + wrong
	case e.Field == "":
		wrong = e.Detail
	}
	if e.Detail == "" {
		return cmp.Or(wrong, e.Message)
	}
	return e.Message + ": " + wrong
}
