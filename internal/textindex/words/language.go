package words

import (
	"strings"

	"github.com/abadojack/whatlanggo"
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

// minDetected is the length in bytes below which Detect tells no language: the detector
// counts trigrams, and errs on names and headings.
const minDetected = 40

// Detect returns the language of a text without a tag, by whatlanggo. It returns false for
// a text that is short, or that the detector is not sure of.
func Detect(text string) (Language, bool) {
	if len(text) < minDetected {
		return Other, false
	}
	info := whatlanggo.Detect(text)
	if !info.IsReliable() {
		return Other, false
	}
	switch info.Lang {
	case whatlanggo.Eng:
		return English, true
	case whatlanggo.Deu:
		return German, true
	case whatlanggo.Fra:
		return French, true
	case whatlanggo.Spa:
		return Spanish, true
	}
	return Other, true
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
