package compact

import "unicode"

// letters and digits are how many of them one token of usual vocabularies holds, in names
// and in words that are not frequent.
const (
	letters = 6
	digits  = 3
)

// Tokens estimates how many tokens a language model makes of a text. It depends on the text
// alone, and is rather too high than too low: see TestTokensAreNotTooFew.
func Tokens(text string) int {
	n, run, most := 0, 0, 0
	end := func() {
		if run > 0 {
			n += (run + most - 1) / most
		}
		run = 0
	}
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII && unicode.IsLetter(r):
			if most != letters {
				end()
			}
			run, most = run+1, letters
		case unicode.IsDigit(r):
			if most != digits {
				end()
			}
			run, most = run+1, digits
		case r == ' ': // part of the next word
			end()
		default:
			end()
			n++
		}
	}
	end()
	return n
}
