package intents

import (
	"context"
	"unicode/utf8"

	"koine/channels"
	"koine/internal/systemgraph"
	"koine/kg"
)

// readPart calls fn with the record of each instance of a class in a part of a scope.
func readPart(match systemgraph.Matcher, graph kg.Term, class string, fn func(subject kg.Term, r systemgraph.Record)) error {
	subjects, err := systemgraph.Instances(match, graph, class)
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		r, err := systemgraph.Read(match, graph, subject)
		if err != nil {
			return err
		}
		fn(subject, r)
	}
	return nil
}

// viewPart calls fn with a snapshot under the rights of the caller.
func viewPart(ctx context.Context, store *kg.Store, by channels.Caller, fn func(*kg.Snapshot) error) error {
	agent, err := by.ActingAgent()
	if err != nil {
		return err
	}
	snapshot, err := store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), AllGraphs: true})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return fn(snapshot)
}

// checkText returns an error if a text is longer than its bound in characters, or not text.
func checkText(field, text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return kg.Errorf(kg.CodeInvalid, "%s is not UTF-8", field).At(field)
	case n > most:
		return kg.Errorf(kg.CodeLimitExceeded, "%s has %d characters; the limit is %d", field, n, most).At(field)
	}
	return nil
}

// MaxDescriptionRunes bounds descriptions and the errors of tasks, in characters.
const MaxDescriptionRunes = 16 << 10

// VersionError is part of an error with CodeVersionConflict (errors.As): the version that
// the record has.
type VersionError struct{ Current int64 }

func (e *VersionError) Error() string { return "the version is another one" }

// errVersion returns the error of an update that expects another version.
func errVersion(subject string, current, expected int64) error {
	e := kg.Errorf(kg.CodeVersionConflict, "%s has version %d, expected %d", subject, current, expected).At("expectedVersion")
	e.Hint = "read the " + subject + " again and retry with its version"
	e.Err = &VersionError{current}
	return e
}
