package tasks

import "koine/kg"

// errNoTask is the same for a task that is not there and one that the caller may
// not see: it names nothing.
func errNoTask() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "there is no such task").At("id")
}

func errEnded(s State) *kg.Error {
	return kg.Errorf(kg.CodeTaskEnded, "the task has ended: it is %s", s).At("id")
}

func errNoAgent() *kg.Error {
	return kg.Errorf(kg.CodeAgentNotFound, "there is no such agent").At("to")
}

// errContentType is about a part that an agent can do nothing with.
func errContentType(at, mediaType string) *kg.Error {
	e := kg.Errorf(kg.CodeContentType, "content of the type %q is not taken", mediaType).At(at)
	e.Hint = "The agent's card says what is: defaultInputModes."
	return e
}

// errTooMuch is about a bound of the request's.
func errTooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}
