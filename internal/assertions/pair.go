package assertions

import (
	"encoding/binary"
	"hash/maphash"

	"koine/kg"
)

// pairBlank pairs the blank nodes of two sets of statements and returns names for those of
// after: the label of the partner, or a label that before does not use. It uses colour
// refinement: nodes have the same colour as long as their statements, those of their
// neighbours, and so on, are the same. Among nodes that remain equal, one of each side is
// paired, which distinguishes their neighbours.
//
// Statements are then compared with these names, so that equality is certain. A difference
// may result from a wrong guess, or from the limit on work: then unsure is true.
func pairBlank(before, after []Statement, work int) (names map[kg.Term]kg.Term, unsure bool) {
	p := &pairing{seed: maphash.MakeSeed(), work: work, numbers: [2]map[kg.Term]int32{{}, {}}}
	for i := range before {
		p.addStatement(0, &before[i])
	}
	for i := range after {
		p.addStatement(1, &after[i])
	}
	// First pair nodes with equal statements and assertions, then those with equal
	// statements, then those in equal positions next to paired nodes.
	p.pairAlike(true)
	for more := true; more && p.work >= 0; {
		more = p.pairAlike(false)
		more = p.pairByPlace() || more
	}
	p.pairByLabel()
	return p.afterNames(), p.unsure && p.hasUnpaired()
}

const unpaired = -1

// blankStatement is a statement with blank nodes.
type blankStatement struct {
	nodes [3]int32 // subject, object and graph, or unpaired
	says  uint64   // hash of all other terms
	whole uint64   // hash of all other terms and the assertions
}

type pairing struct {
	seed    maphash.Seed
	work    int // remaining
	unsure  bool
	numbers [2]map[kg.Term]int32 // of the nodes of each side
	labels  []kg.Term            // by node
	side    []uint8
	partner []int32 // by node, or unpaired
	about   [][]int32
	all     []blankStatement

	colour  []int32      // by node
	members [][2][]int32 // by colour and side
	index   []int32      // index of each node in its members
	touched []int32      // colours that are new or have lost members since pairAlone
	whole   bool         // assertions count too
}

func (p *pairing) addStatement(side uint8, st *Statement) {
	var s blankStatement
	var key []byte
	for i, t := range [...]kg.Term{st.Subject, st.Object, st.Graph} {
		s.nodes[i] = unpaired
		if t.Kind() == kg.KindBlank {
			s.nodes[i] = p.numberOf(side, t)
		} else {
			key = appendTerm(append(key, byte(i)), t)
		}
	}
	key = appendTerm(key, st.Predicate)
	s.says = maphash.Bytes(p.seed, key)
	for i := range st.Assertions {
		a := st.Assertions[i]
		a.Revision = 0
		key = appendAssertion(key, &a)
	}
	s.whole = maphash.Bytes(p.seed, key)
	n := int32(len(p.all))
	p.all = append(p.all, s)
	for i, node := range s.nodes {
		if node != unpaired && (i == 0 || node != s.nodes[0]) && (i < 2 || node != s.nodes[1]) {
			p.about[node] = append(p.about[node], n)
		}
	}
}

func (p *pairing) numberOf(side uint8, t kg.Term) int32 {
	n, ok := p.numbers[side][t]
	if !ok {
		n = int32(len(p.labels))
		p.numbers[side][t] = n
		p.labels, p.side = append(p.labels, t), append(p.side, side)
		p.partner, p.about = append(p.partner, unpaired), append(p.about, nil)
	}
	return n
}

// pairAlike pairs nodes of equal colour and reports whether it paired any.
func (p *pairing) pairAlike(whole bool) (some bool) {
	p.whole = whole
	more := p.refineColours(p.resetColours())
	some = p.pairAlone()
	for c := int32(0); more && int(c) < len(p.members); c++ { // refining adds colours
		for more && p.bothSides(c) && p.partner[p.members[c][0][0]] == unpaired {
			one, other := p.members[c][0][0], p.members[c][1][0]
			p.pairNodes(one, other)
			some = true
			var dirty []int32
			fresh := p.newColour()
			for _, n := range [...]int32{one, other} {
				p.changeColour(n, fresh)
				dirty = p.appendNeighbours(dirty, n)
			}
			p.unsure = p.unsure || len(dirty) > 0
			more = p.refineColours(dirty)
			p.pairAlone()
		}
	}
	return some
}

