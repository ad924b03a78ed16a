package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// TestWatchRereadsOnlyTheReplacedGraph follows two graphs of a server behind the replacement
// of one of them as a whole: that one is read again as of the replacement, page by page, the
// other is not, and what came behind follows once.
func TestWatchRereadsOnlyTheReplacedGraph(t *testing.T) {
	_, url := startServer(t)
	ask := func(method, graph, text string) (position string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, url+"/data?graph="+graph, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/n-triples")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var report struct{ Position string }
		if err := json.NewDecoder(response.Body).Decode(&report); err != nil || response.StatusCode/100 != 2 {
			t.Fatalf("%s: %s, %v", method, response.Status, err)
		}
		return report.Position
	}
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "<urn:s%d> <urn:p> \"v\" .\n", i)
		}
		return b.String()
	}
	const many = kg.MaxPatches + 1
	ask("PUT", "urn:other", numbered(0, 3))
	from := ask("PUT", "urn:large", numbered(0, many))
	ask("PUT", "urn:large", numbered(1, many+1))
	ask("POST", "urn:other", numbered(3, 4))
	ask("POST", "urn:large", numbered(many+1, many+2))
	var out, said strings.Builder
	args := []string{"watch", "--url", url, "--csv", "--from", from, "--graph", "urn:large", "--graph", "urn:other", "--count", "3"}
	if code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, row := range rows {
		told[row[0]+" "+row[6]]++
	}
	want := map[string]int{"op graph": 1, "graphReplaced urn:large": 1, "resync urn:large": 1, "snapshot urn:large": many, "add urn:other": 1, "add urn:large": 1}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what is told (-want +got):\n%s\n%s", diff, said.String())
	}
}
