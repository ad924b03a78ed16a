package hub

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"koine/kg/kgtest"
)

// TestStatusOfEveryCode proves that testdata/errors.txt shows the HTTP status of each
// code. The author of a new code adds a row and reads it.
func TestStatusOfEveryCode(t *testing.T) {
	var got strings.Builder
	for _, code := range kgtest.Codes(t, "../../kg") {
		cell := "internal"
		if status, ok := statuses.Of(code); ok {
			cell = fmt.Sprint(status)
		}
		fmt.Fprintf(&got, "%-21s  %s\n", code, cell)
	}
	want, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("testdata/errors.txt shows other statuses than these:\n%s", got.String())
	}
}
