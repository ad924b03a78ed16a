package kg

func (s *Store) purgeSoon() {}
