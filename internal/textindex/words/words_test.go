package words_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"koine/internal/textindex/words"
)

func folded(text string) (out []string) {
	for w := range words.Split(text) {
		out = append(out, w.Folded)
	}
	return out
}

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"The cell, dried.":                  "the cell dried",
		"Größe STRASSE Straße":              "grosse strasse strasse",
		"don't d’accord 'quoted'":           "dont daccord quoted",
		"net/http.RoundTripper 0x7f v1.2":   "net http roundtripper 0x7f v1 2",
		"Café naïve œuvre Łódź Ørsted":      "cafe naive oeuvre lodz orsted",
		"結晶の水":                              "結晶 晶の の水",
		"水":                                 "水",
		"東京Tower2 서울":                       "東京 tower2 서울",
		"ﬁne １２３":                           "fine 123",
		"Σίσυφος ΣΊΣΥΦΟΣ":                   "σισυφοσ σισυφοσ",
		strings.Repeat("x", 100) + " after": strings.Repeat("x", words.MaxWordBytes) + " after",
		"a\xffb":                            "a b",
	} {
		if got := strings.Join(folded(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	const text = "Zwei Größen: 水と油, ende"
	var at []string
	for w := range words.Split(text) {
		if w.Position != len(at) {
			t.Errorf("%q has position %d, want %d", w.Folded, w.Position, len(at))
		}
		at = append(at, text[w.Start:w.End])
	}
	if want := []string{"Zwei", "Größen", "水と", "と油", "ende"}; !slices.Equal(at, want) {
		t.Errorf("the words are %q", at)
	}
}

// The forms of a word share its stem, accents or not.
func TestStem(t *testing.T) {
	for _, x := range []struct {
		language words.Language
		forms    string
	}{
		{words.English, "implement implements implemented implementing implementation"},
		{words.German, "zelle zellen"}, {words.German, "größe größen"},
		{words.French, "capacité capacités"}, {words.Spanish, "célula células"},
		{words.Other, "x"},
	} {
		stems := map[string]bool{}
		for form := range strings.FieldsSeq(x.forms) {
			stems[x.language.Stem(form)] = true
		}
		if len(stems) != 1 {
			t.Errorf("%s: %v", x.forms, stems)
		}
	}
	if words.Other.Stem("Cells") != "cells" {
		t.Error("a language without a stemmer has the folded word")
	}
}

func TestLanguages(t *testing.T) {
	for tag, want := range map[string]words.Language{"en": words.English, "EN-gb": words.English, "de-AT": words.German, "fr": words.French, "es-419": words.Spanish, "it": words.Other, "": words.Other, "eng": words.Other} {
		if got := words.LanguageOf(tag); got != want {
			t.Errorf("%q is %d, want %d", tag, got, want)
		}
	}
	for text, want := range map[string]struct {
		language words.Language
		sure     bool
	}{
		"The dried cells keep more of their capacity after a hundred cycles than the others.":                   {words.English, true},
		"Which packages implement an HTTP client that retries?":                                                 {words.English, true},
		"Package http provides HTTP client and server implementations, and it is used by most.":                 {words.English, true},
		"Die getrockneten Zellen behalten nach hundert Zyklen mehr Kapazität als alle anderen.":                 {words.German, true},
		"Das Wasser im Kristall kostet Kapazität, und die Messung ist nicht genau.":                             {words.German, true},
		"Les cellules séchées gardent plus de leur capacité après cent cycles que toutes les autres.":           {words.French, true},
		"Las celdas secas conservan más de su capacidad después de cien ciclos que todas las demás.":            {words.Spanish, true},
		"El agua en el cristal reduce la capacidad y no se sabe por qué.":                                       {words.Spanish, true},
		"Le celle essiccate mantengono più della loro capacità dopo cento cicli che le altre e non si sa come.": {words.Other, true},
		"As células secas mantêm mais da sua capacidade depois de cem ciclos do que as outras.":                 {words.Other, true},
		"De gedroogde cellen houden na honderd cycli meer van hun capaciteit dan de andere, maar niet alle.":    {words.Other, true},
		"Les celles":        {words.Other, false},
		"run 7 water 1.5 %": {words.Other, false},
		"":                  {words.Other, false},
	} {
		if got, sure := words.Detect(text); got != want.language || sure != want.sure {
			t.Errorf("%q is %d, sure: %v, want %+v", text, got, sure, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("Größe 水と油 don't")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for w := range words.Split(text) {
			if w.Start < 0 || w.End > len(text) || w.Start >= w.End || w.Start < end && utf8.RuneCountInString(text[w.Start:w.End]) != 2 && w.Lower != "" {
				t.Fatalf("%q: %+v", text, w)
			}
			if !utf8.ValidString(w.Folded) || w.Folded == "" {
				t.Fatalf("%q: %+v", text, w)
			}
			if w.Lower != "" {
				end = w.End
			}
		}
	})
}
