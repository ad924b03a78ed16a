package main

import (
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// A retraction that is only tried says what would become of the message.
func TestWhatWouldBecomeOfARetraction(t *testing.T) {
	for answer, want := range map[string]string{
		`{"success": true, "dryRun": true, "verificationStatus": "Verified"}`:                             "The message would be retracted.\n",
		`{"success": true, "dryRun": true, "replayed": true, "verificationStatus": "Verified"}`:           "The message was retracted before.\n",
		`{"success": true, "dryRun": true, "verificationStatus": "Verified", "withdrawnProposalId": "p"}`: "The message would be retracted.\nfacts: pending as proposal p, which would be withdrawn with the message; none is asserted\n",
	} {
		var out, said strings.Builder
		url := acting(t, actingCard, `{"data": {"retractMessage": `+answer+`}}`)
		args := []string{"channel", "retract", "0192f1c0-0000-7000-8000-000000000000", "m", "--dry-run", "--url", url}
		code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != cli.ExitOK || out.String() != "" || said.String() != want {
			t.Errorf("%s: ends with %d, prints %q and says %q", answer, code, out.String(), said.String())
		}
	}
}

// What became of a retraction is told, also where it is not what was asked for.
func TestWhatBecameOfARetraction(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		code    int
		printed string
		said    string
	}{
		"some stay": {`{"success": true, "event": {"id": "m", "sequence": 3}, "withdrawn": [{"op": "remove"}], "keptCount": 2, "verificationStatus": "Verified"}`,
			cli.ExitOK, "3  m\n", "facts: 1 withdrawn, 2 remain that you may not withdraw: Verified\n"},
		"they wait": {`{"success": true, "event": {"id": "m", "sequence": 3}, "withdrawn": [{"op": "remove"}], "verificationStatus": "Pending Review", "verificationDetails": "two eyes", "proposalId": "p"}`,
			cli.ExitOK, "3  m\n", "facts: 1 to be withdrawn once approved, as proposal p: Pending Review\ntwo eyes\n"},
		"they waited": {`{"success": true, "event": {"id": "m", "sequence": 3}, "verificationStatus": "Verified", "withdrawnProposalId": "p"}`,
			cli.ExitOK, "3  m\n", "facts: were pending as proposal p, which was withdrawn with the message; none was asserted\n"},
		"none stands": {`{"success": true, "event": {"id": "m", "sequence": 3}, "verificationStatus": "Verified"}`,
			cli.ExitOK, "3  m\n", "facts: none of the message is asserted anymore; nothing is withdrawn\n"},
		"refused": {`{"success": false, "event": null, "verificationStatus": "Rejected - Policy", "verificationDetails": "facts stay"}`,
			cli.ExitRefused, "", "koine: the message was not retracted: Rejected - Policy\nfacts stay\n"},
	} {
		var out, said strings.Builder
		url := acting(t, actingCard, `{"data": {"retractMessage": `+c.answer+`}}`)
		args := []string{"channel", "retract", "0192f1c0-0000-7000-8000-000000000000", "m", "--facts", "--url", url}
		code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != c.code || out.String() != c.printed || said.String() != c.said {
			t.Errorf("%s: ends with %d, prints %q and says %q", name, code, out.String(), said.String())
		}
	}
}
