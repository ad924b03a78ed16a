package jwt_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"koine/internal/auth/jwt"
	"koine/kg"
)

const patience = time.Minute

// The keys of the tests. Making them takes long, so they are made once.
var (
	rsaKey, _   = rsa.GenerateKey(rand.Reader, 2048)
	otherRSA, _ = rsa.GenerateKey(rand.Reader, 2048)
	weakRSA, _  = rsa.GenerateKey(rand.Reader, 1024)
	ecKey, _    = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edKey, _ = ed25519.GenerateKey(rand.Reader)
	secret      = []byte("0123456789abcdef0123456789abcdef")
)

// member is a key in a set.
func member(t *testing.T, raw any, id string, more map[string]any) jwk.Key {
	t.Helper()
	key, err := jwk.Import(raw)
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		more = merged(map[string]any{jwk.KeyIDKey: id}, more)
	}
	for name, value := range more {
		if err := key.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return key
}

func setOf(t *testing.T, keys ...jwk.Key) []byte {
	t.Helper()
	set := jwk.NewSet()
	for _, key := range keys {
		if err := set.AddKey(key); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func merged(maps ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// signed is a token as this test writes it, without the library that reads it.
func signed(header, claims map[string]any, sign func([]byte) []byte) string {
	text := encoded(header) + "." + encoded(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

func rs256(key *rsa.PrivateKey) func([]byte) []byte {
	return func(text []byte) []byte {
		sum := sha256.Sum256(text)
		out, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return out
	}
}

func es256(text []byte) []byte {
	sum := sha256.Sum256(text)
	r, s, err := ecdsa.Sign(rand.Reader, ecKey, sum[:])
	if err != nil {
		panic(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

func edDSA(text []byte) []byte { return ed25519.Sign(edKey, text) }

func hs256(key []byte) func([]byte) []byte {
	return func(text []byte) []byte {
		m := hmac.New(sha256.New, key)
		m.Write(text)
		return m.Sum(nil)
	}
}

func header(alg, kid string) map[string]any {
	h := map[string]any{"alg": alg, "typ": "JWT"}
	if kid != "" {
		h["kid"] = kid
	}
	return h
}

// claims are those of a good token, with others in their place; nil takes one
// away.
func claims(others map[string]any) map[string]any {
	c := merged(map[string]any{
		"iss": "https://issuer.example", "aud": "koine", "sub": "dora",
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}, others)
	for name, value := range c {
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

func good(others map[string]any) string {
	return signed(header("RS256", "r"), claims(others), rs256(rsaKey))
}

// verifier has the set in a file.
func verifier(t *testing.T, set []byte, change func(*jwt.Options)) *jwt.Verifier {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(name, set, 0o600); err != nil {
		t.Fatal(err)
	}
	o := jwt.Options{Keys: name, Issuer: "https://issuer.example", Audience: []string{"koine", "koine2"}}
	if change != nil {
		change(&o)
	}
	v, err := jwt.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// publicSet has keys that count, and some that do not. The weak one is written by
// hand: the library makes none.
func publicSet(t *testing.T) []byte {
	text := setOf(t, member(t, &rsaKey.PublicKey, "r", nil), member(t, &ecKey.PublicKey, "e", map[string]any{"use": "sig", "alg": "ES256"}),
		member(t, edKey.Public(), "d", nil), member(t, &otherRSA.PublicKey, "enc", map[string]any{"use": "enc"}))
	weak := fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"w","e":"AQAB","n":%q},{"kty":"OKP2","kid":"new"},`, base64.RawURLEncoding.EncodeToString(weakRSA.N.Bytes()))
	return []byte(strings.Replace(string(text), `{"keys":[`, weak, 1))
}

func TestGoodTokens(t *testing.T) {
	v := verifier(t, publicSet(t), nil)
	for name, token := range map[string]string{
		"RS256":                  good(nil),
		"ES256":                  signed(header("ES256", "e"), claims(nil), es256),
		"EdDSA":                  signed(header("EdDSA", "d"), claims(nil), edDSA),
		"without kid":            signed(header("ES256", ""), claims(nil), es256),
		"several audiences":      good(map[string]any{"aud": []string{"other", "koine2"}}),
		"a little early":         good(map[string]any{"nbf": time.Now().Add(20 * time.Second).Unix(), "iat": time.Now().Add(20 * time.Second).Unix()}),
		"a little late":          good(map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()}),
		"an id of its own":       good(map[string]any{"sub": "agent://dora"}),
		"of the longest":         strings.TrimSpace(good(map[string]any{"pad": strings.Repeat("x", 8<<10)})),
		"with a word of its own": signed(merged(header("RS256", "r"), map[string]any{"x": 1}), claims(nil), rs256(rsaKey)),
	} {
		c, err := v.Verify(token)
		if err != nil || c.Agent != "agent://dora" {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
}

// Every way in which a token may be no good. None of the errors tells anything of
// the token.
func TestRefusedTokens(t *testing.T) {
	v := verifier(t, publicSet(t), nil)
	const invalid = "the credential is not valid"
	public, err := json.Marshal(member(t, &rsaKey.PublicKey, "r", nil))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{}
	ownKey, _ := json.Marshal(member(t, &otherRSA.PublicKey, "own", nil))
	_ = json.Unmarshal(ownKey, &own)
	parts := strings.Split(good(nil), ".")
	ago, ahead := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	for _, row := range []struct{ name, token, message string }{
		{"nothing", "", invalid},
		{"no token", "a.b.c", invalid},
		{"two parts", parts[0] + "." + parts[1], invalid},
		{"no signature", parts[0] + "." + parts[1] + ".", invalid},
		{"five parts", good(nil) + ".a.b", invalid},
		{"another's signature", signed(header("RS256", "r"), claims(nil), rs256(otherRSA)), invalid},
		{"other claims under a signature", parts[0] + "." + encoded(claims(map[string]any{"sub": "root"})) + "." + parts[2], invalid},
		{"no algorithm", signed(map[string]any{"kid": "r"}, claims(nil), rs256(rsaKey)), "signature algorithm of the token is not allowed"},
		{"alg none", signed(header("none", "r"), claims(nil), func([]byte) []byte { return nil }), "signature algorithm of the token is not allowed"},
		{"alg None", signed(header("None", "r"), claims(nil), func([]byte) []byte { return nil }), invalid},
		{"the public key as a secret", signed(header("HS256", "r"), claims(nil), hs256(public)), "signature algorithm of the token is not allowed"},
		{"the algorithm of another key", signed(header("ES256", "r"), claims(nil), es256), invalid},
		{"another algorithm than the key's own", signed(header("ES384", "e"), claims(nil), es256), invalid},
		{"a key that is not there", signed(header("RS256", "x"), claims(nil), rs256(rsaKey)), invalid},
		{"a key that is too weak", signed(header("RS256", "w"), claims(nil), rs256(weakRSA)), invalid},
		{"a key for something else", signed(header("RS256", "enc"), claims(nil), rs256(otherRSA)), invalid},
		{"a key that it brings", signed(merged(header("RS256", "own"), map[string]any{"jwk": own}), claims(nil), rs256(otherRSA)), invalid},
		{"something critical", signed(merged(header("RS256", "r"), map[string]any{"crit": []string{"x"}, "x": 1}), claims(nil), rs256(rsaKey)), invalid},
		{"claims that are none", parts[0] + "." + encoded([]int{1}) + "." + parts[2], invalid},
		{"no issuer", good(map[string]any{"iss": nil}), ""},
		{"another issuer", good(map[string]any{"iss": "https://evil.example"}), "token has another issuer"},
		{"no audience", good(map[string]any{"aud": nil}), "token has another audience"},
		{"another audience", good(map[string]any{"aud": "other"}), "token has another audience"},
		{"no end", good(map[string]any{"exp": nil}), ""},
		{"expired", good(map[string]any{"exp": ago}), "the token has expired"},
		{"not yet", good(map[string]any{"nbf": ahead}), "the token is not valid yet"},
		{"made tomorrow", good(map[string]any{"iat": ahead}), ""},
		{"no agent", good(map[string]any{"sub": nil}), "token has no valid agent in the claim sub"},
		{"an agent that is no text", good(map[string]any{"sub": 7}), ""},
		{"an agent with a space", good(map[string]any{"sub": "a b"}), "token has no valid agent in the claim sub"},
		{"roles that are no list", good(map[string]any{"roles": 7}), "claim roles of the token is not a list of roles"},
		{"roles that are no texts", good(map[string]any{"roles": []any{"a", 7}}), "claim roles of the token is not a list of roles"},
		{"agents that are none", good(map[string]any{"actFor": []string{"a b", "c\x00"}}), "claim actFor of the token is not a list of agents"},
		{"too long", good(map[string]any{"pad": strings.Repeat("x", jwt.MaxTokenBytes)}), "the token is longer than 16384 bytes"},
		{"as JSON", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, invalid},
	} {
		c, err := v.Verify(row.token)
		if kg.CodeOf(err) != kg.CodeUnauthenticated || row.message != "" && err.Error() != row.message {
			t.Errorf("%s: got %+v, %v; want %q", row.name, c, err, row.message)
		}
		if err != nil && len(row.token) > 20 && strings.Contains(err.Error(), row.token[len(row.token)-20:]) {
			t.Errorf("%s: the error tells of the token: %v", row.name, err)
		}
	}
}

func TestClaims(t *testing.T) {
	v := verifier(t, publicSet(t), func(o *jwt.Options) {
		o.AgentClaim, o.RolesClaim, o.ActForClaim = "https://x.example/agent", "realm.access.roles", "may_act"
	})
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, row := range []struct {
		name   string
		claims map[string]any
		roles  []string
		actFor []kg.AgentID
	}{
		{"lists", map[string]any{"realm": map[string]any{"access": map[string]any{"roles": []string{"a", "b"}}}, "may_act": []string{"x", "*"}}, []string{"a", "b"}, []kg.AgentID{"agent://x", "*"}},
		{"texts", map[string]any{"realm": map[string]any{"access.roles": "a b"}, "may_act": "x"}, []string{"a", "b"}, []kg.AgentID{"agent://x"}},
		{"a claim with dots in its name", map[string]any{"realm.access.roles": "a"}, []string{"a"}, nil},
		{"nothing", nil, nil, nil},
		{"not where they were looked for", map[string]any{"roles": "admin", "realm": "x", "actFor": "*"}, nil, nil},
		{"what is no role", map[string]any{"realm": map[string]any{"access": map[string]any{"roles": []string{"a", "b c", ""}}}}, []string{"a"}, nil},
	} {
		c, err := v.Verify(good(merged(row.claims, map[string]any{"https://x.example/agent": "chen", "exp": ends.Unix()})))
		if err != nil || c.Agent != "agent://chen" || !slices.Equal(c.Roles, row.roles) || !slices.Equal(c.ActFor, row.actFor) || !c.Expires.Equal(ends.Add(jwt.DefaultSkew)) {
			t.Errorf("%s: got %+v, %v", row.name, c, err)
		}
	}
}

// A shared secret counts where a file and the options say so, and nowhere else.
func TestSharedSecret(t *testing.T) {
	set := setOf(t, member(t, secret, "s", nil), member(t, &rsaKey.PublicKey, "r", nil))
	token := signed(header("HS256", "s"), claims(nil), hs256(secret))
	if _, err := verifier(t, set, nil).Verify(token); kg.CodeOf(err) != kg.CodeUnauthenticated {
		t.Errorf("without being told: %v", err)
	}
	v := verifier(t, set, func(o *jwt.Options) { o.Algorithms = []string{"HS256"} })
	if c, err := v.Verify(token); err != nil || c.Agent != "agent://dora" {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := v.Verify(good(nil)); kg.CodeOf(err) != kg.CodeUnauthenticated {
		t.Errorf("an algorithm that is not allowed: %v", err)
	}
	_, err := jwt.Open(t.Context(), jwt.Options{Keys: "https://issuer.example/jwks", Issuer: "i", Audience: []string{"a"}, Algorithms: []string{"RS256", "HS256"}})
	if kg.CodeOf(err) != kg.CodeInvalid || !strings.Contains(err.Error(), "HS256 needs a shared secret") {
		t.Errorf("from a URL: %v", err)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var many []jwk.Key
	for i := range jwt.MaxSetKeys + 1 {
		many = append(many, member(t, edKey.Public(), fmt.Sprint(i), nil))
	}
	fits := write("most", setOf(t, many[1:]...))
	whole := jwt.Options{Keys: fits, Issuer: "i", Audience: []string{"a"}, Skew: jwt.MaxSkew}
	with := func(change func(*jwt.Options)) jwt.Options { o := whole; change(&o); return o }
	for _, row := range []struct {
		name    string
		options jwt.Options
		code    kg.Code
	}{
		{"as many keys as are taken, as much skew", whole, ""},
		{"no keys", with(func(o *jwt.Options) { o.Keys = "" }), kg.CodeInvalid},
		{"no issuer", with(func(o *jwt.Options) { o.Issuer = "" }), kg.CodeInvalid},
		{"no audience", with(func(o *jwt.Options) { o.Audience = nil }), kg.CodeInvalid},
		{"too much skew", with(func(o *jwt.Options) { o.Skew++ }), kg.CodeInvalid},
		{"negative skew", with(func(o *jwt.Options) { o.Skew = -1 }), kg.CodeInvalid},
		{"no algorithm", with(func(o *jwt.Options) { o.Algorithms = []string{"none"} }), kg.CodeInvalid},
		{"an unknown algorithm", with(func(o *jwt.Options) { o.Algorithms = []string{"XS256"} }), kg.CodeInvalid},
		{"no file", with(func(o *jwt.Options) { o.Keys = filepath.Join(dir, "nothing") }), kg.CodeInvalid},
		{"no key set", with(func(o *jwt.Options) { o.Keys = write("text", []byte("secret words")) }), kg.CodeInvalid},
		{"no keys in it", with(func(o *jwt.Options) { o.Keys = write("empty", []byte(`{"keys":[]}`)) }), kg.CodeInvalid},
		{"one key too many", with(func(o *jwt.Options) { o.Keys = write("many", setOf(t, many...)) }), kg.CodeInvalid},
		{"too large", with(func(o *jwt.Options) { o.Keys = write("large", []byte(strings.Repeat(" ", jwt.MaxSetBytes+1))) }), kg.CodeInvalid},
	} {
		v, err := jwt.Open(t.Context(), row.options)
		if kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %v, want %q", row.name, err, row.code)
		}
		if err == nil {
			v.Close()
		} else if strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: the error tells what is in the file: %v", row.name, err)
		}
	}
}

// A provider whose keys change, that fails, and that is unreachable at first.
func TestKeySetFromURL(t *testing.T) {
	var set atomic.Pointer[[]byte]
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if text := set.Load(); text != nil {
			_, _ = w.Write(*text)
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	put := func(keys ...jwk.Key) { text := setOf(t, keys...); set.Store(&text) }
	v, err := jwt.Open(context.Background(), jwt.Options{Keys: server.URL, Issuer: "https://issuer.example", Audience: []string{"koine"},
		Refresh: time.Hour, RefreshAtMost: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	first, second := good(nil), signed(header("RS256", "o"), claims(nil), rs256(otherRSA))
	if _, err := v.Verify(first); err == nil || err.Error() != "tokens cannot be verified at the moment: retry later" {
		t.Errorf("got %v", err)
	}
	eventually := func(what string, token string, ok bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			_, err := v.Verify(token)
			if (err == nil) == ok {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: still %v", what, err)
			}
		}
	}
	put(member(t, &rsaKey.PublicKey, "r", nil), member(t, secret, "s", nil))
	eventually("the provider is there", first, true)
	// A secret that a provider gives away is none.
	if _, err := v.Verify(signed(header("HS256", "s"), claims(nil), hs256(secret))); kg.CodeOf(err) != kg.CodeUnauthenticated {
		t.Errorf("a secret from a URL: %v", err)
	}
	put(member(t, &otherRSA.PublicKey, "o", nil))
	eventually("another key", second, true)
	eventually("the key that is gone", first, false)
	// A provider that fails changes nothing.
	set.Store(nil)
	before := calls.Load()
	for deadline := time.Now().Add(patience); calls.Load() == before; time.Sleep(time.Millisecond) {
		_, _ = v.Verify(first)
		if time.Now().After(deadline) {
			t.Fatal("it was not asked again")
		}
	}
	if _, err := v.Verify(second); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}

// However many tokens ask for keys that are not there, the provider is asked
// seldom.
func TestUnknownKeysDoNotFloodTheProvider(t *testing.T) {
	var calls atomic.Int64
	text := setOf(t, member(t, &rsaKey.PublicKey, "r", nil))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	v, err := jwt.Open(t.Context(), jwt.Options{Keys: server.URL, Issuer: "https://issuer.example", Audience: []string{"koine"}, RefreshAtMost: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		_, _ = v.Verify(signed(header("EdDSA", fmt.Sprint(i)), claims(nil), edDSA))
	}
	v.Close()
	if n := calls.Load(); n > 2 {
		t.Errorf("it was asked %d times", n)
	}
}
