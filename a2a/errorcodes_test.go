package a2a

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestAnswerOfEveryCode proves that testdata/errors.txt shows the answers of each table of
// errors: the JSON-RPC code, the HTTP status of a stream, and that of any other answer. The
// author of a new code adds a row and reads it.
func TestAnswerOfEveryCode(t *testing.T) {
	row := "%-21s  %-15s  %-15s  %-15s  %s"
	lines := []string{fmt.Sprintf(row, "code", "knowledge/*", "channels/*", "base A2A", "CancelTask")}
	for _, code := range kgtest.Codes(t, "../kg") {
		cells := []any{code}
		for _, table := range []kg.Answers[answer]{errorTable, channelErrors, coreErrors, cancelErrors} {
			cell := "internal"
			if a, ok := table.Of(code); ok {
				rpc := "own"
				if a.rpc != own {
					rpc = strconv.Itoa(a.rpc)
				}
				cell = fmt.Sprint(rpc, " ", a.stream, " ", a.unary)
			}
			cells = append(cells, cell)
		}
		lines = append(lines, fmt.Sprintf(row, cells...))
	}
	got := strings.Join(lines, "\n") + "\n"
	want, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("testdata/errors.txt shows other answers than these:\n%s", got)
	}
}
