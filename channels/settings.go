package channels

import "koine/kg"

// settings changes rights and bounds.
func (s *Service) settings(w *writer, c *Channel, r *ChannelUpdate) error {
	if r.Rights != nil {
		if err := r.Rights.check(sightOf(c.Visibility, c.MemberPolicy)); err != nil {
			return err
		}
		c.Rights = *r.Rights
		for _, right := range rights {
			w.text(right.property, string(*right.of(&c.Rights)))
		}
	}
	if r.Limits != nil {
		if err := r.Limits.check(); err != nil {
			return err
		}
		c.Limits = *r.Limits
		for _, limit := range limits {
			w.number(limit.property, int64(*limit.of(&c.Limits)))
		}
	}
	if r.KeepMessages != nil {
		if err := checkKeepMessages(*r.KeepMessages); err != nil {
			return err
		}
		c.KeepMessages = *r.KeepMessages
		w.number(propKeep, c.KeepMessages)
	}
	if r.Audit != nil && *r.Audit != c.Audit {
		if c.Scope == "" {
			return errNoEvents()
		}
		if c.Audit = *r.Audit; c.Audit {
			w.set(propAudit, kg.Boolean(true))
		} else {
			w.clear(propAudit)
		}
	}
	if r.ExpireAfter != nil && *r.ExpireAfter != c.ExpireAfter {
		if err := checkExpireAfter(*r.ExpireAfter); err != nil {
			return err
		}
		if err := s.mustBeOpen(w.tx, c); err != nil {
			return err
		}
		c.ExpireAfter, c.expiresSince = *r.ExpireAfter, w.tx.Time()
		w.number(propExpireAfter, c.ExpireAfter.Milliseconds())
	}
	if r.MaxMembers != nil {
		if err := s.checkMaxMembers(*r.MaxMembers, len(c.Members)); err != nil {
			return err
		}
		c.MaxMembers = *r.MaxMembers
		w.number(propMaxMembers, int64(c.MaxMembers))
	}
	return nil
}

// checkMaxMembers refuses a bound that is none, and one that the channel is past.
func (s *Service) checkMaxMembers(most, members int) error {
	switch {
	case most < 0:
		return kg.Errorf(kg.CodeInvalid, "a bound is not negative").At("maxMembers")
	case most > s.options.MaxMembers:
		return errTooMuch("maxMembers", "%d members are more than the %d that a channel of this server has", most, s.options.MaxMembers)
	case most > 0 && most < members:
		return errTooMuch("maxMembers", "%d members are more than the %d that the channel would have", members, most)
	}
	return nil
}

// mostMembers is how many members the channel may have.
func (s *Service) mostMembers(c *Channel) int {
	if c.MaxMembers > 0 {
		return min(c.MaxMembers, s.options.MaxMembers)
	}
	return s.options.MaxMembers
}
