package agentchat

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/kg"
	"koine/kg/kgtest"
)

// testdata/errors.txt has the answer to each code of the domain, and to the bounds of
// CodeLimitExceeded that have answers of their own.
func TestAnswerOfEveryCode(t *testing.T) {
	h := NewHandler(Deps{}, Options{})
	var got strings.Builder
	line := func(name string, err *kg.Error) {
		e := h.errorOf(caller.Caller{}, err)
		fmt.Fprintf(&got, "%-25s  %s %d\n", name, e.Code, e.status)
	}
	for _, code := range kgtest.Codes(t, "../../../kg") {
		line(string(code), kg.Errorf(code, "x"))
	}
	var bounds []string
	for bound := range limitTable {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	for _, bound := range bounds {
		line("LIMIT_EXCEEDED "+bound, &kg.Error{Code: kg.CodeLimitExceeded, Limit: bound})
	}
	const file = "testdata/errors.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s shows other answers than these:\n%s", file, got.String())
	}
}
