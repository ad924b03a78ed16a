package base_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"koine/a2a/internal/base"
	"koine/a2a/internal/v03"
	"koine/a2a/internal/v1"
	"koine/internal/plainjson"
)

// Data and metadata of a sender are returned exactly in either version, whatever their
// content: names like ours, escapes, digits, the order of members.
func TestWhatIsTheSendersOwnStaysAsItIs(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 10))
	for range 3000 {
		data, metadata := anything(random, 3), "{"+members(random, 2)+"}"
		for version, row := range map[string]struct {
			codec      base.Codec
			role, part string
		}{
			"1.0": {v1.Codec{}, "ROLE_USER", `{"data":%s,"metadata":%s}`},
			"0.3": {v03.Codec{}, "user", `{"kind":"data","data":%s,"metadata":%s}`},
		} {
			part := fmt.Sprintf(row.part, data, metadata)
			params := fmt.Sprintf(`{"message":{"message_id":"m_1","role":%q,"parts":[%s],"metadata":%s}}`, row.role, part, metadata)
			sent, err := row.codec.ReadSend([]byte(params))
			if err != nil {
				t.Fatalf("%s: %s: %v", version, params, err)
			}
			got, err := plainjson.Encode(row.codec.Message(&sent.Message, base.About{}))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"parts":[` + part + `]`, `"metadata":` + metadata} {
				if !strings.Contains(string(got), want) {
					t.Fatalf("%s: no %s in %s", version, want, got)
				}
			}
		}
	}
}

// anything returns some JSON without spaces.
func anything(r *rand.Rand, depth int) string {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return word(r)
	case 1:
		return pick(r, "0", "-0", "1.50", "12345678901234567890.10", "1e400", "-1E-9")
	case 2:
		return pick(r, "true", "false")
	case 3:
		return "null"
	case 4:
		return pick(r, "{}", "[]", `""`)
	case 5:
		list := make([]string, 1+r.IntN(3))
		for i := range list {
			list[i] = anything(r, depth-1)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return "{" + members(r, depth-1) + "}"
}

func members(r *rand.Rand, depth int) string {
	var list []string
	taken := map[string]bool{}
	for range 1 + r.IntN(3) {
		name := word(r)
		var plain string
		if json.Unmarshal([]byte(name), &plain) != nil || taken[plain] { // as the endpoint refuses it
			continue
		}
		taken[plain] = true
		list = append(list, name+":"+anything(r, depth))
	}
	return strings.Join(list, ",")
}

func word(r *rand.Rand) string {
	return pick(r, `"message_id"`, `"messageId"`, `"parts"`, `"data"`, `"a_b"`, `"_"`, `"<b>&"`, `"\u003c"`, `"\u00e9é"`, `"\"\\\/\n"`, `"text"`, `"kind"`, `" "`)
}

func pick(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }
