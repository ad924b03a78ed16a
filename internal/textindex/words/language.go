package words

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/spanish"
)

// Language is a language with a stemmer, or Other.
type Language uint8

const (
	Other Language = iota
	English
	German
	French
	Spanish
	languages
)

// LanguageOf returns the language of a tag (BCP 47), by its first subtag.
func LanguageOf(tag string) Language {
	primary, _, _ := strings.Cut(tag, "-")
	switch strings.ToLower(primary) {
	case "en":
		return English
	case "de":
		return German
	case "fr":
		return French
	case "es":
		return Spanish
	}
	return Other
}

var stemmers = [languages]func(*snowballstem.Env) bool{English: english.Stem, German: german.Stem, French: french.Stem, Spanish: spanish.Stem}

// Stem returns the stem of a word in lower case, folded.
func (l Language) Stem(word string) string {
	stem := stemmers[l]
	if stem == nil {
		return foldText(word)
	}
	env := snowballstem.NewEnv(word)
	stem(env)
	return foldText(env.Current())
}
