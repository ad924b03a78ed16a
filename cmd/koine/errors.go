package main

import (
	"cmp"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/cmd/koine/internal/cli"
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

// fieldFlags maps wire fields to the flags and arguments that set them, for fields with a
// different name.
var fieldFlags = map[string][]string{
	"Last-Event-ID":            {"from"},
	"X-Agent-ID":               {"as"},
	"after":                    {"from"},
	"agentId":                  {"agent", "agent[=role]", "id"},
	"allow":                    {"scheme"},
	"authorIds":                {"author"},
	"beforeSequence":           {"before"},
	"channelId":                {"to", "channel"},
	"correlationId":            {"answers"},
	"forbid":                   {"scheme"},
	"graph":                    {"graph", "replace"},
	"idempotencyKey":           {"once"},
	"justification":            {"why"},
	"memberId":                 {"member"},
	"memberPolicy":             {"members-by"},
	"messageId":                {"message"},
	"messageIds":               {"message"},
	"messageType":              {"type"},
	"object.language":          {"language"},
	"object.type":              {"type"},
	"operationName":            {"operation"},
	"parts":                    {"text"},
	"principalId":              {"agent", "agent[=role]"},
	"provenance.sourceAgentId": {"source"},
	"replyToId":                {"reply-to"},
	"requiredCertainty":        {"min-certainty"},
	"resume":                   {"from"},
	"role":                     {"agent[=role]"},
	"scopeId":                  {"scope"},
	"sinceSequence":            {"since"},
	"subscriptionQuery":        {"subscription"},
	"threadId":                 {"thread"},
	"upToSequence":             {"message"},
}

var (
	// aroundFields matches the prefixes and indexes around a field name.
	aroundFields = regexp.MustCompile(`^(metadata\.koine\.|metadata\.|input\.|mutations\[\d+\]\.statement\.)|\[\d+\]`)
	lastStep     = regexp.MustCompile(`\.?[^.]*$`)
)

// flagOfField returns the flag or argument of the command that sets a wire field, or sets
// the object that contains it. It returns false if there is none.
func flagOfField(command *kong.Context, field string) (said string, ok bool) {
	if command == nil || command.Selected() == nil {
		return "", false
	}
	for name := aroundFields.ReplaceAllString(field, ""); name != ""; name = lastStep.ReplaceAllString(name, "") {
		first := ""
		for _, one := range flagNames(name) {
			said, given := flagText(command, one)
			if given {
				return said, true
			}
			first = cmp.Or(first, said)
		}
		if first != "" { // none of the candidates was given: name the first
			return first, true
		}
	}
	return "", false
}

// flagNames returns the names that the flag or argument for a wire field may have.
func flagNames(field string) []string {
	kebab := kebabCase(field)
	return append(slices.Clone(fieldFlags[field]), kebab, strings.TrimSuffix(kebab, "s"))
}

// flagText returns a flag or an argument of the command as it is written, "" if it has
// none of the name, and reports whether it was given.
func flagText(command *kong.Context, name string) (said string, given bool) {
	for _, flag := range command.Flags() {
		if flag.Name == name {
			return "--" + name, flag.Set
		}
	}
	for _, argument := range command.Selected().Positional {
		if argument.Name == name {
			if name == "channel" && argument.Set { // print its value, which is short
				return cli.StripControls(reflect.Indirect(argument.Target).String()), true
			}
			return "<" + name + ">", argument.Set
		}
	}
	return "", false
}

// kebabCase converts a field name to the form of flags.
func kebabCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
