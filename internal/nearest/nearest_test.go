package nearest_test

import (
	"strings"
	"testing"

	"koine/internal/nearest"
)

func TestName(t *testing.T) {
	names := []string{"foaf", "schema", "dcterms", strings.Repeat("m", 40)}
	for _, row := range []struct{ name, want string }{
		{"foaf", "foaf"}, {"FOAF", "foaf"}, {"foa", "foaf"}, {"foaff", "foaf"}, {"faof", ""}, // two slips are too many for four letters
		{"shema", "schema"}, {"schmea", "schema"}, {"sxhxmx", ""},
		{"x", ""}, {"", ""},
		{strings.Repeat("m", 39), strings.Repeat("m", 40)}, {strings.Repeat("m", 41), ""},
	} {
		if got := nearest.Name(row.name, names); got != row.want {
			t.Errorf("%q: got %q, want %q", row.name, got, row.want)
		}
	}
}
