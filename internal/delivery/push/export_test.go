package push

// Active returns the number of hooks of active tasks.
func (s *Service) Active() int { return int(s.active.InUse()) }
