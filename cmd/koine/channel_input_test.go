package main

import (
	"strings"
	"testing"
)

// A text that is given and empty is refused as such; standard input is not asked for it.
func TestNothingToSay(t *testing.T) {
	for _, args := range [][]string{{"publish", "lab", ""}, {"publish", "--to", "bob", ""}, {"ask", "lab", "", "--recipient", "bob"}} {
		var out, said strings.Builder
		code := execute(t.Context(), append([]string{"channel"}, args...), terminal{in: strings.NewReader("other"), out: &out, err: &said})
		if code != exitUsage || !strings.Contains(said.String(), "the text is empty") {
			t.Errorf("%q: ends with %d and says %q", args, code, said.String())
		}
	}
}