// pairAlone pairs nodes that are the only ones of their colour on each side. It runs before
// any guess; after a guess, the neighbours of all unpaired nodes are examined again.
func (p *pairing) pairAlone() (some bool) {
	for _, c := range p.touched {
		if m := p.members[c]; len(m[0]) == 1 && len(m[1]) == 1 && p.partner[m[0][0]] == unpaired {
			p.pairNodes(m[0][0], m[1][0])
			some = true
		}
	}
	p.touched = p.touched[:0]
	return some
}

func (p *pairing) bothSides(c int32) bool {
	return len(p.members[c][0]) > 0 && len(p.members[c][1]) > 0
}

func (p *pairing) pairNodes(one, other int32) { p.partner[one], p.partner[other] = other, one }

// resetColours gives each pair its own colour and all other nodes a common one, and returns
// the other nodes.
func (p *pairing) resetColours() (free []int32) {
	p.members, p.touched, p.colour, p.index = nil, nil, make([]int32, len(p.labels)), make([]int32, len(p.labels))
	rest := p.newColour()
	for n := range int32(len(p.labels)) {
		switch other := p.partner[n]; {
		case other == unpaired:
			p.setColour(n, rest)
			free = append(free, n)
		case n < other:
			fresh := p.newColour()
			p.setColour(n, fresh)
			p.setColour(other, fresh)
		}
	}
	return free
}

func (p *pairing) newColour() int32 {
	c := int32(len(p.members))
	p.members, p.touched = append(p.members, [2][]int32{}), append(p.touched, c)
	return c
}

func (p *pairing) setColour(n, c int32) {
	list := &p.members[c][p.side[n]]
	p.colour[n], p.index[n] = c, int32(len(*list))
	*list = append(*list, n)
}

func (p *pairing) changeColour(n, c int32) {
	list := &p.members[p.colour[n]][p.side[n]]
	last := (*list)[len(*list)-1]
	(*list)[p.index[n]], p.index[last] = last, p.index[n]
	*list = (*list)[:len(*list)-1]
	p.setColour(n, c)
}

// appendNeighbours adds the unpaired nodes that share a statement with the node.
func (p *pairing) appendNeighbours(list []int32, n int32) []int32 {
	p.work -= len(p.about[n])
	for _, s := range p.about[n] {
		for _, other := range p.all[s].nodes {
			if other != unpaired && other != n && p.partner[other] == unpaired {
				list = append(list, other)
			}
		}
	}
	return list
}

// refineColours refines the colours until they are stable, beginning with nodes next to a change.
// It reports false if the work limit is exceeded.
func (p *pairing) refineColours(dirty []int32) bool {
	for len(dirty) > 0 {
		byColour := map[int32][]int32{}
		var colours []int32
		seen := map[int32]bool{}
		for _, n := range dirty {
			if c := p.colour[n]; !seen[n] {
				if seen[n] = true; len(byColour[c]) == 0 {
					colours = append(colours, c)
				}
				byColour[c] = append(byColour[c], n)
			}
		}
		dirty = nil
		for _, c := range colours {
			if p.bothSides(c) { // otherwise there is no partner
				dirty = p.splitColour(c, byColour[c], dirty)
			}
			if p.work < 0 {
				p.unsure = true
				return false
			}
		}
	}
	return true
}

// splitColour divides the members of a colour next to a change by signature, and adds the
// neighbours of recoloured nodes to dirty.
func (p *pairing) splitColour(c int32, changed, dirty []int32) []int32 {
	groups := map[uint64][]int32{}
	var order []uint64
	for _, n := range changed {
		sum := p.signatureOf(n)
		if len(groups[sum]) == 0 {
			order = append(order, sum)
		}
		groups[sum] = append(groups[sum], n)
	}
	var stay uint64 // the largest group keeps the colour if no other member does
	if len(changed) == len(p.members[c][0])+len(p.members[c][1]) {
		for _, sum := range order {
			if stay == 0 || len(groups[sum]) > len(groups[stay]) {
				stay = sum
			}
		}
	}
	for _, sum := range order {
		if sum == stay {
			continue
		}
		fresh := p.newColour()
		p.touched = append(p.touched, c)
		for _, n := range groups[sum] {
			p.changeColour(n, fresh)
			dirty = p.appendNeighbours(dirty, n)
		}
	}
	return dirty
}

