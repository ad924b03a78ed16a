package pattern

// maxSlots is the capacity of a slot set. Each variable has a slot, and some have
// another one in each group that must see them apart.
const maxSlots = 512

// slots is a set of slots.
type slots [maxSlots / 64]uint64

func (s *slots) add(slot int)      { s[slot/64] |= 1 << (slot % 64) }
func (s *slots) has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }

func (s *slots) intersects(t *slots) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// isSubsetOf reports whether s is a subset of t.
func (s *slots) isSubsetOf(t *slots) bool {
	for i := range s {
		if s[i]&^t[i] != 0 {
			return false
		}
	}
	return true
}

func (s *slots) addAll(t *slots) {
	for i := range s {
		s[i] |= t[i]
	}
}
