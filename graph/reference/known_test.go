package reference

import (
	"regexp"
	"slices"
	"strings"
)

// A difference is one between koine and graphql-js that is known. Its example must show it, so
// that the list has only what is true.
type difference struct {
	name               string
	why                string
	example, variables string
	is                 func(text string, koine answer, js examined, want executed) bool
}

var differences = []difference{
	{"null for a value", "A nullable variable with a default, or at a place with one, may be null where null is not allowed. graphql-js lets the field fail that uses it; " +
		"koine finds it before it executes and lets the root field fail, even if the place is never reached (null_variable.go).",
		`query ($v: Boolean = true) { agent(id: "ann") { id registration { version @include(if: $v) } } }`, `{"v": null}`,
		func(_ string, koine answer, _ examined, want executed) bool {
			return slices.ContainsFunc(koine.errors, func(f failure) bool { return strings.Contains(f.Message, "is null, but") }) ||
				slices.ContainsFunc(want.Errors, func(f failure) bool { return strings.Contains(f.Message, "must not be null") })
		}},
	{"numbers as texts", "A variable of String may be a number, of Int and Float a text of digits, of ID a fraction, and of Int a number of 64 bits: gqlparser checks less than the specification (3.5).",
		`query ($v: String) { tasks(contextId: $v) { totalCount } }`, `{"v": 3.5}`,
		func(_ string, koine answer, js examined, _ executed) bool {
			return js.Verdict == "refused" && koine.kind == "valid" && all(js.Messages, looseScalar)
		}},
	{"the short form of conditions", "A variable that is a condition may be its value alone, which stands for eq, and a list for in; so may a literal.",
		`query ($v: StringFilter) { entities(where: {label: $v}) { totalCount } }`, `{"v": "Ada"}`,
		func(_ string, koine answer, js examined, _ executed) bool {
			return js.Verdict == "refused" && koine.kind == "valid" && all(js.Messages, shortCondition)
		}},
	{"1.0 for an integer", "A variable of Int may not be 1.0; graphql-js takes it, as JSON has one kind of numbers (3.5.1 leaves it open).",
		`query ($v: Int) { scopes(first: $v) { nodes { id } } }`, `{"v": 1.0}`,
		func(_ string, koine answer, js examined, _ executed) bool {
			return js.Verdict == "valid" && koine.kind != "valid" && slices.ContainsFunc(koine.errors, func(f failure) bool { return strings.HasSuffix(f.Message, "cannot use value 0 as Int") })
		}},
	{"introspection", "A field of __Type that does not apply to a type's kind is false or an empty list; the specification has null (4.2).",
		`{ __type(name: "Entity") { isOneOf enumValues { name } } }`, ``,
		func(_ string, koine answer, _ examined, want executed) bool {
			return unsealed(koine.data) != unsealed(want.Data) && inapplicable.ReplaceAllString(unsealed(koine.data), ":null") == inapplicable.ReplaceAllString(unsealed(want.Data), ":null")
		}},
	{"integers of more than 64 bits", "A literal of a scalar of koine's, as 9223372036854775808, is a validation error, and as the default of a variable an internal error of the operation; " +
		"in a variable's value it is an error of the field, as any value that the scalar refuses.",
		`{ statements(where: {ageSeconds: {eq: 9223372036854775808}}) { totalCount } }`, ``,
		func(text string, koine answer, js examined, _ executed) bool {
			return koine.kind != "valid" && (hugeInteger.MatchString(js.Plain) || hugeInteger.MatchString(text))
		}},
}

var (
	looseScalar    = regexp.MustCompile(`String cannot represent a non string value: -?[0-9.]+$|Float cannot represent non numeric value: "[0-9.]+"$|Int cannot represent non-integer value: "[0-9]+"$|ID cannot represent value: [0-9.]+$|Int cannot represent non 32-bit signed integer value: [0-9]+$`)
	shortCondition = regexp.MustCompile(`Expected type "\w+Filter" to be an object\.|Expected value of type "\w+Filter", found |used in position expecting type "\w+Filter"`)
	inapplicable   = regexp.MustCompile(`:(?:false|\[\])`)
	hugeInteger    = regexp.MustCompile(`\b9223372036854775808\b`)
)

// all reports whether every one of some messages matches.
func all(messages []string, like *regexp.Regexp) bool {
	return len(messages) > 0 && !slices.ContainsFunc(messages, func(m string) bool { return !like.MatchString(m) })
}

// knownDifference is the name of what is known of an answer, "" for nothing.
func knownDifference(text string, koine answer, js examined, want executed) string {
	for _, d := range differences {
		if d.is(text, koine, js, want) {
			return d.name
		}
	}
	return ""
}

// A verdict is a known difference about what is valid, with an example.
type verdict struct {
	name    string
	why     string
	example string
	is      func(valid bool, koine answer, js examined) bool
}

var verdicts = []verdict{
	{"the short form of conditions", "A literal of a condition may be its value alone, which stands for eq, and a list for in.",
		`{ entities(where: {label: "Ada"}) { totalCount } }`,
		func(valid bool, _ answer, js examined) bool {
			return valid && all(js.Messages, shortCondition)
		}},
	{"an object for a scalar", "An object or a list as a literal of String, Int, Float, Boolean or ID is valid, and then an internal error of the field.",
		`{ entity(iri: "ex:ada") { label(lang: [{}]) } }`,
		func(valid bool, _ answer, js examined) bool {
			return valid && all(js.Messages, regexp.MustCompile(`cannot represent (?:a )?non.* value: [{\[]`))
		}},
	{"a leaf beside an object", "Fields of types that exclude each other may have one name if one of them is a leaf and the other has fields (5.3.2): gqlparser compares the types of leaves only.",
		`{ node(id: "ann") { ... on Scope { endReason } ... on Agent { endReason: registration { version } } } }`,
		func(valid bool, _ answer, js examined) bool {
			return valid && all(js.Messages, regexp.MustCompile(`conflict because they return conflicting types`))
		}},
	{"descriptions", "A description before a variable is a syntax error; since September 2025 the specification has descriptions of operations, fragments and variables.",
		`"the count" query { stats { statements } }`,
		func(valid bool, koine answer, js examined) bool {
			return !valid && slices.ContainsFunc(koine.errors, func(f failure) bool {
				return strings.HasSuffix(f.Message, "found String") || strings.HasPrefix(f.Message, "Unexpected String")
			})
		}},
}

// knownVerdict is the name of what is known of a verdict, "" for nothing.
func knownVerdict(valid bool, koine answer, js examined) string {
	for _, d := range verdicts {
		if d.is(valid, koine, js) {
			return d.name
		}
	}
	return ""
}
