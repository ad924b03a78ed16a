package graph_test

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"koine/graph"
	"koine/kg"
	"koine/kg/kgtest"
)

// Each code of the domain becomes extensions.code, with its message; an internal error has
// nothing else.
func TestEveryCodeIsPresented(t *testing.T) {
	e := graph.NewEngine(graph.Deps{Prefixes: new(kg.Prefixes), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, graph.Options{})
	for _, code := range kgtest.Codes(t, "../kg") {
		got := e.Present(fmt.Errorf("outside: %w", &kg.Error{Code: code, Message: "it is so", Hint: "do this", OldestSequence: 7}))[0]
		text, hint, oldest := "it is so", any("do this"), any(int64(7))
		switch code {
		case kg.CodeInternal:
			text, hint, oldest = "internal error", nil, nil
		case kg.CodeBudgetExceeded: // told as what the operation ran out of
			text, hint, oldest = got.Message, got.Extensions["hint"], nil
		}
		if got.Extensions["code"] != string(code) || got.Message != text || got.Extensions["hint"] != hint || got.Extensions["oldestSequence"] != oldest {
			t.Errorf("%s: got %+v", code, got)
		}
	}
}
