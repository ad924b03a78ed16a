package tasks

import "koine/kg"

// errNoTask is the same for a task that does not exist and for one that the caller may
// not see, so it names nothing.
func errNoTask() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "the task does not exist").At("id")
}

func errEnded(s State) *kg.Error {
	return kg.Errorf(kg.CodeTaskEnded, "the task has ended: it is %s", s).At("id")
}

func errNoAgent() *kg.Error {
	return kg.Errorf(kg.CodeAgentNotFound, "there is no such agent").At("to")
}

// errContentType reports a part with a content type that the agent does not accept.
func errContentType(at, mediaType string) *kg.Error {
	e := kg.Errorf(kg.CodeContentType, "the agent does not accept content of type %q", mediaType).At(at)
	e.Hint = "The accepted types are in the agent's card: defaultInputModes."
	return e
}

// errTooMuch reports that a request exceeds a limit.
func errTooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}
