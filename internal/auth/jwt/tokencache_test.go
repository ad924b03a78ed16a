package jwt_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/auth/jwt"
	"koine/internal/slowtest"
	"koine/kg"
)

// TestKeptTokens: a token that was good is known again, and no other is.
func TestKeptTokens(t *testing.T) {
	v := verifier(t, publicSet(t), nil)
	token := good(map[string]any{"roles": []string{"scribe", "not a role"}, "actFor": []string{"bob"}})
	began := time.Now()
	if v.KnownAt(token, began) {
		t.Fatal("a token is known before it was checked")
	}
	first, err := v.Verify(token)
	if err != nil || !v.KnownAt(token, time.Now()) {
		t.Fatalf("a good token is not kept: %v", err)
	}
	again, err := v.Verify(token)
	if err != nil || again.Agent != first.Agent || !slices.Equal(again.Roles, []string{"scribe"}) || !slices.Equal(again.ActFor, first.ActFor) || !again.Expires.Equal(first.Expires) {
		t.Errorf("again: got %+v, %v, want %+v", again, err, first)
	}
	// The cached value is shared: appending to a list must not write into it.
	_ = append(again.Roles, "admin")
	if third, _ := v.Verify(token); cap(third.Roles) != len(third.Roles) || cap(third.ActFor) != len(third.ActFor) {
		t.Error("there is room behind the lists that all share")
	}

	if !v.KnownAt(token, first.Expires.Add(-1)) || v.KnownAt(token, first.Expires) {
		t.Error("it is known until it ends, and no longer")
	}
	if v.KnownAt(token, began.Add(-time.Second)) {
		t.Error("it is known before the time of its check")
	}

	parts := strings.Split(token, ".")
	other := strings.Split(good(map[string]any{"sub": "eve"}), ".")
	for name, forged := range map[string]string{
		"claims":    parts[0] + "." + other[1] + "." + parts[2],
		"signature": parts[0] + "." + parts[1] + "." + other[2],
		"none":      parts[0] + "." + parts[1] + ".",
		"header":    encoded(header("none", "")) + "." + parts[1] + "." + parts[2],
	} {
		for range 2 {
			if _, err := v.Verify(forged); kg.CodeOf(err) != kg.CodeUnauthenticated || v.KnownAt(forged, time.Now()) {
				t.Errorf("%s of another: got %v", name, err)
			}
		}
	}
	if n := v.Kept(); n != 1 {
		t.Errorf("%d tokens are kept, want the good one", n)
	}
}

// TestKeptTokensEnd: a token that is known ends with its time.
func TestKeptTokensEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, publicSet(t), nil)
		token := good(nil) // for an hour
		for _, step := range []struct {
			wait time.Duration
			code kg.Code
		}{{0, ""}, {time.Hour, ""}, {jwt.DefaultSkew - time.Second, ""}, {2 * time.Second, kg.CodeUnauthenticated}} {
			time.Sleep(step.wait)
			if _, err := v.Verify(token); kg.CodeOf(err) != step.code {
				t.Errorf("%s later: got %v, want %q", step.wait, err, step.code)
			}
		}
	})
}

// answers is a provider of key sets.
type answers struct {
	mu   sync.Mutex
	body []byte
}

func (a *answers) set(body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.body = body
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// TestKeptTokensOfWithdrawnKeys: a token is no longer known when its key has left
// the set, and good while it is there.
func TestKeptTokensOfWithdrawnKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := new(answers)
		provider.set(publicSet(t))
		v, err := jwt.Open(t.Context(), jwt.Options{
			Keys: "https://issuer.example/jwks", Issuer: "https://issuer.example", Audience: []string{"koine"}, HTTP: &http.Client{Transport: provider},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		token := good(nil)
		check := func(when string, code kg.Code) {
			t.Helper()
			if _, err := v.Verify(token); kg.CodeOf(err) != code {
				t.Errorf("%s: got %v, want %q", when, err, code)
			}
		}
		check("at first", "")
		time.Sleep(jwt.DefaultRefresh + time.Minute)
		check("after the set was read again", "")
		provider.set(setOf(t, member(t, &ecKey.PublicKey, "e", nil), member(t, &otherRSA.PublicKey, "r", nil)))
		check("before it is read", "")
		time.Sleep(jwt.DefaultRefresh + time.Minute)
		check("after its key was withdrawn", kg.CodeUnauthenticated)
		check("and asked again", kg.CodeUnauthenticated)
	})
}

// TestMaxKeptTokens: tokens past the bound are as good as those before.
func TestMaxKeptTokens(t *testing.T) {
	slowtest.Long(t)
	v := verifier(t, setOf(t, member(t, secret, "s", nil)), func(o *jwt.Options) { o.Algorithms = []string{"HS256"} })
	for i := range 3 * jwt.MaxCachedTokens {
		agent := "a" + strconv.Itoa(i)
		token := signed(header("HS256", "s"), claims(map[string]any{"sub": agent}), hs256(secret))
		for range 2 {
			if c, err := v.Verify(token); err != nil || c.Agent != kg.AgentID("agent://"+agent) {
				t.Fatalf("token %d: got %+v, %v", i, c, err)
			}
		}
	}
	if n := v.Kept(); n < jwt.MaxCachedTokens/2 || n > jwt.MaxCachedTokens {
		t.Errorf("%d tokens are kept, want no more than %d", n, jwt.MaxCachedTokens)
	}
}
