package search_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"koine/internal/search"
	"koine/internal/slowtest"
	"koine/internal/textindex"
	"koine/kg"
)

var judgedFile = flag.String("judged", filepath.Join("testdata", "ranking", "debian.tsv.gz"), "texts, queries and judgements that TestRanking measures")

// minRankingGain is how much better than the baseline the search ranks, in nDCG@10.
const minRankingGain = 0.05

// judgedTexts are texts, queries, and which texts people hold relevant for a query.
type judgedTexts struct {
	names    []string
	texts    map[string][2]string // title and body by name
	queries  []string
	relevant []map[string]bool // of each query
}

// readJudged reads lines of "text NAME TITLE BODY", "query N TEXT" and "judged N NAME", with
// tabs between. Queries without judgements are left out.
func readJudged(t *testing.T, path string) *judgedTexts {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	j := &judgedTexts{texts: map[string][2]string{}}
	queries, relevant := map[string]string{}, map[string]map[string]bool{}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch part := strings.Split(lines.Text(), "\t"); part[0] {
		case "text":
			j.names = append(j.names, part[1])
			j.texts[part[1]] = [2]string{part[2], part[3]}
		case "query":
			queries[part[1]], relevant[part[1]] = part[2], map[string]bool{}
		case "judged":
			if _, ok := j.texts[part[2]]; !ok {
				t.Fatalf("%s: judged text %s is unknown", path, part[2])
			}
			relevant[part[1]][part[2]] = true
		default:
			t.Fatalf("%s: line %q", path, lines.Text())
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	for _, n := range slices.Sorted(maps.Keys(queries)) {
		if len(relevant[n]) > 0 {
			j.queries, j.relevant = append(j.queries, queries[n]), append(j.relevant, relevant[n])
		}
	}
	return j
}

// gainOf returns nDCG@10 of an order of texts for a query.
func (j *judgedTexts) gainOf(query int, order []string) float64 {
	gain, ideal := 0.0, 0.0
	for i := range 10 {
		discount := 1 / math.Log2(float64(i)+2)
		if i < len(order) && j.relevant[query][order[i]] {
			gain += discount
		}
		if i < len(j.relevant[query]) {
			ideal += discount
		}
	}
	return gain / ideal
}

func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// baselineOrder returns a function that orders texts by lower-cased words and BM25, with
// title and body as one text.
func (j *judgedTexts) baselineOrder() func(query string) []string {
	const k1, b = 1.2, 0.75
	counts, lengths, with, total := map[string]map[string]float64{}, map[string]float64{}, map[string]float64{}, 0.0
	for name, text := range j.texts {
		counts[name] = map[string]float64{}
		for _, w := range plainWords(text[0] + " " + text[1]) {
			counts[name][w]++
			lengths[name]++
			total++
		}
		for w := range counts[name] {
			with[w]++
		}
	}
	n := float64(len(j.texts))
	return func(query string) []string {
		scores := map[string]float64{}
		for _, w := range plainWords(query) {
			for name, c := range counts {
				if tf := c[w]; tf > 0 {
					scores[name] += math.Log(1+(n-with[w]+0.5)/(with[w]+0.5)) * tf * (k1 + 1) / (tf + k1*(1-b+b*lengths[name]*n/total))
				}
			}
		}
		return slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(a, b))
		})
	}
}

// clipQuery returns the part of a query that the search takes, as a caller would send it.
func clipQuery(query string) string {
	list := plainWords(query)
	out := strings.Join(list[:min(len(list), textindex.MaxQueryWords)], " ")
	for len(out) > textindex.MaxQueryBytes {
		out = out[:strings.LastIndexByte(out, ' ')]
	}
	return out
}

// The search ranks better than words and BM25 alone, by the judgement of people.
// testdata/ranking/README.md names the source.
func TestRanking(t *testing.T) {
	slowtest.WithoutRace(t)
	j := readJudged(t, *judgedFile)
	f := open(t, t.TempDir())
	defer f.close()
	var patches []kg.Patch
	for _, name := range j.names {
		for i, predicate := range []string{"title", "body"} {
			if s := j.texts[name][i]; s != "" {
				patches = append(patches, text("", name, predicate, s))
			}
		}
	}
	for part := range slices.Chunk(patches, 1000) {
		f.apply(part...)
	}
	if err := f.WaitFor(t.Context(), f.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	s, err := f.store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://ann"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	baselineOrder := j.baselineOrder()
	var before, now float64
	for i, query := range j.queries {
		before += j.gainOf(i, baselineOrder(query))
		page, err := f.Search(t.Context(), s, search.Request{Query: clipQuery(query), First: 10})
		if err != nil {
			t.Fatalf("query %q: %v", query, err)
		}
		var order []string
		for _, h := range page.Hits {
			order = append(order, h.Subject.Value()[len("urn:"):])
		}
		now += j.gainOf(i, order)
	}
	n := float64(len(j.queries))
	t.Logf("%s: %d texts, %d queries: nDCG@10 is %.4f, and %.4f by words and BM25 (%+.4f)", *judgedFile, len(j.names), len(j.queries), now/n, before/n, (now-before)/n)
	if (now-before)/n < minRankingGain {
		t.Errorf("nDCG@10 is %.4f better than by words and BM25, want %.2f", (now-before)/n, minRankingGain)
	}
}
