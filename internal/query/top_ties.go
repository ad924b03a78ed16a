package query

import "slices"

// topTies collects the first n elements of an order and all that are equal to
// the last of them, so that values that are costly to read decide between these.
type topTies[K any] struct {
	n       int
	compare func(a, b *K) int
	kept    []K
	last    *K  // elements behind it are not kept
	room    int // elements that may be kept before the next cut
}

// minTies is the least number of elements to collect before a cut.
const minTies = 1024

func (c *topTies[K]) add(k K) {
	if c.n == 0 || c.last != nil && c.compare(&k, c.last) > 0 {
		return
	}
	if c.kept = append(c.kept, k); len(c.kept) > max(c.room, minTies) {
		c.cut()
		c.room = 2 * len(c.kept)
	}
}

// cut drops the elements behind the n-th and its equals.
func (c *topTies[K]) cut() {
	if len(c.kept) <= c.n {
		return
	}
	slices.SortFunc(c.kept, func(a, b K) int { return c.compare(&a, &b) })
	last := c.kept[c.n-1]
	end := c.n
	for end < len(c.kept) && c.compare(&c.kept[end], &last) == 0 {
		end++
	}
	c.kept, c.last = c.kept[:end], &last
}

// all returns the collected elements, in no order.
func (c *topTies[K]) all() []K {
	c.cut()
	return c.kept
}
