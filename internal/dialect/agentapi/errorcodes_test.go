package agentapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"koine/kg/kgtest"
)

// TestAnswerOfEveryCode proves that testdata/errors.txt shows the answer to each code. The
// author of a new code adds a row and reads it.
func TestAnswerOfEveryCode(t *testing.T) {
	var got strings.Builder
	for _, code := range kgtest.Codes(t, "../../../kg") {
		cell := "internal"
		if a, ok := errorTable.Of(code); ok {
			cell = fmt.Sprint(a.code, " ", a.status)
		}
		fmt.Fprintf(&got, "%-21s  %s\n", code, cell)
	}
	want, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("testdata/errors.txt shows other answers than these:\n%s", got.String())
	}
}
