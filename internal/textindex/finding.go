package textindex

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"

	"koine/kg"
)

// Finding finds all hits of a query. The terms that its words stand for, and the statistics, stay
// those of when it was made. It is for one goroutine.
type Finding struct {
	index   *Index
	request Request
	known   map[queryWord][]form
	parts   map[*segment]*part
	texts   uint64
	average float64
}

// Compare compares in the order of a Finding.
func (s Subject) Compare(t Subject) int { return s.compareTo(t) }

// NewFinding returns a finding of a request without its First and After.
func (x *Index) NewFinding(r Request) *Finding {
	r.First, r.After = math.MaxInt, nil
	f := &Finding{index: x, request: r, known: map[queryWord][]form{}}
	x.readSegments(func(list []*segment) {
		s := &searcher{request: &f.request}
		s.openParts(list)
		f.texts, f.average = s.texts, s.average
		for _, w := range r.Query.allWords() {
			f.known[w] = s.formsOf(w)
		}
	})
	return f
}

// allWords returns the words that are wanted, and those that are not.
func (q *Query) allWords() []queryWord {
	list := q.words[:len(q.words):len(q.words)]
	for _, unwanted := range q.without {
		list = append(list, unwanted...)
	}
	return list
}

// Estimate returns how many texts the caller may read, and how many of them, at most, have words
// of the query.
func (f *Finding) Estimate() (with, texts uint64) {
	for _, w := range f.request.Query.words {
		for _, form := range f.known[w] {
			with += form.texts
		}
	}
	for _, phrase := range f.request.Query.phrases {
		for _, word := range phrase {
			with = min(with, f.exactTexts(word))
		}
	}
	return min(with, f.texts), f.texts
}

// exactTexts returns how many texts have a word of the query as it is.
func (f *Finding) exactTexts(folded string) uint64 {
	for w, forms := range f.known {
		if w.folded == folded && len(forms) > 0 && forms[0].term == exactKey(folded) {
			return forms[0].texts
		}
	}
	return 0
}

// State returns a number. Two findings of one query with the same number have the same hits among
// texts that both know and, with scores, the same scores.
func (f *Finding) State(scores bool) uint64 {
	h := fnv.New64a()
	note := func(n uint64) { _, _ = h.Write(binary.BigEndian.AppendUint64(nil, n)) }
	for _, w := range f.request.Query.allWords() {
		forms := f.known[w]
		if !scores && len(forms) < MaxForms && (len(forms) == 0 || w.standsFor(forms[0].term)) {
			continue // for other texts the word has the same meaning
		}
		note(uint64(len(forms)))
		for _, form := range forms {
			_, _ = h.Write(append([]byte(form.term), 0))
			if scores {
				note(form.texts)
			}
		}
	}
	if scores {
		note(f.texts)
		note(math.Float64bits(f.average))
	}
	return h.Sum64()
}

// openFinding returns a searcher with the words of the finding.
func (f *Finding) openFinding(ctx context.Context, list []*segment) *searcher {
	s := &searcher{ctx: ctx, request: &f.request, known: f.known}
	for _, from := range list {
		if p := f.parts[from]; p != nil {
			s.parts = append(s.parts, p)
		}
	}
	if len(s.parts) < len(list) || len(f.parts) > len(list) {
		s.parts = nil
		s.openParts(list)
		f.parts = make(map[*segment]*part, len(list))
		for _, p := range s.parts {
			f.parts[p.segment] = p
		}
	}
	if len(s.parts) > 0 {
		s.large = s.parts[0].large
	}
	s.texts, s.average = f.texts, f.average
	s.openQuery()
	return s
}

// Scan returns the hits among the next candidates, at most the given number of them, in the order of subjects
// from one on. next is the candidate behind them if there are more.
func (f *Finding) Scan(ctx context.Context, from Subject, candidates int) (hits []Hit, next Subject, more bool, err error) {
	if with, _ := f.Estimate(); with > f.index.light {
		if err := f.index.takeTurn(ctx); err != nil {
			return nil, from, true, err
		}
		defer f.index.endTurn()
	}
	f.index.readSegments(func(list []*segment) {
		s := f.openFinding(ctx, list)
		start := s.spotOf(from)
		for _, w := range s.words {
			w.seekSubject(&start)
		}
		for ; ; candidates-- {
			var at spot
			if at, more = s.nextCandidate(s.words); !more {
				return
			}
			if candidates == 0 {
				next = at.subject()
				return
			}
			var hit *Hit
			if hit, err = s.evaluateSubject(&at); err != nil {
				return
			}
			if hit != nil {
				hits = append(hits, *hit)
			}
			for _, w := range s.words {
				w.passSubject(&at)
			}
		}
	})
	return hits, next, more, err
}

// HitOf returns the hit of a subject, nil if it is none.
func (f *Finding) HitOf(ctx context.Context, subject Subject) (hit *Hit, err error) {
	f.index.readSegments(func(list []*segment) {
		s := f.openFinding(ctx, list)
		at := s.spotOf(subject)
		hit, err = s.evaluateSubject(&at)
	})
	return hit, err
}

// Overflows reports whether a beginning stands for more than MaxBeginnings words.
func (f *Finding) Overflows() bool {
	for _, forms := range f.known {
		if len(forms) > MaxBeginnings {
			return true
		}
	}
	return false
}

// Fits reports whether a subject is a hit if it has these texts, which need not be in the index.
func (f *Finding) Fits(subject kg.ID, texts []Text) (bool, error) {
	with, err := f.request.Query.fit(subject, texts, &f.request.Filter, f.known)
	return len(with) > 0, err
}
