package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every relative link of the documents leads to a file of the repository, and its
// anchor to a heading there.
func TestLinksOfTheDocuments(t *testing.T) {
	files := slices.Concat([]string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}, documentFiles(t, "docs"), documentFiles(t, "examples"))
	links := 0
	for _, file := range files {
		for _, link := range linksOf(document(t, file)) {
			links++
			target, anchor, _ := strings.Cut(link, "#")
			if target == "" {
				target = path.Base(file)
			}
			target = path.Join(path.Dir(file), target)
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s: %s: there is no %s", file, link, target)
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchorsOf(document(t, target)), anchor) {
				t.Errorf("%s: %s: %s has no heading #%s", file, link, target, anchor)
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d links", links)
	}
}

// Every document is reached from the index, by links.
func TestIndexOfTheDocuments(t *testing.T) {
	reached := map[string]bool{}
	waiting := []string{"docs/README.md"}
	for len(waiting) > 0 {
		file := waiting[0]
		waiting = waiting[1:]
		if reached[file] {
			continue
		}
		reached[file] = true
		if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
			continue // TestLinksOfTheDocuments reports it
		}
		for _, link := range linksOf(document(t, file)) {
			if target, _, _ := strings.Cut(link, "#"); strings.HasSuffix(target, ".md") {
				waiting = append(waiting, path.Join(path.Dir(file), target))
			}
		}
	}
	for _, file := range documentFiles(t, "docs") {
		if !reached[file] {
			t.Errorf("no link leads from docs/README.md to %s", file)
		}
	}
}

var (
	fences     = regexp.MustCompile("(?ms)^```.*?^```[^\n]*$")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	hasScheme  = regexp.MustCompile(`^[a-z]+:`)
	headings   = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// linksOf are the relative links of a document, outside of code.
func linksOf(text string) (links []string) {
	text = inlineCode.ReplaceAllString(fences.ReplaceAllString(text, ""), "")
	for _, link := range linkTarget.FindAllStringSubmatch(text, -1) {
		if !hasScheme.MatchString(link[1]) {
			links = append(links, link[1])
		}
	}
	return links
}

// anchorsOf are the anchors that GitHub gives the headings of a document.
func anchorsOf(text string) (anchors []string) {
	seen := map[string]int{}
	for _, heading := range headings.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		anchor := strings.ToLower(strings.TrimSpace(linkText.ReplaceAllString(heading[1], "$1")))
		anchor = strings.ReplaceAll(notInSlug.ReplaceAllString(anchor, ""), " ", "-")
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
}

// documents are the Markdown files of a folder and all below it, by their paths from
// the root.
func documentFiles(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" { // installed by scripts/install-test-tools.sh
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
