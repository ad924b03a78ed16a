package online

import (
	"strings"
	"testing"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// Texts of others stay on their line and in their column of a table.
func TestChannelTableKeepsItsLines(t *testing.T) {
	var out strings.Builder
	err := channelTable([]*client.Channel{
		{ID: "a", Visibility: "public", Name: "lab\nb\tpublic\u2028\x1b[31m"},
		{ID: "c", Visibility: "private", Name: "attic", ClosedAt: 1, ClosedReason: "All\r\nis said"},
	}).Print(cli.Terminal{Out: &out})
	want := "" +
		"ID  VISIBILITY  STATUS  MEMBERS  CREATED               NAME                REASON\n" +
		"a   public      open    -        1970-01-01 00:00:00Z  lab�b�public��[31m\n" +
		"c   private     closed  -        1970-01-01 00:00:00Z  attic               All��is said\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s, want\n%s", err, out.String(), want)
	}
}

// Nothing follows the name where no channel was closed for a reason.
func TestChannelTableWithoutReasons(t *testing.T) {
	var out strings.Builder
	err := channelTable([]*client.Channel{{ID: "a", Visibility: "public", Name: "lab", ClosedAt: 1}}).Print(cli.Terminal{Out: &out})
	want := "" +
		"ID  VISIBILITY  STATUS  MEMBERS  CREATED               NAME\n" +
		"a   public      closed  -        1970-01-01 00:00:00Z  lab\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s, want\n%s", err, out.String(), want)
	}
}
