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
		p.add(0, &before[i])
	}
	for i := range after {
		p.add(1, &after[i])
	}
	// First pair nodes with equal statements and assertions, then those with equal
	// statements, then those in equal positions beside paired nodes.
	p.pairAlike(true)
	for more := true; more && p.work >= 0; {
		more = p.pairAlike(false)
		more = p.pairByPlace() || more
	}
	p.pairByLabel()
	return p.names(), p.unsure && p.unpaired()
}

const nobody = -1

// blankStatement is a statement with blank nodes.
type blankStatement struct {
	nodes [3]int32 // subject, object and graph, or nobody
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
	partner []int32 // by node, or nobody
	about   [][]int32
	all     []blankStatement

	colour  []int32      // by node
	members [][2][]int32 // by colour and side
	place   []int32      // index of each node in its members
	touched []int32      // colours that are new or have lost members since pairAlone
	whole   bool         // assertions count too
}

func (p *pairing) add(side uint8, st *Statement) {
	var s blankStatement
	var key []byte
	for i, t := range [...]kg.Term{st.Subject, st.Object, st.Graph} {
		s.nodes[i] = nobody
		if t.Kind() == kg.KindBlank {
			s.nodes[i] = p.number(side, t)
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
		if node != nobody && (i == 0 || node != s.nodes[0]) && (i < 2 || node != s.nodes[1]) {
			p.about[node] = append(p.about[node], n)
		}
	}
}

func (p *pairing) number(side uint8, t kg.Term) int32 {
	n, ok := p.numbers[side][t]
	if !ok {
		n = int32(len(p.labels))
		p.numbers[side][t] = n
		p.labels, p.side = append(p.labels, t), append(p.side, side)
		p.partner, p.about = append(p.partner, nobody), append(p.about, nil)
	}
	return n
}

// pairAlike pairs nodes of equal colour and reports whether it paired any.
func (p *pairing) pairAlike(whole bool) (some bool) {
	p.whole = whole
	more := p.refine(p.recolour())
	some = p.pairAlone()
	for c := int32(0); more && int(c) < len(p.members); c++ { // refining adds colours
		for more && p.bothSides(c) && p.partner[p.members[c][0][0]] == nobody {
			one, other := p.members[c][0][0], p.members[c][1][0]
			p.join(one, other)
			some = true
			var dirty []int32
			fresh := p.newColour()
			for _, n := range [...]int32{one, other} {
				p.move(n, fresh)
				dirty = p.neighbours(dirty, n)
			}
			p.unsure = p.unsure || len(dirty) > 0
			more = p.refine(dirty)
			p.pairAlone()
		}
	}
	return some
}

// pairAlone pairs nodes that are the only ones of their colour on each side. It runs before
// any guess; after a guess, the neighbours of all unpaired nodes are examined again.
func (p *pairing) pairAlone() (some bool) {
	for _, c := range p.touched {
		if m := p.members[c]; len(m[0]) == 1 && len(m[1]) == 1 && p.partner[m[0][0]] == nobody {
			p.join(m[0][0], m[1][0])
			some = true
		}
	}
	p.touched = p.touched[:0]
	return some
}

func (p *pairing) bothSides(c int32) bool {
	return len(p.members[c][0]) > 0 && len(p.members[c][1]) > 0
}

func (p *pairing) join(one, other int32) { p.partner[one], p.partner[other] = other, one }

// recolour gives each pair a colour of its own and all other nodes a common one, and returns
// the other nodes.
func (p *pairing) recolour() (free []int32) {
	p.members, p.touched, p.colour, p.place = nil, nil, make([]int32, len(p.labels)), make([]int32, len(p.labels))
	rest := p.newColour()
	for n := range int32(len(p.labels)) {
		switch other := p.partner[n]; {
		case other == nobody:
			p.enter(n, rest)
			free = append(free, n)
		case n < other:
			fresh := p.newColour()
			p.enter(n, fresh)
			p.enter(other, fresh)
		}
	}
	return free
}

func (p *pairing) newColour() int32 {
	c := int32(len(p.members))
	p.members, p.touched = append(p.members, [2][]int32{}), append(p.touched, c)
	return c
}

func (p *pairing) enter(n, c int32) {
	list := &p.members[c][p.side[n]]
	p.colour[n], p.place[n] = c, int32(len(*list))
	*list = append(*list, n)
}

func (p *pairing) move(n, c int32) {
	list := &p.members[p.colour[n]][p.side[n]]
	last := (*list)[len(*list)-1]
	(*list)[p.place[n]], p.place[last] = last, p.place[n]
	*list = (*list)[:len(*list)-1]
	p.enter(n, c)
}

// neighbours adds the unpaired nodes that share a statement with the node.
func (p *pairing) neighbours(list []int32, n int32) []int32 {
	p.work -= len(p.about[n])
	for _, s := range p.about[n] {
		for _, other := range p.all[s].nodes {
			if other != nobody && other != n && p.partner[other] == nobody {
				list = append(list, other)
			}
		}
	}
	return list
}

// refine refines the colours until they are stable, beginning with nodes next to a change.
// It reports false if the work limit is exceeded.
func (p *pairing) refine(dirty []int32) bool {
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
				dirty = p.split(c, byColour[c], dirty)
			}
			if p.work < 0 {
				p.unsure = true
				return false
			}
		}
	}
	return true
}

