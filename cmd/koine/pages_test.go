package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// A list of more than a page (100) is printed whole, each element once.
func TestListsOfManyPages(t *testing.T) {
	_, url := startServer(t)
	for i := range 102 {
		if status, text := ask(t, http.MethodPut, fmt.Sprintf("%s/agents/a%03d", url, i), fmt.Sprintf("a%03d", i), `{}`); status != http.StatusCreated {
			t.Fatalf("got %d %s", status, text)
		}
	}
	out, err := exec.CommandContext(t.Context(), "koine", "agent", "list", "--csv", "--url", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 102 {
		if n := strings.Count(string(out), fmt.Sprintf("agent://a%03d,", i)); n != 1 {
			t.Errorf("agent %d is there %d times", i, n)
		}
	}
}
