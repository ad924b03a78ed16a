package blevebench

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"

	"koine/internal/textindex"
	"koine/internal/textindex/words"
	"koine/kg"
)

func openEngine(b *testing.B, name, dir string) engine {
	if name == "koine" {
		x, _, _, err := textindex.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		return &koine{Index: x}
	}
	// The stems of all words, with positions for phrases, and nothing else.
	mapping := bleve.NewIndexMapping()
	if err := mapping.AddCustomAnalyzer("stems", map[string]any{
		"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name, en.SnowballStemmerName},
	}); err != nil {
		b.Fatal(err)
	}
	field := bleve.NewTextFieldMapping()
	field.Analyzer, field.Store, field.DocValues, field.IncludeInAll, field.IncludeTermVectors = "stems", false, false, false, true
	mapping.DefaultMapping.Dynamic = false
	mapping.DefaultMapping.AddFieldMappingsAt("t", field)
	mapping.DefaultField = "t"
	mapping.ScoringModel = "bm25"
	x, err := bleve.NewUsing(filepath.Join(dir, "index"), mapping, "scorch", "scorch", nil)
	if err != nil {
		b.Fatal(err)
	}
	return &bleveIndex{Index: x, batch: x.NewBatch()}
}

// koine is koine's index.
type koine struct {
	*textindex.Index
	texts uint64
}

func (k *koine) add(t text) error {
	var subject, object kg.ID
	k.texts++
	subject[0], object[0] = 2, 4
	binary.BigEndian.PutUint64(subject[1:], k.texts)
	binary.BigEndian.PutUint64(object[1:], k.texts)
	k.Add(textindex.Text{
		Subject:  textindex.Subject{Order: uint64(t.subject), ID: subject},
		Ref:      textindex.Ref{Graph: kg.DefaultGraphID, Predicate: kg.ID{2, 1}, Object: object},
		Language: words.English, Value: t.value,
	})
	return nil
}

// finish does what search does when it has built the index.
func (k *koine) finish() error {
	k.Settle()
	return k.Save("end")
}

func (k *koine) search(query string) (int, error) {
	q, err := textindex.ParseQuery(query)
	if err != nil {
		return 0, err
	}
	hits, err := k.Search(context.Background(), &textindex.Request{Query: q, First: 10, Readable: func(_, _ kg.ID) bool { return true }})
	return len(hits), err
}

func (k *koine) close() error { return nil }

// batchSize is how many texts bleve gets at a time.
const batchSize = 5000

// bleveIndex is bleve's index.
type bleveIndex struct {
	bleve.Index
	batch *bleve.Batch
	texts int
}

func (x *bleveIndex) add(t text) error {
	x.texts++
	if err := x.batch.Index(strconv.Itoa(x.texts), map[string]any{"t": t.value}); err != nil {
		return err
	}
	if x.batch.Size() < batchSize {
		return nil
	}
	return x.finish()
}

func (x *bleveIndex) finish() error {
	err := x.Batch(x.batch)
	x.batch.Reset()
	return err
}

func (x *bleveIndex) search(query string) (int, error) {
	result, err := x.Search(bleve.NewSearchRequestOptions(bleve.NewMatchQuery(query), 10, 0, false))
	if err != nil {
		return 0, err
	}
	return len(result.Hits), nil
}

func (x *bleveIndex) close() error { return x.Close() }
