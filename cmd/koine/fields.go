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

// fieldFlags maps wire fields to the flags and arguments that set them, for fields with a
// different name.
var fieldFlags = map[string][]string{
	"Last-Event-ID":            {"from"},
	"X-Agent-ID":               {"as"},
	"after":                    {"from"},
	"authorIds":                {"author"},
	"beforeSequence":           {"before"},
	"channelId":                {"to", "channel"},
	"correlationId":            {"answers"},
	"graph":                    {"graph", "replace"},
	"names":                    {"scheme", "name"},
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
				return stripControls(reflect.Indirect(argument.Target).String()), true
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
