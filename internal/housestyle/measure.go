package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// measure counts in one package, or in all of them.
type measure struct {
	files, lines        int
	commentLines        int
	pronouns            int
	functions, oneWords int
}

func (m *measure) addCounts(o measure) {
	m.files += o.files
	m.lines += o.lines
	m.commentLines += o.commentLines
	m.pronouns += o.pronouns
	m.functions += o.functions
	m.oneWords += o.oneWords
}

// pronounRate is the number of pronouns in 1,000 lines of comment.
func (m *measure) pronounRate() float64 { return ratePer(m.pronouns, m.commentLines, 1000) }

// oneWordShare is the percentage of functions that are named by one word.
func (m *measure) oneWordShare() float64 { return ratePer(m.oneWords, m.functions, 100) }

func ratePer(n, of int, per float64) float64 {
	if of == 0 {
		return 0
	}
	return per * float64(n) / float64(of)
}

var (
	pronoun   = regexp.MustCompile(`(?i)\b(what|who|whose|whoever)\b`)
	oneWord   = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	directive = regexp.MustCompile(`^//(go:|line |export |nolint)`)
)

// mayCount reports whether a file of this name may be hand-written Go that is not a test.
func mayCount(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains("/"+name, "/third_party/")
}

// measureFile measures a file. It returns false for a generated one.
func measureFile(name string, text []byte) (m measure, handWritten bool, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return measure{}, false, err
	}
	m.files, m.lines = 1, strings.Count(string(text), "\n")
	for _, group := range file.Comments {
		for _, c := range group.List {
			if directive.MatchString(c.Text) {
				continue
			}
			for line := range strings.Lines(c.Text) {
				if strings.Trim(line, "/* \t\n") != "" {
					m.commentLines++
				}
			}
			m.pronouns += len(pronoun.FindAllString(c.Text, -1))
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			m.functions++
			if oneWord.MatchString(f.Name.Name) {
				m.oneWords++
			}
		}
	}
	return m, true, nil
}

// packageOf is the package of a file: the folder that holds it.
func packageOf(name string) string { return path.Dir(name) }
