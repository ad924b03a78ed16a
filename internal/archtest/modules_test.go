package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var replaceLine = regexp.MustCompile(`(?m)^replace (\S+) => \./internal/(\S+)$`)

// A module inside the repository that requires koine replaces the modules that koine
// replaces: without that its benchmarks do not build, and no other test notices.
func TestNestedModulesReplaceTheSame(t *testing.T) {
	const root = "../.."
	main, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	replaced := replaceLine.FindAllStringSubmatch(string(main), -1)
	nested, err := filepath.Glob(filepath.Join(root, "internal", "*bench", "go.mod"))
	if err != nil || len(replaced) == 0 || len(nested) < 2 {
		t.Fatalf("%d replacements, %d modules, %v", len(replaced), len(nested), err)
	}
	for _, file := range nested {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range replaced {
			if want := "replace " + r[1] + " => ../" + r[2] + "\n"; !strings.Contains(string(text), want) {
				t.Errorf("%s: no line %q", file, want)
			}
		}
	}
}
