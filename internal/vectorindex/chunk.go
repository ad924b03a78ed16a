package vectorindex

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sort"

	"koine/internal/sealed"
	"koine/kg"
)

// chunkBytes is about the size of a full chunk, and maxChunkRows bounds its vectors.
const (
	chunkBytes   = 16 << 20
	maxChunkRows = 1 << 14
)

// The widths in bytes of the fields of a vector in a chunk, beside its codes and numbers: group
// and bound, the rest of the key, and the hash of the key with its row.
const (
	boundWidth  = 16
	recordWidth = 8 + 9 + 9 + 8
	hashWidth   = 8
)

// group names vectors that a caller may read either all or none of.
type group struct {
	graph, predicate kg.ID
	model            string
}

// chunk has vectors of one dimension. The arrays have a row for each vector, and may be those
// of a mapped file.
type chunk struct {
	dimension, stride              int
	groups                         []group
	bounds, records, codes, floats []byte
	hashes                         []byte // of a full chunk: the hashes of keys with their rows, in order

	numbers map[group]uint32 // of a chunk that grows: the numbers of groups
	rows    map[Key]uint32   // and the rows of keys

	removed []uint64 // a bit for each row
	gone    int      // how many bits are set
	changed bool     // since the removed rows were saved

	file      sealed.File
	savedRows int // in the file
	unmap     func()
}

func newChunk(dimension int) *chunk {
	return &chunk{dimension: dimension, stride: strideOf(dimension), numbers: map[group]uint32{}, rows: map[Key]uint32{}}
}

func (c *chunk) countRows() int { return len(c.bounds) / boundWidth }

// capacity is the number of vectors of a full chunk.
func (c *chunk) capacity() int {
	return min(max(chunkBytes/(4*c.dimension+c.stride), 1), maxChunkRows)
}

func (c *chunk) isRemoved(row int) bool { return c.removed[row/64]&(1<<(row%64)) != 0 }

func (c *chunk) groupNumber(row int) uint32 {
	return binary.LittleEndian.Uint32(c.bounds[row*boundWidth:])
}

func (c *chunk) boundAt(row int) bound {
	b := c.bounds[row*boundWidth:][:boundWidth]
	at := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[i:])) }
	return bound{scale: at(4), error: at(8), norm: at(12)}
}

func (c *chunk) vectorAt(row int) []byte { return c.floats[4*c.dimension*row:][:4*c.dimension] }

func (c *chunk) keyAt(row int) (k Key) {
	r := c.records[row*recordWidth:][:recordWidth]
	k.Subject.Order = binary.LittleEndian.Uint64(r)
	copy(k.Subject.ID[:], r[8:])
	copy(k.Ref.Object[:], r[17:])
	k.Owner = binary.LittleEndian.Uint64(r[26:])
	g := c.groups[c.groupNumber(row)]
	k.Ref.Graph, k.Ref.Predicate = g.graph, g.predicate
	return k
}

// addVector appends a vector to a chunk that grows.
func (c *chunk) addVector(k Key, model string, vector []float32) {
	g := group{k.Ref.Graph, k.Ref.Predicate, model}
	number, ok := c.numbers[g]
	if !ok {
		number = uint32(len(c.groups))
		c.groups, c.numbers[g] = append(c.groups, g), number
	}
	row := c.countRows()
	var b bound
	c.codes, b = appendCodes(c.codes, vector)
	c.bounds = binary.LittleEndian.AppendUint32(c.bounds, number)
	c.bounds = appendFloats(c.bounds, []float32{b.scale, b.error, b.norm})
	c.records = binary.LittleEndian.AppendUint64(c.records, k.Subject.Order)
	c.records = append(append(c.records, k.Subject.ID[:]...), k.Ref.Object[:]...)
	c.records = binary.LittleEndian.AppendUint64(c.records, k.Owner)
	c.floats = appendFloats(c.floats, vector)
	if row%64 == 0 {
		c.removed = append(c.removed, 0)
	}
	c.rows[k] = uint32(row)
}

func appendFloats(to []byte, list []float32) []byte {
	for _, f := range list {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(f))
	}
	return to
}

func (c *chunk) modelAt(row int) string { return c.groups[c.groupNumber(row)].model }

// readVector returns the numbers of a row.
func (c *chunk) readVector(row int) []float32 {
	from, out := c.vectorAt(row), make([]float32, c.dimension)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
	}
	return out
}

// isVector reports whether a row has exactly this model and these numbers.
func (c *chunk) isVector(row int, model string, vector []float32) bool {
	if c.dimension != len(vector) || c.modelAt(row) != model {
		return false
	}
	at := c.vectorAt(row)
	for i, f := range vector {
		if binary.LittleEndian.Uint32(at[4*i:]) != math.Float32bits(f) {
			return false
		}
	}
	return true
}

func (c *chunk) removeRow(row int) {
	c.removed[row/64] |= 1 << (row % 64)
	c.gone, c.changed = c.gone+1, true
	if c.rows != nil {
		delete(c.rows, c.keyAt(row))
	}
}

