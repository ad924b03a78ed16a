package channels

import "koine/kg"

// errNoChannel is the same for a channel that is not there and one that the caller
// may not see: it names nothing.
func errNoChannel() *kg.Error {
	return kg.Errorf(kg.CodeChannelNotFound, "there is no such channel").At("channelId")
}

// errNoScope is the same for a scope that is not there and one that the caller has
// no access to.
func errNoScope() *kg.Error {
	return kg.Errorf(kg.CodeScopeNotFound, "there is no such scope").At("scopeId")
}

func errScopeEnded(s *Scope) *kg.Error {
	return kg.Errorf(kg.CodeScopeEnded, "the scope is %s", s.Status).At("scopeId")
}

func errChannelClosed() *kg.Error {
	return kg.Errorf(kg.CodeChannelClosed, "the channel is closed").At("channelId")
}

// errAllExpired is about messages of a channel that has closed.
func errAllExpired() *kg.Error {
	return kg.Errorf(kg.CodeMessageExpired, "the channel is closed: what was not read before has expired").At("channelId")
}

func errNoEvents() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "only a channel in a scope is copied to its events").At("audit")
}

func errNameTaken() *kg.Error {
	return kg.Errorf(kg.CodeNameTaken, "another channel of the scope has the name").At("name")
}

func errDenied(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodePermissionDenied, format, args...)
}

// errTooMuch is about a bound of the request's.
func errTooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}

// errAhead refuses a sequence that the channel has not come to: it is of another channel,
// or of a store that was restored.
func errAhead(count, since int64) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "the sequence %d is ahead of the channel, whose last is %d", since, count).At("sinceSequence")
}
