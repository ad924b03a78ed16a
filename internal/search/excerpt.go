package search

import (
	"strings"
	"unicode/utf8"

	"koine/internal/textindex"
	"koine/internal/textindex/words"
)

// MaxExcerptBytes bounds the text of a match, and lead is how much of it may come before the
// first word of the query.
const (
	MaxExcerptBytes = 300
	lead            = 60
)

// excerptOf returns the part of a text around the first word of a query, on one line. "…"
// stands for the rest.
func excerptOf(text string, language words.Language, q *textindex.Query) string {
	from := 0
	if at := q.FirstIn(text, language); at < len(text) && at > lead && len(text) > MaxExcerptBytes {
		from = at - lead
		if i := strings.IndexByte(text[from:at], ' '); i >= 0 {
			from += i + 1
		}
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	const mark = "…"
	out, room := "", MaxExcerptBytes
	if from > 0 {
		out, room = mark, room-len(mark)
	}
	if rest := text[from:]; len(rest) <= room {
		out += rest
	} else {
		end := room - len(mark)
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		out += rest[:end] + mark
	}
	return strings.Join(strings.Fields(out), " ")
}
