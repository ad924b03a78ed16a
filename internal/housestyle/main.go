package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

// bounds are the greatest values that -check lets pass.
type bounds struct {
	pronouns, oneWords               float64 // of the whole tree
	packagePronouns, packageOneWords float64 // of each package; 0: no bound
}

func main() {
	var b bounds
	at := flag.String("at", "", "measure this commit instead of the work tree")
	lines := flag.Bool("lines", false, "print the number of hand-written lines and nothing else")
	check := flag.Bool("check", false, "fail if a bound is exceeded, and print what exceeds it only")
	flag.Float64Var(&b.pronouns, "pronouns", 20, "bound: pronouns in 1,000 lines of comment")
	flag.Float64Var(&b.oneWords, "oneword", 15, "bound: percent of functions named by one lower-case word")
	flag.Float64Var(&b.packagePronouns, "package-pronouns", 0, "the same for each package; 0 is no bound")
	flag.Float64Var(&b.packageOneWords, "package-oneword", 0, "the same for each package; 0 is no bound")
	flag.Parse()

	packages, err := measureAll(*at)
	if err != nil {
		fmt.Fprintln(os.Stderr, "housestyle:", err)
		os.Exit(2)
	}
	var whole measure
	for _, m := range packages {
		whole.addCounts(m)
	}
	switch {
	case *lines:
		fmt.Println(whole.lines)
	case *check:
		failures := b.listExceeded(whole, packages)
		for _, f := range failures {
			fmt.Fprintln(os.Stderr, f)
		}
		if len(failures) > 0 {
			fmt.Fprintln(os.Stderr, "Lower it (docs/glossary.md has the terms); go run ./internal/housestyle prints the whole table.")
			os.Exit(1)
		}
	default:
		printTable(os.Stdout, b, whole, packages)
	}
}

// measureAll measures every package of the work tree, or of a commit.
func measureAll(commit string) (map[string]measure, error) {
	packages := map[string]measure{}
	err := eachFile(commit, func(name string, text []byte) error {
		m, handWritten, err := measureFile(name, text)
		if err != nil || !handWritten {
			return err
		}
		p := packages[packageOf(name)]
		p.addCounts(m)
		packages[packageOf(name)] = p
		return nil
	})
	return packages, err
}

// listExceeded lists the bounds that do not hold.
func (b bounds) listExceeded(whole measure, packages map[string]measure) (failures []string) {
	over := func(where, measured string, value, bound float64) {
		if bound > 0 && value > bound {
			failures = append(failures, fmt.Sprintf("%s: %.1f %s, at most %g", where, value, measured, bound))
		}
	}
	const pronouns, oneWords = "of what/who/whose/whoever in 1,000 comment lines", "% of functions named by one lower-case word"
	over("all packages", pronouns, whole.pronounRate(), b.pronouns)
	over("all packages", oneWords, whole.oneWordShare(), b.oneWords)
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		m := packages[name]
		over(name, pronouns, m.pronounRate(), b.packagePronouns)
		over(name, oneWords, m.oneWordShare(), b.packageOneWords)
	}
	return failures
}

// printTable prints a row for each package, the largest first, and one for the whole.
func printTable(out io.Writer, b bounds, whole measure, packages map[string]measure) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tlines\tcomment lines\tpronouns/1000\tfunctions\tone word %\t  package")
	row := func(name string, m measure) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%.1f\t%d\t%.1f\t  %s\n", m.files, m.lines, m.commentLines, m.pronounRate(), m.functions, m.oneWordShare(), name)
	}
	names := slices.SortedFunc(maps.Keys(packages), func(a, b string) int { return packages[b].lines - packages[a].lines })
	for _, name := range names {
		row(name, packages[name])
	}
	row("all packages", whole)
	fmt.Fprintf(w, "\t\t\t%g\t\t%g\t  bound of the whole\n", b.pronouns, b.oneWords)
	w.Flush()
}
