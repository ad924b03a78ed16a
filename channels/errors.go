package channels

import "koine/kg"

// errNoChannel is the same for a channel that is not there and one that the caller
// may not see: it names nothing.
func errNoChannel() *kg.Error {
	return kg.Errorf(kg.CodeChannelNotFound, "there is no such channel").At("channelId")
}

func errDenied(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodePermissionDenied, format, args...)
}

// errTooMuch is about a bound of the request's.
func errTooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}
