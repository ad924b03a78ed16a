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
	Languages // how many there are
)

// Untagged stands for the language of a text without a tag: see ResolveFor.
const Untagged Language = 0xff

// ResolveFor returns the language of a text: l, and for Untagged the one that is detected.
func (l Language) ResolveFor(text string) Language {
	if l != Untagged {
		return l
	}
	return untaggedLanguage(Detect(text))
}

// untaggedLanguage returns a detected language, or English: the words of texts that are too
// short to detect one are found in their own form whatever the language is.
func untaggedLanguage(detected Language, sure bool) Language {
	if sure {
		return detected
	}
	return English
}

// UntaggedLanguage returns the language that Untagged stands for in a text with the words of a
// detector.
func (d *Detector) UntaggedLanguage() Language { return untaggedLanguage(d.Language()) }

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

var stemmers = [Languages]func(*snowballstem.Env) bool{English: english.Stem, German: german.Stem, French: french.Stem, Spanish: spanish.Stem}

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