// findRow returns the row of a key that was not removed.
func (c *chunk) findRow(k *Key) (row int, ok bool) {
	if c.rows != nil {
		n, ok := c.rows[*k]
		return int(n), ok
	}
	h, n := hashOf(k), len(c.hashes)/hashWidth
	at := func(i int) uint32 { return binary.BigEndian.Uint32(c.hashes[i*hashWidth:]) }
	for i := sort.Search(n, func(i int) bool { return at(i) >= h }); i < n && at(i) == h; i++ {
		row := int(binary.BigEndian.Uint32(c.hashes[i*hashWidth+4:]))
		if row < c.countRows() && !c.isRemoved(row) && c.keyAt(row) == *k {
			return row, true
		}
	}
	return 0, false
}

// hashOf returns the hash by which the keys of a full chunk are found.
func hashOf(k *Key) uint32 {
	h := fnv.New32a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], k.Subject.Order)
	binary.LittleEndian.PutUint64(b[8:], k.Owner)
	for _, part := range [][]byte{b[:], k.Subject.ID[:], k.Ref.Graph[:], k.Ref.Predicate[:], k.Ref.Object[:]} {
		_, _ = h.Write(part)
	}
	return h.Sum32()
}

// sealKeys ends the growth of a chunk.
func (c *chunk) sealKeys() {
	list := make([][hashWidth]byte, c.countRows())
	for row := range list {
		k := c.keyAt(row)
		binary.BigEndian.PutUint32(list[row][:], hashOf(&k))
		binary.BigEndian.PutUint32(list[row][4:], uint32(row))
	}
	slices.SortFunc(list, func(a, b [hashWidth]byte) int { return bytes.Compare(a[:], b[:]) })
	c.hashes = make([]byte, 0, len(list)*hashWidth)
	for _, e := range list {
		c.hashes = append(c.hashes, e[:]...)
	}
	c.rows, c.numbers = nil, nil
}

// chunkVersion changes with the form of a chunk's image.
const chunkVersion = 1

// chunkHeader is the number of bytes before the groups: version, dimension, rows, bytes of
// groups, and whether the chunk is full.
const chunkHeader = 5 * 4

// imageOf returns the content of a chunk's file. c may be a copy of a chunk that grows.
func imageOf(c *chunk) []byte {
	var groups []byte
	for _, g := range c.groups {
		groups = append(append(groups, g.graph[:]...), g.predicate[:]...)
		groups = binary.LittleEndian.AppendUint16(groups, uint16(len(g.model)))
		groups = append(groups, g.model...)
	}
	full := uint32(0)
	if c.hashes != nil {
		full = 1
	}
	size := chunkHeader + len(groups) + len(c.bounds) + len(c.records) + len(c.hashes) + len(c.codes) + len(c.floats) + 4
	image := make([]byte, 0, size)
	for _, n := range []uint32{chunkVersion, uint32(c.dimension), uint32(c.countRows()), uint32(len(groups)), full} {
		image = binary.LittleEndian.AppendUint32(image, n)
	}
	for _, part := range [][]byte{groups, c.bounds, c.records, c.hashes, c.codes, c.floats} {
		image = append(image, part...)
	}
	return sealed.Seal(image)
}

// openChunk returns the chunk of a mapped file. A full one shares its memory.
func openChunk(image []byte) (*chunk, error) {
	b, err := sealed.OpenMapped(image)
	if err != nil {
		return nil, err
	}
	if len(b) < chunkHeader || binary.LittleEndian.Uint32(b) != chunkVersion {
		return nil, sealed.ErrDamaged
	}
	number := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	rows, full := number(2), number(4) == 1
	c := &chunk{dimension: number(1), stride: strideOf(number(1)), removed: make([]uint64, (rows+63)/64)}
	width := []int{number(3), rows * boundWidth, rows * recordWidth, 0, rows * c.stride, rows * 4 * c.dimension}
	if full {
		width[3] = rows * hashWidth
	}
	rest, total := b[chunkHeader:], 0
	for _, w := range width {
		total += w
	}
	if total != len(rest) || c.dimension < 1 || c.dimension > kg.MaxEmbeddingNumbers || rows > maxChunkRows {
		return nil, sealed.ErrDamaged
	}
	var groups []byte
	for i, to := range []*[]byte{&groups, &c.bounds, &c.records, &c.hashes, &c.codes, &c.floats} {
		*to, rest = rest[:width[i]:width[i]], rest[width[i]:]
	}
	for len(groups) >= 20 {
		g := group{}
		copy(g.graph[:], groups)
		copy(g.predicate[:], groups[9:])
		n := int(binary.LittleEndian.Uint16(groups[18:]))
		if n > len(groups)-20 {
			return nil, sealed.ErrDamaged
		}
		g.model, groups = string(groups[20:20+n]), groups[20+n:]
		c.groups = append(c.groups, g)
	}
	for row := range rows {
		if c.groupNumber(row) >= uint32(len(c.groups)) {
			return nil, sealed.ErrDamaged
		}
	}
	if !full {
		c.growAgain()
	}
	return c, nil
}

// growAgain makes a chunk one in memory that grows.
func (c *chunk) growAgain() {
	for _, part := range []*[]byte{&c.bounds, &c.records, &c.codes, &c.floats} {
		*part = bytes.Clone(*part)
	}
	c.hashes, c.numbers, c.rows = nil, map[group]uint32{}, map[Key]uint32{}
	for i, g := range c.groups {
		c.numbers[g] = uint32(i)
	}
	for row := range c.countRows() {
		c.rows[c.keyAt(row)] = uint32(row)
	}
}
