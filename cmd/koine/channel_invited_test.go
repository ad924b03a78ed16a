package main

import (
	"fmt"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// Invitations are read page by page; a page may be empty before the last.
func TestInvitationsArePagedThrough(t *testing.T) {
	page := func(more bool, nodes string) string {
		return fmt.Sprintf(`{"data": {"me": {"actingFor": "agent://dora"}, "channels": {"nodes": [%s], "pageInfo": {"hasNextPage": %t, "endCursor": "x"}}}}`, nodes, more)
	}
	node := func(id string) string {
		return fmt.Sprintf(`{"id": %q, "name": "lab\nb", "visibility": "PUBLIC", "scopeId": "s", "closed": null, "invitations": {"nodes": [{"agent": "agent://dora", "invitedBy": "agent://ann", "invitedAt": "2026-01-31T11:00:00Z"}, {"agent": "agent://eve", "invitedBy": "agent://bob", "invitedAt": "2026-01-31T10:00:00Z"}]}}`, id)
	}
	for flag, want := range map[string]string{
		"--json": `{"id":"a","name":"lab\nb","visibility":"public","scopeId":"s","invitedBy":"agent://ann","invitedAt":1769857200000}` + "\n" +
			`{"id":"b","name":"lab\nb","visibility":"public","scopeId":"s","invitedBy":"agent://ann","invitedAt":1769857200000}` + "\n",
		"--invited": "ID  VISIBILITY  STATUS  INVITED               BY           NAME\n" +
			"a   public      open    2026-01-31 11:00:00Z  agent://ann  lab�b\n" +
			"b   public      open    2026-01-31 11:00:00Z  agent://ann  lab�b\n",
	} {
		var out, said strings.Builder
		url := acting(t, actingCard, page(true, node("a")), page(true, ""), page(false, node("b")))
		code := execute(t.Context(), []string{"channel", "list", "--invited", flag, "--url", url}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != cli.ExitOK || out.String() != want {
			t.Errorf("%s: ends with %d, prints\n%swant\n%ssays %q", flag, code, out.String(), want, said.String())
		}
	}
}
