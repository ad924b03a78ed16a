package openintent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
	"koine/kg/kgtest"
)

// testdata/errors.txt has the status of each code of the domain, and of the bounds of
// CodeLimitExceeded. No body with status 409 contains "lease", whatever the domain's text
// says, but that of a lease that is held: the SDK takes it for a conflict of leases.
func TestAnswerOfEveryCode(t *testing.T) {
	h := NewHandler(Deps{}, Options{})
	answerTo := func(err *kg.Error) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		writeError(w, h.errorOf(caller.Caller{}, err))
		if w.Code == http.StatusConflict && err.Code != kg.CodeLeaseHeld && strings.Contains(strings.ToLower(w.Body.String()), "lease") {
			t.Errorf("the SDK takes the answer to %v for a conflict of leases: %s", err, w.Body)
		}
		return w
	}
	var got strings.Builder
	conflicts := 0
	for _, code := range kgtest.Codes(t, "../../../kg") {
		w := answerTo(&kg.Error{Code: code, Field: "lease", Message: "please release the Lease of release-notes"})
		fmt.Fprintf(&got, "%-27s  %d\n", code, w.Code)
		if w.Code == http.StatusConflict {
			conflicts++
		}
	}
	limits := []string{"values"}
	for name := range sizeLimits {
		if name != "" {
			limits = append(limits, name)
		}
	}
	slices.Sort(limits)
	for _, name := range limits {
		fmt.Fprintf(&got, "%-27s  %d\n", "LIMIT_EXCEEDED "+name, answerTo(&kg.Error{Code: kg.CodeLimitExceeded, Limit: name}).Code)
	}
	if w := answerTo(&kg.Error{Code: kg.CodeVersionConflict, Message: "release", Err: &intents.VersionError{Current: 3}}); w.Code != http.StatusConflict {
		t.Errorf("a version conflict has status %d", w.Code)
	}
	if conflicts < 5 {
		t.Errorf("%d codes have status 409", conflicts)
	}
	const file = "testdata/errors.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s shows other answers than these:\n%s", file, got.String())
	}
}
