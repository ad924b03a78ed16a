package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	jwx "github.com/lestrrat-go/jwx/v3/jwt"

	"koine/internal/auth"
	"koine/internal/auth/jwt"
	"koine/internal/caller"
)

// BenchmarkAdmit measures the cost of authenticating a caller and of watching the
// credential until the answer is sent: with a key, with a cached token, with a new one,
// and, for comparison, in open mode, where the header has only a name. Aim: 10 µs for
// credentials that come with every request.
func BenchmarkAdmit(b *testing.B) {
	ecKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	set := jwk.NewSet()
	for id, key := range map[string]crypto.PublicKey{"e": ecKey.Public(), "r": rsaKey.Public()} {
		member := must(jwk.Import(key))
		if err := member.Set(jwk.KeyIDKey, id); err != nil {
			b.Fatal(err)
		}
		if err := set.AddKey(member); err != nil {
			b.Fatal(err)
		}
	}
	file := filepath.Join(b.TempDir(), "jwks.json")
	if err := os.WriteFile(file, must(json.Marshal(set)), 0o600); err != nil {
		b.Fatal(err)
	}
	verifier := must(jwt.Open(b.Context(), jwt.Options{Keys: file, Issuer: "https://issuer.example", Audience: []string{"koine"}}))
	b.Cleanup(verifier.Close)
	bench := newBench(b, auth.Options{Tokens: verifier})
	key := bench.create(auth.KeyRequest{Agent: "agent://dora", Roles: []string{"scribe"}, Lifetime: time.Hour}).Secret

	token := func(alg jwa.SignatureAlgorithm, key any, n int) string {
		t := must(jwx.NewBuilder().Issuer("https://issuer.example").Audience([]string{"koine"}).Subject("dora").
			Expiration(time.Now().Add(time.Hour)).Claim("roles", []string{"scribe"}).JwtID(fmt.Sprint(n)).Build())
		return string(must(jwx.Sign(t, jwx.WithKey(alg, key))))
	}
	admit := func(b *testing.B, credential string) {
		_, release, err := bench.gate.Admit(b.Context(), credential, func(error) {})
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := caller.ParseAgent("dora"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			admit(b, key)
		}
	})
	b.Run("key from all sides", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				admit(b, key)
			}
		})
	})
	for _, kind := range []struct {
		name string
		alg  jwa.SignatureAlgorithm
		key  any
	}{{"RS256", jwa.RS256(), rsaKey}, {"ES256", jwa.ES256(), ecKey}} {
		again := token(kind.alg, kind.key, 0)
		b.Run(kind.name+" token again", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				admit(b, again)
			}
		})
		n := 0
		b.Run(kind.name+" token for the first time", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				n++
				fresh := token(kind.alg, kind.key, n)
				b.StartTimer()
				admit(b, fresh)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
