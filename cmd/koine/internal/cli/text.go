package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// StripControls replaces the control characters in untrusted text that could steer a
// terminal.
func StripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// SingleLine is stripControls for one line and one column: it replaces line breaks and tabs too.
func SingleLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t', '\u2028', '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, StripControls(text))
}

// ReadText returns the argument, the content of a file, or standard input.
func ReadText(t Terminal, argument, file string) (string, error) {
	switch {
	case argument != "" && file != "":
		return "", Usagef("a file and an argument are mutually exclusive")
	case file != "" && file != "-":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", AsUsage(err)
		}
		return string(text), nil
	case argument != "" && argument != "-":
		return argument, nil
	}
	text, err := io.ReadAll(io.LimitReader(t.In, MaxAnswerBytes))
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = Usagef("standard input is empty")
	}
	return string(text), err
}

// JSONOrText returns the text if it is JSON, else the text as a JSON string.
func JSONOrText(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return quoted
}

// FormatCount formats a number with separators: 1,234,567.
func FormatCount(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func FormatSize(n int64) string {
	const unit = 1 << 10
	f, suffix := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for f >= unit && len(suffix) > 1 {
		f, suffix = f/unit, suffix[1:]
	}
	return fmt.Sprintf("%.3g %s", f, suffix[0])
}
