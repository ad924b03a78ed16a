package base

import "strings"

// Excerpt returns the text, cut to at most most bytes of whole characters and followed by "…"
// if it is longer. Use it for texts from outside in messages.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
