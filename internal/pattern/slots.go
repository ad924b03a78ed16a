package pattern

// maxSlots is how many slots a set holds. Each variable has one, and some one
// more in every group that must see it apart.
const maxSlots = 512

// slots is a set of slots.
type slots [maxSlots / 64]uint64

func (s *slots) add(slot int)      { s[slot/64] |= 1 << (slot % 64) }
func (s *slots) has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }

func (s *slots) meets(t *slots) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// within tells whether t has all of s.
func (s *slots) within(t *slots) bool {
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
