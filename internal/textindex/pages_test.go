package textindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"koine/kg"
)

// Pages with the statistics of the first fit together while other texts come and go.
func TestPagesBesideChanges(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 5))
		w := &world{New(), map[key]Text{}}
		w.change(random, 200)
		for _, text := range queries {
			q, err := ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			first := map[key]bool{}
			for k := range w.texts {
				first[k] = true
			}
			r := &Request{Query: q, First: 1000, Readable: func(_, _ kg.ID) bool { return true }}
			r.Shown = func(subject kg.ID, x Ref) (bool, error) {
				for k := range first {
					if k.subject.ID == subject && k.ref == x {
						return true, nil
					}
				}
				return false, nil
			}
			want, err := w.index.Search(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			r.First, r.Statistics = 3, &Statistics{}
			var got []Hit
			for {
				hits, err := w.index.Search(context.Background(), r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, hits...)
				if len(hits) < r.First {
					break
				}
				r.After = &hits[2].Place
				for range 5 { // texts that were not there, with words of the query and others
					x := randomText(random, 30, 4)
					x.Ref.Object, x.Value = id(5, random.IntN(60000)), x.Value+" "+strings.ReplaceAll(text, "-", "")
					w.texts[key{x.Subject, x.Ref}] = x
					w.index.Add(x)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: %s finds by pages\n%v\nand at once\n%v", seed, text, got, want)
			}
		}
	}
}