// split divides the members of a colour next to a change by signature, and adds the
// neighbours of recoloured nodes to dirty.
func (p *pairing) split(c int32, changed, dirty []int32) []int32 {
	groups := map[uint64][]int32{}
	var order []uint64
	for _, n := range changed {
		sum := p.signature(n)
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
			p.move(n, fresh)
			dirty = p.neighbours(dirty, n)
		}
	}
	return dirty
}

// signature combines the roles of a node. It is never 0.
func (p *pairing) signature(n int32) uint64 {
	sum := uint64(1)
	p.work -= len(p.about[n])
	for _, s := range p.about[n] {
		sum += p.role(&p.all[s], n)
	}
	return max(sum, 1)
}

// role hashes the position of a node in a statement and the colours of the other nodes.
func (p *pairing) role(s *blankStatement, n int32) uint64 {
	var b [8 + 3*5]byte
	says := s.says
	if p.whole {
		says = s.whole
	}
	binary.LittleEndian.PutUint64(b[:], says)
	for i, other := range s.nodes {
		at := b[8+5*i:]
		switch other {
		case nobody:
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
		p.recolour()
		places := map[uint64][2][]int32{}
		var order []uint64
		for n := range int32(len(p.labels)) {
			if p.partner[n] != nobody {
				continue
			}
			p.work -= len(p.about[n])
			for _, s := range p.about[n] {
				if !p.fixed(&p.all[s], n) {
					continue
				}
				role := p.role(&p.all[s], n)
				holders, known := places[role]
				if !known {
					order = append(order, role)
				}
				holders[p.side[n]] = append(holders[p.side[n]], n)
				places[role] = holders
			}
		}
		for _, role := range order {
			h := places[role]
			if len(h[0]) == 1 && len(h[1]) == 1 && p.partner[h[0][0]] == nobody && p.partner[h[1][0]] == nobody {
				p.join(h[0][0], h[1][0])
				some, more = true, true
			}
		}
	}
	p.unsure = p.unsure || p.work < 0
	return some
}

// fixed reports whether all other nodes of a statement have a partner.
func (p *pairing) fixed(s *blankStatement, n int32) bool {
	for _, other := range s.nodes {
		if other != nobody && other != n && p.partner[other] == nobody {
			return false
		}
	}
	return true
}

// pairByLabel pairs the remaining nodes with equal labels.
func (p *pairing) pairByLabel() {
	for label, n := range p.numbers[0] {
		if other, ok := p.numbers[1][label]; ok && p.partner[n] == nobody && p.partner[other] == nobody {
			p.join(n, other)
		}
	}
}

// unpaired reports whether both sides have unpaired nodes, or pairs with different
// statements.
func (p *pairing) unpaired() bool {
	p.whole = true
	p.recolour()
	for n, other := range p.partner {
		if other == nobody || p.signature(int32(n)) != p.signature(other) {
			return true
		}
	}
	return false
}

// names returns the names for the nodes of the other side.
func (p *pairing) names() map[kg.Term]kg.Term {
	out := map[kg.Term]kg.Term{}
	for label, n := range p.numbers[1] {
		if other := p.partner[n]; other != nobody {
			out[label] = p.labels[other]
			continue
		}
		name := label
		for p.taken(name, label) {
			name = kg.Blank(name.Value() + "-other")
		}
		out[label] = name
	}
	return out
}

// taken reports whether a node other than the one with the label own has the name.
func (p *pairing) taken(name, own kg.Term) bool {
	_, one := p.numbers[0][name]
	_, other := p.numbers[1][name]
	return one || other && name != own
}
