package blevebench

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"flag"
	"hash/fnv"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var generated = flag.Int("texts", 500_000, "how many texts the generated graph has")

// film is the graph of films that KOINE_FILMS names, or that lies beside the repository.
var film = cmp.Or(os.Getenv("KOINE_FILMS"), "../../../shared/data/movies.nq.gz")

// text is a literal of a subject.
type text struct {
	subject uint32 // hash of its name
	value   string
}

// graph yields the same texts each time.
type graph struct {
	name  string
	texts iter.Seq[text]
}

// graphs are the film graph, if it is there, and a generated one.
func graphs(b *testing.B) []graph {
	all := []graph{{"generated", generateTexts(*generated)}}
	if _, err := os.Stat(film); !errors.Is(err, fs.ErrNotExist) {
		all = append(all, graph{"films", readFilms(b)})
	}
	return all
}

// readFilms yields the literals of the film graph.
func readFilms(b *testing.B) iter.Seq[text] {
	return func(yield func(text) bool) {
		f, err := os.Open(film)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			b.Fatal(err)
		}
		for lines := bufio.NewScanner(z); lines.Scan(); {
			subject, rest, _ := strings.Cut(lines.Text(), " ")
			begin, end := strings.IndexByte(rest, '"'), strings.LastIndexByte(rest, '"')
			if begin < 0 || begin == end {
				continue
			}
			h := fnv.New32a()
			_, _ = h.Write([]byte(subject))
			if !yield(text{h.Sum32(), rest[begin+1 : end]}) {
				return
			}
		}
	}
}

// generateTexts yields texts of 4 to 16 words. A vocabulary of 400,000 words is used by Zipf's
// law: the most frequent word is in about a third of the texts, and half of the words in one
// text or none of 500,000.
func generateTexts(n int) iter.Seq[text] {
	return func(yield func(text) bool) {
		random := rand.New(rand.NewPCG(21, 21))
		vocabulary := generateVocabulary(400_000)
		zipf := rand.NewZipf(random, 1.07, 6, uint64(len(vocabulary)-1))
		var b strings.Builder
		for range n {
			b.Reset()
			for i := range 4 + random.IntN(13) {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(vocabulary[zipf.Uint64()])
			}
			if !yield(text{random.Uint32(), b.String()}) {
				return
			}
		}
	}
}

// generateVocabulary returns different words; frequent ones, which come first, are shorter.
func generateVocabulary(n int) []string {
	random := rand.New(rand.NewPCG(7, 7))
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	endings := []string{"", "", "", "s", "ed", "ing", "ation", "er"}
	known, list := map[string]bool{}, make([]string, 0, n)
	for len(list) < n {
		var b strings.Builder
		syllables := 1 + random.IntN(2)
		for size := len(list); size > 20; size /= 20 {
			syllables++
		}
		for range min(syllables, 4) {
			b.WriteByte(consonants[random.IntN(len(consonants))])
			b.WriteByte(vowels[random.IntN(len(vowels))])
			if random.IntN(3) == 0 {
				b.WriteByte(consonants[random.IntN(len(consonants))])
			}
		}
		b.WriteString(endings[random.IntN(len(endings))])
		if word := b.String(); !known[word] {
			known[word] = true
			list = append(list, word)
		}
	}
	return list
}

// drawQueries returns pairs of words of texts.
func drawQueries(texts iter.Seq[text], n int) (queries []string) {
	random := rand.New(rand.NewPCG(3, 3))
	seen := 0
	for t := range texts {
		words := strings.Fields(t.value)
		if len(words) < 2 {
			continue
		}
		i := random.IntN(len(words))
		j := (i + 1 + random.IntN(len(words)-1)) % len(words)
		query := words[i] + " " + words[j]
		if seen++; len(queries) < n { // a sample of all texts
			queries = append(queries, query)
		} else if at := random.IntN(seen); at < n {
			queries[at] = query
		}
	}
	return queries
}
