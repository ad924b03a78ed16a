package channels

import "koine/kg"

// errNoChannel is the same for a channel that does not exist and for one that the
// caller may not see, so that it reveals nothing.
func errNoChannel() *kg.Error {
	return kg.Errorf(kg.CodeChannelNotFound, "there is no such channel").At("channelId")
}

// errNoScope is the same for a scope that does not exist and for one that the caller
// has no access to.
func errNoScope() *kg.Error {
	return kg.Errorf(kg.CodeScopeNotFound, "there is no such scope").At("scopeId")
}

func errScopeEnded(s *Scope) *kg.Error {
	return kg.Errorf(kg.CodeScopeEnded, "scope is %s", s.Status).At("scopeId")
}

func errChannelClosed() *kg.Error {
	return kg.Errorf(kg.CodeChannelClosed, "the channel is closed").At("channelId")
}

// errAllExpired reports that the messages of a closed channel have expired.
func errAllExpired() *kg.Error {
	return kg.Errorf(kg.CodeMessageExpired, "the channel is closed: its unread messages have expired").At("channelId")
}

func errNoEvents() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "audit requires a channel in a scope").At("audit")
}

func errNameTaken() *kg.Error {
	return kg.Errorf(kg.CodeNameTaken, "name is taken by another channel of the scope").At("name")
}

func errDenied(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodePermissionDenied, format, args...)
}

// errTooMuch reports a value of the request that exceeds a limit.
func errTooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}

// errAhead reports a sequence that the channel has not reached: it belongs to another
// channel, or the store was restored from a backup.
func errAhead(count, since int64) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "sequence %d is ahead of the channel, whose last sequence is %d", since, count).At("sinceSequence")
}