// signatureOf combines the roles of a node. It is never 0.
func (p *pairing) signatureOf(n int32) uint64 {
	sum := uint64(1)
	p.work -= len(p.about[n])
	for _, s := range p.about[n] {
		sum += p.roleHash(&p.all[s], n)
	}
	return max(sum, 1)
}

// roleHash hashes the position of a node in a statement and the colours of the other nodes.
func (p *pairing) roleHash(s *blankStatement, n int32) uint64 {
	var b [8 + 3*5]byte
	says := s.says
	if p.whole {
		says = s.whole
	}
	binary.LittleEndian.PutUint64(b[:], says)
	for i, other := range s.nodes {
		at := b[8+5*i:]
		switch other {
		case unpaired:
			at[0] = 1
		case n:
			at[0] = 2
		default:
			at[0] = 3
			binary.LittleEndian.PutUint32(at[1:], uint32(p.colour[other]))
		}
	}
	return maphash.Bytes(p.seed, b[:])
}

// pairByPlace pairs nodes that are, on each side, the only ones in the same position of a
// statement with equal other terms. It reports whether it paired any.
func (p *pairing) pairByPlace() (some bool) {
	for more := true; more && p.work >= 0; {
		more = false
		p.whole = false
		p.resetColours()
		byRole := map[uint64][2][]int32{}
		var order []uint64
		for n := range int32(len(p.labels)) {
			if p.partner[n] != unpaired {
				continue
			}
			p.work -= len(p.about[n])
			for _, s := range p.about[n] {
				if !p.othersPaired(&p.all[s], n) {
					continue
				}
				role := p.roleHash(&p.all[s], n)
				holders, known := byRole[role]
				if !known {
					order = append(order, role)
				}
				holders[p.side[n]] = append(holders[p.side[n]], n)
				byRole[role] = holders
			}
		}
		for _, role := range order {
			h := byRole[role]
			if len(h[0]) == 1 && len(h[1]) == 1 && p.partner[h[0][0]] == unpaired && p.partner[h[1][0]] == unpaired {
				p.pairNodes(h[0][0], h[1][0])
				some, more = true, true
			}
		}
	}
	p.unsure = p.unsure || p.work < 0
	return some
}

// othersPaired reports whether all other nodes of a statement have a partner.
func (p *pairing) othersPaired(s *blankStatement, n int32) bool {
	for _, other := range s.nodes {
		if other != unpaired && other != n && p.partner[other] == unpaired {
			return false
		}
	}
	return true
}

// pairByLabel pairs the remaining nodes with equal labels.
func (p *pairing) pairByLabel() {
	for label, n := range p.numbers[0] {
		if other, ok := p.numbers[1][label]; ok && p.partner[n] == unpaired && p.partner[other] == unpaired {
			p.pairNodes(n, other)
		}
	}
}

// hasUnpaired reports whether both sides have unpaired nodes, or pairs with different
// statements.
func (p *pairing) hasUnpaired() bool {
	p.whole = true
	p.resetColours()
	for n, other := range p.partner {
		if other == unpaired || p.signatureOf(int32(n)) != p.signatureOf(other) {
			return true
		}
	}
	return false
}

// afterNames returns the names for the nodes of the other side.
func (p *pairing) afterNames() map[kg.Term]kg.Term {
	out := map[kg.Term]kg.Term{}
	for label, n := range p.numbers[1] {
		if other := p.partner[n]; other != unpaired {
			out[label] = p.labels[other]
			continue
		}
		name := label
		for p.isTaken(name, label) {
			name = kg.Blank(name.Value() + "-other")
		}
		out[label] = name
	}
	return out
}

// isTaken reports whether a node other than the one with the label own has the name.
func (p *pairing) isTaken(name, own kg.Term) bool {
	_, one := p.numbers[0][name]
	_, other := p.numbers[1][name]
	return one || other && name != own
}
