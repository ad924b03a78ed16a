package suggest_test

import (
	"koine/internal/suggest"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	names := []string{"lab", "foaf", "schema", "dcterms", strings.Repeat("m", 40)}
	for _, row := range []struct{ name, want string }{
		{"foaf", "foaf"}, {"FOAF", "foaf"}, {"foa", "foaf"}, {"foaff", "foaf"}, {"faof", "foaf"}, {"fxxf", ""}, {"lba", "lab"}, {"abl", ""},
		{"shema", "schema"}, {"schmea", "schema"}, {"sxhxmx", ""},
		{"x", ""}, {"", ""},
		{strings.Repeat("m", 39), strings.Repeat("m", 40)}, {strings.Repeat("m", 41), ""},
	} {
		if got := suggest.Name(row.name, names); got != row.want {
			t.Errorf("%q: got %q, want %q", row.name, got, row.want)
		}
	}
}
