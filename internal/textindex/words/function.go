package words

import "slices"

// HasFunctionWord reports whether a word, as it is folded, is a function word of the language, such
// as "the" or "und".
func (l Language) HasFunctionWord(folded string) bool {
	return functionWords[folded]&functionBits[l] != 0
}

// functionBits are the marks of the languages with a stemmer.
var functionBits = func() (bits [Languages]Marks) {
	for l, tag := range map[Language]string{English: "en", German: "de", French: "fr", Spanish: "es"} {
		bits[l] = 1 << slices.Index(functionLanguages, tag)
	}
	return bits
}()
