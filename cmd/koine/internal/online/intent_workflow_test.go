package online

import (
	"strings"
	"testing"
)

// A workflow file of the largest size is read, and one byte more is refused.
func TestBoundOfWorkflowFiles(t *testing.T) {
	const begin = "version: \"1.0\"\nintent:\n  title: Q1\n#"
	for _, row := range []struct {
		bytes int
		want  string
	}{{maxWorkflowBytes, ""}, {maxWorkflowBytes + 1, "the file has more than 1048576 bytes"}} {
		w, err := parseWorkflow(strings.NewReader(begin + strings.Repeat("x", row.bytes-len(begin))))
		if row.want == "" {
			if err != nil || w.Intent.Title != "Q1" {
				t.Errorf("with %d bytes: %+v, %v", row.bytes, w, err)
			}
		} else if err == nil || err.Error() != row.want {
			t.Errorf("with %d bytes: %v, want %s", row.bytes, err, row.want)
		}
	}
}
