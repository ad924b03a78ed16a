package hub_test

import (
	"slices"
	"testing"

	"koine/a2a/hub"
	"koine/kg"
	"koine/kg/kgtest"
)

// Each code of the domain has a row, except for those that nothing under /agents
// returns. The author of a new code must classify it here.
func TestEveryCodeHasARow(t *testing.T) {
	none := []kg.Code{
		kg.CodeInternal, kg.CodeDataDirInUse, kg.CodeFormatUnknown, // no row is the internal error; and those of opening a store
		kg.CodeBudgetExceeded, kg.CodeGraphNotFound, kg.CodeRevisionConflict, kg.CodeRevisionGone,
		kg.CodeRevisionAhead, kg.CodeCursorForeign, kg.CodeCursorGone, kg.CodeProposalClosed, // of queries, updates and proposals
		kg.CodeChannelNotFound, kg.CodeLastOwner, kg.CodeScopeNotFound, kg.CodeScopeEnded, kg.CodeChannelClosed,
		kg.CodeNameTaken, kg.CodeNotMember, kg.CodeNoRecipient, kg.CodeMessageExpired, // of channels
	}
	rows := hub.Table()
	for _, code := range kgtest.Codes(t, "../../kg") {
		there := 0
		for _, row := range rows {
			if row == code {
				there++
			}
		}
		want := 1
		if slices.Contains(none, code) {
			want = 0
		}
		if there != want {
			t.Errorf("%s has %d rows, want %d", code, there, want)
		}
	}
}
