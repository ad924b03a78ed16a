package channels

import "koine/kg"

// applySettings applies the part of an update that only owners can make.
func (s *Service) applySettings(w *writer, c *Channel, r *ChannelUpdate) error {
	if r.Rights != nil {
		if err := r.Rights.validateFor(effectiveVisibility(c.Visibility, c.MemberPolicy)); err != nil {
			return err
		}
		c.Rights = *r.Rights
		for _, right := range rights {
			w.setText(right.property, string(*right.of(&c.Rights)))
		}
	}
	if r.Limits != nil {
		if err := r.Limits.validate(); err != nil {
			return err
		}
		c.Limits = *r.Limits
		for _, limit := range limits {
			w.setNumber(limit.property, int64(*limit.of(&c.Limits)))
		}
	}
	if r.KeepMessages != nil {
		if err := checkKeepMessages(*r.KeepMessages); err != nil {
			return err
		}
		c.KeepMessages = *r.KeepMessages
		w.setNumber(propKeep, c.KeepMessages)
	}
	if r.Audit != nil && *r.Audit != c.Audit {
		if c.Scope == "" {
			return errNoEvents()
		}
		if c.Audit = *r.Audit; c.Audit {
			w.setProperty(propAudit, kg.Boolean(true))
		} else {
			w.clearProperty(propAudit)
		}
	}
	if r.ExpireAfter != nil && *r.ExpireAfter != c.ExpireAfter {
		if err := checkExpireAfter(*r.ExpireAfter); err != nil {
			return err
		}
		if err := s.mustBeOpen(w.tx, c); err != nil {
			return err
		}
		c.ExpireAfter, c.expireAfterSetAt = *r.ExpireAfter, w.tx.Time()
		w.setNumber(propExpireAfter, c.ExpireAfter.Milliseconds())
	}
	if r.MaxMembers != nil {
		if err := s.checkMaxMembers(*r.MaxMembers, len(c.Members)); err != nil {
			return err
		}
		c.MaxMembers = *r.MaxMembers
		w.setNumber(propMaxMembers, int64(c.MaxMembers))
	}
	return nil
}

// checkMaxMembers validates a member limit for a channel with this many members.
func (s *Service) checkMaxMembers(most, members int) error {
	switch {
	case most < 0:
		return kg.Errorf(kg.CodeInvalid, "maxMembers must not be negative").At("maxMembers")
	case most > s.options.MaxMembers:
		return errTooMuch("maxMembers", "maxMembers is %d; the limit of this server is %d", most, s.options.MaxMembers)
	case most > 0 && most < members:
		return errTooMuch("maxMembers", "channel has %d members, more than maxMembers %d", members, most)
	}
	return nil
}

// memberLimit returns the maximum number of members of the channel.
func (s *Service) memberLimit(c *Channel) int {
	if c.MaxMembers > 0 {
		return min(c.MaxMembers, s.options.MaxMembers)
	}
	return s.options.MaxMembers
}
