package shapes

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"koine/internal/pacedregexp"
	"koine/internal/valuespace"
	"koine/kg"
)

// own is the base of constraints that read the value nodes only.
type own struct{ name string }

func (o own) component() string        { return o.name + "ConstraintComponent" }
func (own) reads(*reads, []way, []way) {}

type (
	countConstraint struct {
		own
		least bool
		n     int
	}
	datatypeConstraint struct {
		own
		datatype string
	}
	nodeKindConstraint struct {
		own
		kind string
	}
	rangeConstraint struct {
		own
		bound kg.Term
		holds func(c int) bool
		words string
	}
	lengthConstraint struct {
		own
		least bool
		n     int
	}
	patternConstraint struct {
		own
		re   *pacedregexp.Regexp
		text string
	}
	languageInConstraint struct {
		own
		ranges []string
	}
	uniqueLangConstraint struct{ own }
	hasValueConstraint   struct {
		own
		value kg.Term
	}
	inConstraint struct {
		own
		members map[kg.Term]bool
		words   string
	}
)

func (c countConstraint) check(_ *view, f *found) error {
	n := len(f.values)
	switch {
	case c.least && n < c.n:
		f.degree = c.n - n
		f.violates(kg.Term{}, "has "+strconv.Itoa(n)+" of at least "+strconv.Itoa(c.n)+" values")
	case !c.least && n > c.n:
		f.degree = n - c.n
		f.violates(kg.Term{}, "has "+strconv.Itoa(n)+" values, at most "+strconv.Itoa(c.n)+" are allowed")
	}
	return nil
}

func (c datatypeConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		switch {
		case value.Datatype() != c.datatype:
			return "is not of the datatype " + c.datatype, nil
		case !valuespace.WellFormed(value):
			return "is not written as one of " + c.datatype, nil
		}
		return "", nil
	})
}

func (c nodeKindConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		name := map[kg.Kind]string{kg.KindIRI: "IRI", kg.KindBlank: "BlankNode", kg.KindLiteral: "Literal"}[value.Kind()]
		if c.kind == name || strings.HasPrefix(c.kind, name+"Or") || strings.HasSuffix(c.kind, "Or"+name) {
			return "", nil
		}
		return "is not of the kind " + c.kind, nil
	})
}

func (c rangeConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		if order, ok := compare(value, c.bound); ok && c.holds(order) {
			return "", nil
		}
		return "is not " + c.words + " " + clip(c.bound.Value()), nil
	})
}

// lexical returns the text of an IRI or a literal. It reports false for a blank node.
func lexical(t kg.Term) (string, bool) { return t.Value(), t.Kind() != kg.KindBlank }

func (c lengthConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		text, ok := lexical(value)
		n := utf8.RuneCountInString(text)
		switch {
		case ok && (c.least && n >= c.n || !c.least && n <= c.n):
			return "", nil
		case c.least:
			return "is shorter than " + strconv.Itoa(c.n) + " characters", nil
		}
		return "is longer than " + strconv.Itoa(c.n) + " characters", nil
	})
}

func (c patternConstraint) check(v *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		if text, ok := lexical(value); ok {
			if found, err := c.re.Match(text, v.meter.spend); found || err != nil {
				return "", err
			}
		}
		return "does not match " + strconv.Quote(c.text), nil
	})
}

// check compares language tags and ranges without case (RFC 4647, section 2).
func (c languageInConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		lang := value.LangKey()
		for _, r := range c.ranges {
			if lang != "" && (r == "*" || lang == r || strings.HasPrefix(lang, r+"-")) {
				return "", nil
			}
		}
		return "is in none of the languages " + strings.Join(c.ranges, ", "), nil
	})
}

func (uniqueLangConstraint) check(_ *view, f *found) error {
	count := map[string]int{}
	var langs []string
	for _, value := range f.values {
		lang := value.LangKey()
		if count[lang]++; lang != "" && count[lang] == 2 {
			langs = append(langs, lang)
		}
	}
	slices.Sort(langs)
	for _, lang := range langs {
		f.aspect, f.degree = lang, count[lang]
		if !f.violates(kg.Term{}, "has several values in the language "+lang) {
			return nil
		}
	}
	return nil
}

func (c hasValueConstraint) check(_ *view, f *found) error {
	if !slices.Contains(f.values, c.value) {
		f.violates(kg.Term{}, "lacks the value "+clip(c.value.Name()))
	}
	return nil
}

func (c inConstraint) check(_ *view, f *found) error {
	return f.each(func(value kg.Term) (string, error) {
		if c.members[value] {
			return "", nil
		}
		return "is none of " + c.words, nil
	})
}
