package textindex

// Size is how large an index is.
type Size struct {
	Texts    uint64 // that were not removed
	Segments int
	Bytes    int64 // of the segments
}

// Size returns the size of the index. Texts that are in no segment yet count as texts.
func (x *Index) Size() (size Size) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	size.Texts, size.Segments = uint64(len(x.pending.docs)), len(x.segments)
	for _, s := range x.segments {
		size.Bytes += int64(len(s.image))
		for _, g := range s.groups {
			size.Texts += g.texts
		}
	}
	return size
}
