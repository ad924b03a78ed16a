package client_test

import (
	"testing"

	"koine/client"
)

// The text of an error names the field once.
func TestErrorNamesItsFieldOnce(t *testing.T) {
	for _, row := range []struct {
		err  client.Error
		want string
	}{
		{client.Error{Message: "Invalid params", Field: "name", Detail: "name must not be empty"}, "Invalid params: name must not be empty"},
		{client.Error{Message: "Invalid params", Field: "input.name", Detail: "name must not be empty"}, "Invalid params: input.name must not be empty"},
		{client.Error{Message: "Invalid params", Field: "mutations[0]", Detail: "must be an object"}, "Invalid params: mutations[0]: must be an object"},
		{client.Error{Message: "Invalid params", Detail: "bad", Reason: client.Invalid}, "Invalid params: bad (INVALID)"},
	} {
		if got := row.err.Error(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
