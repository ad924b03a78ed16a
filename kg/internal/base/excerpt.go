package base

import "strings"

// Excerpt is the text if it has at most so many bytes, and else its beginning of at most so
// many, in whole characters and with "…" behind it: for texts from outside in messages.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
