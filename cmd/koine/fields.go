package main

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// fieldFlags are the flags and arguments that say a field of the wire, where they have
// another name than the field.
var fieldFlags = map[string][]string{
	"Last-Event-ID":            {"from"},
	"X-Agent-ID":               {"as"},
	"after":                    {"from"},
	"authorIds":                {"author"},
	"beforeSequence":           {"before"},
	"channelId":                {"to", "channel"},
	"correlationId":            {"answers"},
	"graph":                    {"graph", "replace"},
	"idempotencyKey":           {"once"},
	"justification":            {"why"},
	"memberId":                 {"member"},
	"memberPolicy":             {"members-by"},
	"members":                  {"member"},
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
	"tags":                     {"tag"},
	"threadId":                 {"thread"},
	"upToSequence":             {"message"},
}

var (
	// aroundFields is what stands before the name of a field, or behind it.
	aroundFields = regexp.MustCompile(`^(metadata\.koine\.|metadata\.|input\.|mutations\[\d+\]\.statement\.)|\[\d+\]`)
	lastStep     = regexp.MustCompile(`\.?[^.]*$`)
)

// flagOfField is a field of the wire by the flag or the argument of the command that says it,
// or that says what it is within. It is not ok where none does.
func flagOfField(command *kong.Context, field string) (said string, ok bool) {
	if command == nil || command.Selected() == nil {
		return "", false
	}
	for name := aroundFields.ReplaceAllString(field, ""); name != ""; name = lastStep.ReplaceAllString(name, "") {
		first := ""
		for _, one := range slices.Concat(fieldFlags[name], []string{kebabCase(name)}) {
			said, given := flagText(command, one)
			if given {
				return said, true
			}
			first = cmp.Or(first, said)
		}
		if first != "" { // of those that could say it, none was given
			return first, true
		}
	}
	return "", false
}

// flagText is a flag or an argument of the command as one writes it, "" where it has none
// of the name, and whether it was given.
func flagText(command *kong.Context, name string) (said string, given bool) {
	for _, flag := range command.Flags() {
		if flag.Name == name {
			return "--" + name, flag.Set
		}
	}
	for _, argument := range command.Selected().Positional {
		if argument.Name == name {
			if name == "channel" && argument.Set { // it is short
				return stripControls(reflect.Indirect(argument.Target).String()), true
			}
			return "<" + name + ">", argument.Set
		}
	}
	return "", false
}

// kebabCase is a name as flags write it.
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
