package kg_test

import (
	"testing"

	"koine/kg"
)

// Administrators are principals with the role, with access to the files, and code of this
// process.
func TestIsAdmin(t *testing.T) {
	for _, row := range []struct {
		p    kg.Principal
		want bool
	}{
		{kg.Principal{ID: "agent://a", Method: "key"}, false},
		{kg.Principal{ID: "agent://a", Method: "key", Roles: []string{kg.RoleReviewer, "administrator"}}, false},
		{kg.Principal{ID: "agent://a", Method: "jwt", Roles: []string{"x", kg.RoleAdmin}}, true},
		{kg.Principal{ID: "agent://a", Method: kg.MethodOpen}, false},
		{kg.Principal{ID: "agent://a", Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}, true},
		{kg.Principal{ID: "agent://a", Method: kg.MethodLocal}, true},
		{kg.Principal{}, true},
		{kg.SystemPrincipal(), true},
	} {
		if got := row.p.IsAdmin(); got != row.want {
			t.Errorf("%+v: %v, want %v", row.p, got, row.want)
		}
	}
}
