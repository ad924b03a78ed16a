package vectorindex

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"koine/kg"
)

// Index is a set of vectors. Its methods are safe for concurrent use.
type Index struct {
	mu     sync.RWMutex     // guards the rest, and the chunks
	chunks map[int][]*chunk // by dimension; the last one grows

	dir    string // "" for an index in memory
	saving sync.Mutex
	number int // of the last file
}

// New returns an empty index in memory.
func New() *Index { return &Index{chunks: map[int][]*chunk{}} }

// Put adds a vector, or replaces that of the same key, which may be of another model. Its
// numbers are finite, 1 to kg.MaxEmbeddingNumbers.
func (x *Index) Put(k Key, model string, vector []float32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, row := x.findKey(&k); c != nil {
		if c.isVector(row, model, vector) {
			return
		}
		x.removeRow(c, row)
	}
	x.addVector(k, model, vector)
}

// Remove takes a vector out, and reports whether it was there.
func (x *Index) Remove(k Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, row := x.findKey(&k)
	if c == nil {
		return false
	}
	x.removeRow(c, row)
	return true
}

// RemoveIf takes the vectors out for the keys of which is returns true.
func (x *Index) RemoveIf(is func(k *Key) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, list := range x.chunks {
		for _, c := range slices.Clone(list) {
			for row := range c.countRows() {
				if c.isRemoved(row) {
					continue
				}
				if k := c.keyAt(row); is(&k) {
					c.removeRow(row)
				}
			}
			x.dropSparse(c)
		}
	}
}

// Clear takes all vectors out.
func (x *Index) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, list := range x.chunks {
		for _, c := range list {
			c.release()
		}
	}
	clear(x.chunks)
}

// Vector returns the vector of a key and its model, nil if there is none.
func (x *Index) Vector(k Key) (model string, vector []float32) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c, row := x.findKey(&k)
	if c == nil {
		return "", nil
	}
	return c.modelAt(row), c.readVector(row)
}

// Len returns the number of vectors.
func (x *Index) Len() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, list := range x.chunks {
		for _, c := range list {
			n += c.countRows() - c.gone
		}
	}
	return n
}

// findKey returns the chunk and the row of a key, no chunk if there is none. x.mu is held.
func (x *Index) findKey(k *Key) (*chunk, int) {
	for _, list := range x.chunks {
		for _, c := range list {
			if row, ok := c.findRow(k); ok {
				return c, row
			}
		}
	}
	return nil, 0
}

func (x *Index) addVector(k Key, model string, vector []float32) {
	list := x.chunks[len(vector)]
	if len(list) == 0 || list[len(list)-1].rows == nil {
		list = append(list, newChunk(len(vector)))
		x.chunks[len(vector)] = list
	}
	c := list[len(list)-1]
	c.addVector(k, model, vector)
	if c.countRows() >= c.capacity() {
		c.sealKeys()
	}
}

func (x *Index) removeRow(c *chunk, row int) {
	c.removeRow(row)
	x.dropSparse(c)
}

// dropSparse gives up a full chunk of which more than half is removed: its vectors are added
// again.
func (x *Index) dropSparse(c *chunk) {
	rows := c.countRows()
	if c.rows != nil || 2*c.gone <= rows {
		return
	}
	list := x.chunks[c.dimension]
	i := slices.Index(list, c)
	x.chunks[c.dimension] = slices.Delete(slices.Clone(list), i, i+1)
	for row := range rows {
		if !c.isRemoved(row) {
			x.addVector(c.keyAt(row), c.modelAt(row), c.readVector(row))
		}
	}
	if len(x.chunks[c.dimension]) == 0 {
		delete(x.chunks, c.dimension)
	}
	c.release()
}

func (c *chunk) release() {
	if c.unmap != nil {
		c.unmap()
	}
}

// Model is a model of vectors in an index, with one of their dimensions.
type Model struct {
	Name      string
	Dimension int
}

// Models returns the models of the vectors that a caller may see, in order.
func (x *Index) Models(may Rights) ([]Model, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[Model]bool{}
	readable := may.readGroups()
	for dimension, list := range x.chunks {
		for _, c := range list {
			open := readable(c)
			for row := range c.countRows() {
				n := c.groupNumber(row)
				if !open[n] || c.isRemoved(row) {
					continue
				}
				m := Model{c.groups[n].model, dimension}
				if found[m] {
					open[n] = false
					continue
				}
				k := c.keyAt(row)
				shown, err := may.shows(&k)
				if err != nil {
					return nil, err
				}
				if shown {
					found[m] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Model) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dimension, b.Dimension))
	}), nil
}

// Rights decide which vectors a caller may see.
type Rights struct {
	// Readable reports whether the caller may read the statements with a predicate in a graph.
	Readable func(graph, predicate kg.ID) bool
	// Shown reports whether a vector of a readable statement is shown in the caller's view, and
	// fits its conditions; nil shows all. It is called for vectors that may be among the hits.
	Shown func(k *Key) (bool, error)
}

func (r *Rights) shows(k *Key) (bool, error) {
	if r.Shown == nil {
		return true, nil
	}
	return r.Shown(k)
}

// readGroups returns a function that tells which groups of a chunk are readable. It asks once
// for each graph and predicate.
func (r *Rights) readGroups() func(c *chunk) []bool {
	known := map[[2]kg.ID]bool{}
	return func(c *chunk) []bool {
		out := make([]bool, len(c.groups))
		for i, g := range c.groups {
			may, ok := known[[2]kg.ID{g.graph, g.predicate}]
			if !ok {
				may = r.Readable(g.graph, g.predicate)
				known[[2]kg.ID{g.graph, g.predicate}] = may
			}
			out[i] = may
		}
		return out
	}
}
