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

// Span is where a word is in a text: from Start to End in bytes, and its Position.
type Span struct{ Start, End, Position int }

// WordIn returns the word of the text that the span is of. Folded is empty if nothing is left
// of the word; then it is none.
func (s Span) WordIn(text string) Word {
	part := text[s.Start:s.End]
	w := Word{Position: s.Position, Start: s.Start, End: s.End}
	if r, _ := utf8.DecodeRuneInString(part); isIdeograph(r) {
		w.Folded = foldText(part)
		return w
	}
	w.Lower, w.Folded = foldWord(part)
	return w
}

// Split yields the words of a text in order.
func Split(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		for s := range Spans(text) {
			if w := s.WordIn(text); w.Folded != "" && !yield(w) {
				return
			}
		}
	}
}

// Spans yields where the words of a text are.
func Spans(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		position := 0
		for at := 0; at < len(text); {
			if c := text[at]; c < utf8.RuneSelf && !asciiWord[c] {
				at++
				continue
			}
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
				end := endOfWord(text, at)
				if !yield(Span{at, end, position}) {
					return
				}
				position++
				at = end
			default:
				at += size
			}
		}
	}
}

// asciiWord has the ASCII characters of words.
var asciiWord = func() (out [utf8.RuneSelf]bool) {
	for c := range out {
		out[c] = isWordRune(rune(c))
	}
	return out
}()

// endOfWord returns where the word ends that begins at a place.
func endOfWord(text string, at int) int {
	for at < len(text) {
		if c := text[at]; c < utf8.RuneSelf && asciiWord[c] {
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if (!isWordRune(r) || isIdeograph(r)) && (!isApostrophe(r) || !letterFollows(text[at+size:])) {
			break
		}
		at += size
	}
	return at
}

// splitPairs yields each character of a run with its next one; a character alone is a word.
func splitPairs(text string, at, end int, position *int, yield func(Span) bool) bool {
	for first := true; at < end; first = false {
		_, one := utf8.DecodeRuneInString(text[at:])
		stop := at + one
		if stop < end {
			_, two := utf8.DecodeRuneInString(text[stop:])
			stop += two
		} else if !first {
			return true
		}
		if !yield(Span{at, stop, *position}) {
			return false
		}
		*position++
		at += one
	}
	return true
}

// foldWord returns a word in lower case, and as it is compared.
func foldWord(text string) (lower, folded string) {
	if len(text) > MaxWordBytes {
		text = strings.ToValidUTF8(text[:MaxWordBytes], "")
	}
	text = strings.Map(func(r rune) rune {
		if isApostrophe(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return text, foldText(text)
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
