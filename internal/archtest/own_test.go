package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// own lists the folders that may read and write system graphs without access checks, and the vocabulary
// that belongs to each. Code in such a folder must check access itself.
var own = map[string]string{
	"kg":                          "it is the capability's home",
	"internal/systemgraph":        "the writing of records for agents and auth",
	"internal/agents":             "records of agents",
	"internal/tasks":              "tasks, their messages and artifacts",
	"internal/delivery/push":      "configurations of push notifications",
	"internal/delivery/forward":   "upstreams of agents",
	"internal/delivery/inboxhook": "progress of messages to endpoints",
	"internal/delivery/mailhook":  "web hooks of mailboxes",
	"internal/auth":               "API keys",
	"internal/following":          "who follows whom",
	"internal/intents":            "records, leases, tasks, access requests and portfolios of intents",
	"internal/presence":           "who of the agents is there",
	"internal/policy":             "graphs and their policies",
	"internal/shapes":             "shapes",
	"internal/proposals":          "proposals",
	"internal/provenance":         "quarantine",
	"channels":                    "channels and messages",
	"channels/channel":            "records of channels",
	"channels/receipts":           "receipts",
	"channels/internal/counting":  "counts of messages",
	"channels/internal/journal":   "messages",
	"channels/internal/retention": "content that has had its time",
	"channels/message":            "content of messages",
	"channels/scope":              "records and events of scopes",
}

var ownCall = regexp.MustCompile(`\.(ApplyOwn|MatchOwn)\b`)

func TestOwnVocabularyIsWrittenByItsPackagesOnly(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
		if strings.HasPrefix(folder, "kg/") { // the suite stands for the domain packages; the store's parts name the calls
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !ownCall.Match(text) {
			return err
		}
		used[folder] = true
		if own[folder] == "" {
			t.Errorf("%s writes or reads koine's own graphs past the rules of access", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range own {
		if !used[folder] && folder != "kg" {
			t.Errorf("%s does not use it any more: take it off the list", folder)
		}
	}
}
