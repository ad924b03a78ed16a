package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// applySettings applies the part of an update that only owners can make.
func (s *Service) applySettings(w *channel.Writer, c *channel.Channel, r *channel.Update) error {
	if r.Rights != nil {
		if err := r.Rights.ValidateFor(channel.EffectiveVisibility(c.Visibility, c.MemberPolicy)); err != nil {
			return err
		}
		c.Rights = *r.Rights
		w.SetRights(&c.Rights)
	}
	if r.Limits != nil {
		if err := r.Limits.Validate(); err != nil {
			return err
		}
		c.Limits = *r.Limits
		w.SetLimits(&c.Limits)
	}
	if r.KeepMessages != nil {
		if err := channel.CheckKeepMessages(*r.KeepMessages); err != nil {
			return err
		}
		c.KeepMessages = *r.KeepMessages
		w.SetNumber(vocab.Keep, c.KeepMessages)
	}
	if r.Audit != nil && *r.Audit != c.Audit {
		if c.Scope == "" {
			return errNoEvents()
		}
		if c.Audit = *r.Audit; c.Audit {
			w.SetProperty(vocab.Audit, kg.Boolean(true))
		} else {
			w.ClearProperty(vocab.Audit)
		}
	}
	if r.ExpireAfter != nil && *r.ExpireAfter != c.ExpireAfter {
		if err := channel.CheckExpireAfter(*r.ExpireAfter); err != nil {
			return err
		}
		if err := journal.MustBeOpen(w.Tx, c); err != nil {
			return err
		}
		c.ExpireAfter, c.ExpireAfterSetAt = *r.ExpireAfter, w.Tx.Time()
		w.SetNumber(vocab.ExpireAfter, c.ExpireAfter.Milliseconds())
	}
	if r.MaxMembers != nil {
		if err := s.checkMaxMembers(*r.MaxMembers, len(c.Members)); err != nil {
			return err
		}
		c.MaxMembers = *r.MaxMembers
		w.SetNumber(vocab.MaxMembers, int64(c.MaxMembers))
	}
	return nil
}

// checkMaxMembers validates a member limit for a channel with this many members.
func (s *Service) checkMaxMembers(most, members int) error {
	switch {
	case most < 0:
		return kg.Errorf(kg.CodeInvalid, "maxMembers must not be negative").At("maxMembers")
	case most > s.options.MaxMembers:
		return check.TooMuch("maxMembers", "maxMembers is %d; the limit of this server is %d", most, s.options.MaxMembers)
	case most > 0 && most < members:
		return check.TooMuch("maxMembers", "channel has %d members, more than maxMembers %d", members, most)
	}
	return nil
}

// memberLimit returns the maximum number of members of the channel.
func (s *Service) memberLimit(c *channel.Channel) int {
	if c.MaxMembers > 0 {
		return min(c.MaxMembers, s.options.MaxMembers)
	}
	return s.options.MaxMembers
}
