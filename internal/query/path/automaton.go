package path

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"koine/kg"
)

// automaton is a path as states and transitions. Every transition is one step; there
// are no empty ones (it is Glushkov's automaton with equivalent states merged).
// State 0 is the start.
type automaton struct {
	states []state
	labels []label
	// accepting is the number of accepting states.
	accepting int
}

// state is a state of the automaton. The path may end in an accepting state.
type state struct {
	accepts bool
	moves   []move
}

// move is the set of transitions with one label.
type move struct {
	label int
	to    []uint8
}

// label is a single step: a statement with the predicate, or with none of the
// predicates, forward or inverted.
type label struct {
	predicates []kg.Term
	negated    bool
	inverse    bool
}

func (l label) equals(m label) bool {
	return l.negated == m.negated && l.inverse == m.inverse && slices.Equal(l.predicates, m.predicates)
}

// positionSet is a set of positions. Position 0 is before the first step; the others are
// the steps of the path with repetitions expanded.
type positionSet [(MaxSteps + 1 + 63) / 64]uint64

func (s *positionSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *positionSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s *positionSet) union(o positionSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s positionSet) forEach(do func(i int)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			do(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// fragment is a part of the automaton under construction: the positions at which it
// may begin and end.
type fragment struct {
	nullable    bool
	first, last positionSet
}

// builder numbers positions and collects the follow sets.
type builder struct {
	labels []label
	at     []int // the label of each position
	follow []positionSet
}

// compileAutomaton builds the automaton that reads the expression from the start or, inverted,
// from the end.
func compileAutomaton(e expression, inverted bool) *automaton {
	b := &builder{at: []int{-1}, follow: make([]positionSet, 1)}
	whole := b.buildFragment(e, inverted)
	b.follow[0] = whole.first
	a := &automaton{labels: b.labels, states: make([]state, len(b.at))}
	for i := range a.states {
		a.states[i] = state{accepts: whole.last.has(i) || i == 0 && whole.nullable, moves: b.movesFrom(b.follow[i])}
	}
	a.mergeStates()
	for _, s := range a.states {
		if s.accepts {
			a.accepting++
		}
	}
	return a
}

// movesFrom groups the positions of a follow set by their labels.
func (b *builder) movesFrom(follow positionSet) (list []move) {
	follow.forEach(func(i int) {
		k := slices.IndexFunc(list, func(m move) bool { return m.label == b.at[i] })
		if k < 0 {
			k = len(list)
			list = append(list, move{label: b.at[i]})
		}
		list[k].to = append(list[k].to, uint8(i))
	})
	slices.SortFunc(list, func(m, n move) int { return m.label - n.label })
	return list
}

func (b *builder) buildFragment(e expression, inverted bool) fragment {
	switch e := e.(type) {
	case link:
		return b.newPosition(label{[]kg.Term{e.predicate}, false, inverted})
	case negated:
		return b.newPosition(label{e.predicates, true, inverted})
	case inverse:
		return b.buildFragment(e.of, !inverted)
	case alternative:
		out := b.buildFragment(e[0], inverted)
		for _, part := range e[1:] {
			f := b.buildFragment(part, inverted)
			out.nullable = out.nullable || f.nullable
			out.first.union(f.first)
			out.last.union(f.last)
		}
		return out
	case sequence:
		out := fragment{nullable: true}
		for i := range e {
			part := e[i]
			if inverted { // from the end: last part first
				part = e[len(e)-1-i]
			}
			out = b.concatFragments(out, b.buildFragment(part, inverted))
		}
		return out
	}
	return b.expandRepeat(e.(repeat), inverted)
}

func (b *builder) newPosition(l label) (f fragment) {
	k := slices.IndexFunc(b.labels, l.equals)
	if k < 0 {
		k = len(b.labels)
		b.labels = append(b.labels, l)
	}
	i := len(b.at)
	b.at, b.follow = append(b.at, k), append(b.follow, positionSet{})
	f.first.add(i)
	f.last.add(i)
	return f
}

func (b *builder) concatFragments(f, g fragment) fragment {
	f.last.forEach(func(i int) { b.follow[i].union(g.first) })
	if f.nullable {
		f.first.union(g.first)
	}
	if g.nullable {
		g.last.union(f.last)
	}
	return fragment{f.nullable && g.nullable, f.first, g.last}
}

// expandRepeat expands a repetition: x{2,4} as x/x/(x/x?)?, which needs fewer
// transitions than x/x/x?/x?, and x{2,} as x/x+.
func (b *builder) expandRepeat(r repeat, inverted bool) fragment {
	optional := fragment{nullable: true}
	if r.most == many {
		if r.least == 0 {
			return b.loopFragment(b.buildFragment(r.of, inverted), true)
		}
		optional = b.loopFragment(b.buildFragment(r.of, inverted), false)
		r.most = r.least
		r.least--
		r.most--
	}
	for range r.most - r.least {
		optional = b.concatFragments(b.buildFragment(r.of, inverted), optional)
		optional.nullable = true
	}
	out := optional
	for range r.least {
		out = b.concatFragments(b.buildFragment(r.of, inverted), out)
	}
	return out
}

// loopFragment adds a transition from the end of the fragment to its beginning.
func (b *builder) loopFragment(f fragment, nullable bool) fragment {
	f.last.forEach(func(i int) { b.follow[i].union(f.first) })
	f.nullable = f.nullable || nullable
	return f
}

// maxMergeRounds bounds the search for equivalent states. A long chain needs as many
// rounds as it has steps and has nothing to merge.
const maxMergeRounds = 32

// mergeStates merges equivalent states, which shrinks the search: p* needs one state, and
// (a|b)/c as many as b/c.
func (a *automaton) mergeStates() {
	class := make([]uint8, len(a.states))
	n := 1
	for range maxMergeRounds {
		next, m := a.refineClasses(class)
		if m == n {
			if n < len(a.states) {
				a.collapseClasses(class, n)
			}
			return
		}
		class, n = next, m
	}
}

// refineClasses separates states that accept differently or have transitions to
// different classes. Classes are numbered in order of first use: state 0 is in
// class 0.
func (a *automaton) refineClasses(class []uint8) (next []uint8, n int) {
	known := map[string]uint8{}
	next = make([]uint8, len(a.states))
	var key []byte
	for i, s := range a.states {
		key = strconv.AppendBool(key[:0], s.accepts)
		for _, m := range s.moves {
			to := distinctClasses(m.to, class)
			key = binary.BigEndian.AppendUint16(key, uint16(m.label))
			key = binary.BigEndian.AppendUint16(key, uint16(len(to)))
			key = append(key, to...)
		}
		c, ok := known[string(key)]
		if !ok {
			c = uint8(len(known))
			known[string(key)] = c
		}
		next[i] = c
	}
	return next, len(known)
}

// distinctClasses returns the distinct classes of the states, sorted.
func distinctClasses(states []uint8, class []uint8) []uint8 {
	out := make([]uint8, len(states))
	for i, s := range states {
		out[i] = class[s]
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// collapseClasses keeps the first state of each class.
func (a *automaton) collapseClasses(class []uint8, n int) {
	out := make([]state, n)
	done := make([]bool, n)
	for i, s := range a.states {
		c := class[i]
		if done[c] {
			continue
		}
		done[c] = true
		for k := range s.moves {
			s.moves[k].to = distinctClasses(s.moves[k].to, class)
		}
		out[c] = s
	}
	a.states = out
}
