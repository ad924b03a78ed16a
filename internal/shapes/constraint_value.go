package shapes

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"koine/internal/pacedregexp"
	"koine/internal/query/valuespace"
	"koine/kg"
)

// own is the base of constraints that read the value nodes only.
type own struct{ named }

func (own) recordReads(*dependencies, []propertyPath, []propertyPath) {}

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

func (c countConstraint) checkValues(_ *dataView, f *checkContext) error {
	n := len(f.values)
	switch {
	case c.least && n < c.n:
		f.degree = c.n - n
		f.addViolation(kg.Term{}, "has "+strconv.Itoa(n)+" of at least "+strconv.Itoa(c.n)+" values")
	case !c.least && n > c.n:
		f.degree = n - c.n
		f.addViolation(kg.Term{}, "has "+strconv.Itoa(n)+" values, at most "+strconv.Itoa(c.n)+" are allowed")
	}
	return nil
}

func (c datatypeConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		switch {
		case value.Datatype() != c.datatype:
			return "is not of the datatype " + c.datatype, nil
		case !valuespace.WellFormed(value):
			return "is not written as one of " + c.datatype, nil
		}
		return "", nil
	})
}

func (c nodeKindConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		name := map[kg.Kind]string{kg.KindIRI: "IRI", kg.KindBlank: "BlankNode", kg.KindLiteral: "Literal"}[value.Kind()]
		if c.kind == name || strings.HasPrefix(c.kind, name+"Or") || strings.HasSuffix(c.kind, "Or"+name) {
			return "", nil
		}
		return "is not of the kind " + c.kind, nil
	})
}

func (c rangeConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		if order, ok := compareLiterals(value, c.bound); ok && c.holds(order) {
			return "", nil
		}
		return "is not " + c.words + " " + clipText(c.bound.Value()), nil
	})
}

// lexicalForm returns the text of an IRI or a literal. It reports false for a blank node.
func lexicalForm(t kg.Term) (string, bool) { return t.Value(), t.Kind() != kg.KindBlank }

func (c lengthConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		text, ok := lexicalForm(value)
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

func (c patternConstraint) checkValues(v *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		if text, ok := lexicalForm(value); ok {
			if found, err := c.re.Match(text, v.meter.spendSteps); found || err != nil {
				return "", err
			}
		}
		return "does not match " + strconv.Quote(c.text), nil
	})
}

// checkValues compares language tags and ranges without case (RFC 4647, section 2).
func (c languageInConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		lang := value.LangKey()
		for _, r := range c.ranges {
			if lang != "" && (r == "*" || lang == r || strings.HasPrefix(lang, r+"-")) {
				return "", nil
			}
		}
		return "is in none of the languages " + strings.Join(c.ranges, ", "), nil
	})
}

func (uniqueLangConstraint) checkValues(_ *dataView, f *checkContext) error {
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
		if !f.addViolation(kg.Term{}, "has several values in the language "+lang) {
			return nil
		}
	}
	return nil
}

func (c hasValueConstraint) checkValues(_ *dataView, f *checkContext) error {
	if !slices.Contains(f.values, c.value) {
		f.addViolation(kg.Term{}, "lacks the value "+clipText(c.value.Name()))
	}
	return nil
}

func (c inConstraint) checkValues(_ *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		if c.members[value] {
			return "", nil
		}
		return "is none of " + c.words, nil
	})
}

// compareLiterals orders two literals as SPARQL's < does (SPARQL 1.1, section 17.3). ok is false if
// they are not ordered, as language-tagged strings are not.
func compareLiterals(a, b kg.Term) (c int, ok bool) {
	if !a.IsLiteral() || !b.IsLiteral() || a.Lang() != "" || b.Lang() != "" {
		return 0, false
	}
	c, ok, _ = valuespace.CompareTerms(a, b)
	return c, ok
}
