package words

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxWordBytes bounds a word. A longer run is a word of its beginning: base64 and hashes
// are not searched by their ends.
const MaxWordBytes = 64

// Word is a word of a text.
type Word struct {
	// Folded is the word as it is compared.
	Folded string
	// Lower is the word in lower case with its accents, for Language.Stem. It is empty for
	// pairs of Chinese, Japanese and Korean characters.
	Lower string
	// Position counts the words of the text from 0, for phrases.
	Position int
	// Start and End are where the word is in the text, in bytes.
	Start, End int
}

// Split yields the words of a text in order.
func Split(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		position := 0
		for at := 0; at < len(text); {
			r, size := utf8.DecodeRuneInString(text[at:])
			switch {
			case isIdeograph(r):
				end := at
				for end < len(text) {
					r, size := utf8.DecodeRuneInString(text[end:])
					if !isIdeograph(r) {
						break
					}
					end += size
				}
				if !splitPairs(text, at, end, &position, yield) {
					return
				}
				at = end
			case isWordRune(r):
				end := at
				for end < len(text) {
					r, size := utf8.DecodeRuneInString(text[end:])
					if !isWordRune(r) || isIdeograph(r) {
						if !isApostrophe(r) || !letterFollows(text[end+size:]) {
							break
						}
					}
					end += size
				}
				w := newWord(text[at:end])
				w.Position, w.Start, w.End = position, at, end
				position++
				if w.Folded != "" && !yield(w) {
					return
				}
				at = end
			default:
				at += size
			}
		}
	}
}

// splitPairs yields each character of a run with its next one; a character alone is a word.
func splitPairs(text string, at, end int, position *int, yield func(Word) bool) bool {
	for first := true; at < end; first = false {
		_, one := utf8.DecodeRuneInString(text[at:])
		stop := at + one
		if stop < end {
			_, two := utf8.DecodeRuneInString(text[stop:])
			stop += two
		} else if !first {
			return true
		}
		w := Word{Folded: foldText(text[at:stop]), Position: *position, Start: at, End: stop}
		*position++
		if !yield(w) {
			return false
		}
		at += one
	}
	return true
}

func newWord(text string) Word {
	if len(text) > MaxWordBytes {
		text = strings.ToValidUTF8(text[:MaxWordBytes], "")
	}
	text = strings.Map(func(r rune) rune {
		if isApostrophe(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return Word{Lower: text, Folded: foldText(text)}
}

func isWordRune(r rune) bool {
	return r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9') ||
		r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r))
}

// isIdeograph reports whether a character is of a script without spaces.
func isIdeograph(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' }

func letterFollows(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) && !isIdeograph(r)
}

// unfolded are letters that a decomposition leaves as they are.
var unfolded = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ł", "l", "ı", "i", "ς", "σ")

// foldText returns a text in lower case without accents.
func foldText(text string) string {
	ascii := true
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			ascii = false
			break
		}
	}
	if ascii {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
	return norm.NFC.String(unfolded.Replace(text))
}
