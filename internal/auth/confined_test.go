package auth_test

import (
	"slices"
	"testing"

	"koine/kg"
)

// The roles that two credentials have together confine where either of them does.
func TestCommonRoles(t *testing.T) {
	for _, row := range []struct{ a, b, want []string }{
		{nil, nil, nil},
		{[]string{"x", "y"}, []string{"y"}, []string{"y"}},
		{[]string{"admin"}, nil, nil},
		{nil, []string{"reader"}, []string{"reader"}},
		{[]string{"reader"}, nil, []string{"reader"}},
		{[]string{"admin"}, []string{"reader"}, []string{"reader"}},
		{[]string{"reader"}, []string{"backup", "metrics"}, []string{"reader"}},
		{[]string{"reader", "x"}, []string{"x"}, []string{"x"}},
		{[]string{"x"}, []string{"metrics"}, []string{"reader"}},
	} {
		got := kg.CommonRoles(kg.Principal{Roles: row.a, Method: "key"}, kg.Principal{Roles: row.b, Method: "key"})
		if !slices.Equal(got, row.want) {
			t.Errorf("%q and %q: got %q, want %q", row.a, row.b, got, row.want)
		}
	}
}
