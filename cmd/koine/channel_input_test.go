package main

import (
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// An empty text is refused as such; standard input is not read for it.
func TestNothingToSay(t *testing.T) {
	for _, args := range [][]string{{"publish", "lab", ""}, {"publish", "--to", "bob", ""}, {"ask", "lab", "", "--recipient", "bob"}} {
		var out, said strings.Builder
		code := execute(t.Context(), append([]string{"channel"}, args...), cli.Terminal{In: strings.NewReader("other"), Out: &out, Err: &said})
		if code != cli.ExitUsage || !strings.Contains(said.String(), "the text is empty") {
			t.Errorf("%q: ends with %d and says %q", args, code, said.String())
		}
	}
}
