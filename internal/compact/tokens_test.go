package compact_test

import (
	"testing"

	"koine/internal/compact"
)

// The counts are those of the vocabulary o200k_base, by gpt-tokenizer 4.
var counted = []struct {
	text   string
	tokens int
}{
	{"@prefix lab: <https://koine.example/demo/>\nlab:finding-1 (Water in the crystal costs capacity)@en\n  a lab:Finding\n  lab:supportedBy lab:run-7 (Run 7: 100 cycles at 1C), lab:run-8\n  lab:quality \"doubtful\" [0.4, by bruno, at 2026-11-24]\n@graph <urn:uuid:01a219bd-4d72-7476-9689-698777d0ab8a>\nlab:run-7\n  lab:cycles 100 [from 2026-11-24T01:00:00Z]\n  lab:mass 1.25\n  lab:code \"A-17/x\"\n", 168},
	{"The dried cells keep more of their capacity after a hundred cycles than the untreated ones; the uncertainty of the instruments does not explain the difference, and Bruno's electrochemical impedance spectra agree.\n", 37},
	{"Die Zellen mit getrocknetem Kathodenmaterial behalten nach hundert Zyklen mehr Kapazität als die unbehandelten; die Messunsicherheit der Geräte erklärt den Unterschied nicht.\n", 38},
	{"結晶の中の水は容量を減らす。乾燥したセルでは差が見られない。\n", 26},
	{"func (t *tailer) matchNew(ctx context.Context) error { return t.filterIndex.matchCommit(ctx, 0x7fff_ffff) } // pkg/net/http.RoundTripper\n", 40},
}

func TestTokensAreNotTooFew(t *testing.T) {
	for _, x := range counted {
		if n := compact.Tokens(x.text); n < x.tokens || 2*n > 3*x.tokens {
			t.Errorf("%d tokens are estimated and %d counted in %.40q", n, x.tokens, x.text)
		}
	}
}
