package caller

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"koine/kg"
)

// ParseAgent is the agent that a text from outside names, in its canonical
// form. Names hold no space and nothing that is not printed: they go into logs
// and headers.
func ParseAgent(text string) (kg.AgentID, error) {
	switch {
	case text == "":
		return "", kg.Errorf(kg.CodeInvalid, "an agent id cannot be empty")
	case len(text) > kg.MaxAgentIDBytes:
		return "", kg.Errorf(kg.CodeLimitExceeded, "an agent id of %d bytes is longer than the %d that are taken", len(text), kg.MaxAgentIDBytes)
	case !utf8.ValidString(text):
		return "", kg.Errorf(kg.CodeInvalid, "an agent id must be valid UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return "", kg.Errorf(kg.CodeInvalid, "an agent id cannot hold spaces or control characters")
	}
	id := kg.CanonicalAgent(text)
	if len(id) > kg.MaxAgentIDBytes {
		return "", kg.Errorf(kg.CodeLimitExceeded, "an agent id of %d bytes is longer than the %d that are taken", len(id), kg.MaxAgentIDBytes)
	}
	return id, nil
}
