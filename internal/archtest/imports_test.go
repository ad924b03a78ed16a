package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layer lists the packages of koine, or all below a folder ("…/..."), and the other modules that a package
// may import, with the reason.
type layer struct {
	of      string
	imports []string // packages and folders of koine
	modules []string // other modules; nil bounds nothing
	why     string
}

// storage lists the packages on which the store may depend: a log, an index, data structures.
var storage = []string{
	"github.com/dgraph-io/badger/v4", "github.com/dgraph-io/ristretto/v2", "github.com/hashicorp/raft-wal", "github.com/hashicorp/raft", "github.com/klauspost/compress",
	"github.com/tidwall/btree", "github.com/maypok86/otter/v2", "github.com/google/uuid",
	"github.com/cespare/xxhash/v2", "go.etcd.io/bbolt", "github.com/hashicorp/go-hclog", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/text",
}

// law is the list of all layers. The first row that matches a package applies; a package without a row is
// an error, so that a new package is placed deliberately.
var law = []layer{
	{"koine/kg/base", []string{"koine/kg/internal/codec", "koine/kg/internal/keys", "koine/kg/internal/wal"}, storage,
		"the types of the data model know nothing of the parts that are built on them; errors of the log become the model's"},
	{"koine/kg/internal/index", []string{"koine/kg/base", "koine/kg/internal/codec", "koine/kg/internal/keys", "koine/kg/internal/memtree"}, storage,
		"the index follows from commits alone, so it knows neither the log nor the store"},
	{"koine/kg/internal/logentry", []string{"koine/kg/base", "koine/kg/internal/codec"}, storage,
		"the encoding of a commit outlives every index"},
	{"koine/kg/internal/bulkindex", []string{"koine/kg/base", "koine/kg/internal/index", "koine/kg/internal/codec", "koine/kg/internal/keys", "koine/internal/extsort"}, storage,
		"a bulk load writes the keys of the index and knows nothing of the log"},
	{"koine/kg/internal/datadir", []string{"koine/kg/base", "koine/kg/internal/wal", "koine/internal/extsort"}, storage,
		"a data directory is opened before its log and its index"},
	{"koine/kg/internal/archive", []string{"koine/kg/base", "koine/kg/internal/index", "koine/kg/internal/datadir", "koine/kg/internal/codec", "koine/kg/internal/keys", "koine/kg/internal/wal"}, storage,
		"checkpoints and backups are files: reading them needs no open store"},
	{"koine/kg/internal/erasure", []string{"koine/kg/base", "koine/kg/internal/index", "koine/kg/internal/archive", "koine/kg/internal/codec", "koine/kg/internal/keys", "koine/kg/internal/wal"}, storage,
		"erasing rewrites the log's entries and checkpoints of a closed store"},
	{"koine/kg/internal/...", []string{"koine/kg/internal/..."}, storage,
		"the parts of the store each keep one promise; they must not know the whole that is made of them"},
	{"koine/kg/kgtest", []string{"koine/kg"}, nil,
		"the conformance suite sees the store as everybody does"},
	{"koine/kg", []string{"koine/kg/base", "koine/kg/internal/...", "koine/internal/extsort", "koine/internal/jobs"}, storage,
		"the domain knows no protocol and no wire format: every voice is an adapter over it"},

	{"koine/channels/internal/vocab", []string{"koine/kg", "koine/internal/systemgraph"}, []string{},
		"the properties of channels, scopes and messages are names: they know nothing of what has them"},
	{"koine/channels/internal/check", []string{"koine/kg"}, []string{},
		"texts and limits are checked the same way whatever they belong to"},
	{"koine/channels/scope", []string{"koine/kg", "koine/channels/internal/vocab", "koine/channels/internal/check", "koine/internal/systemgraph"}, []string{},
		"a scope is the same whatever channels it has, so it knows none"},
	{"koine/channels/channel", []string{"koine/kg", "koine/channels/scope", "koine/internal/plainjson", "koine/channels/internal/vocab", "koine/channels/internal/check", "koine/internal/systemgraph"}, []string{},
		"the record of a channel follows from commits alone: it knows no messages and no service"},
	{"koine/channels/message", []string{"koine/kg", "koine/internal/recent", "koine/channels/channel", "koine/channels/scope", "koine/channels/internal/vocab", "koine/channels/internal/check", "koine/internal/systemgraph"}, []string{},
		"a message is decoded from statements, wherever they come from: it knows no service"},
	{"koine/channels/internal/access", []string{"koine/kg", "koine/channels/scope", "koine/channels/channel", "koine/channels/internal/vocab", "koine/channels/internal/check", "koine/internal/caller", "koine/internal/systemgraph"}, []string{"github.com/tidwall/btree"},
		"who may do what follows from commits alone, whatever is done: it knows no messages and no service"},
	{"koine/channels/internal/journal", []string{"koine/kg", "koine/channels/channel", "koine/channels/message", "koine/channels/internal/access", "koine/channels/internal/vocab", "koine/channels/internal/check"}, []string{},
		"messages are read the same way for all that show, follow or count them"},
	{"koine/channels/internal/retention", []string{"koine/kg", "koine/channels/channel", "koine/channels/message", "koine/channels/scope", "koine/channels/internal/access", "koine/internal/jobs", "koine/channels/internal/journal", "koine/channels/internal/vocab", "koine/internal/systemgraph"}, []string{"github.com/tidwall/btree"},
		"what has had its time is removed whoever published it: it knows no service"},
	{"koine/channels/internal/counting", []string{"koine/kg", "koine/channels/channel", "koine/channels/internal/access", "koine/internal/jobs", "koine/channels/internal/journal", "koine/channels/internal/vocab", "koine/internal/systemgraph"}, []string{},
		"messages are counted from the store alone: it knows no service"},
	{"koine/channels/receipts", []string{"koine/kg", "koine/channels/channel", "koine/channels/message", "koine/channels/internal/...", "koine/internal/jobs", "koine/internal/systemgraph"}, []string{},
		"receipts are facts about messages that others published: it does not publish"},
	{"koine/channels/actions", []string{"koine/kg", "koine/channels/channel", "koine/channels/message", "koine/channels/scope", "koine/channels/internal/vocab"}, []string{},
		"what a commit did stands in the commit alone"},
	{"koine/channels", []string{"koine/channels/...", "koine/kg", "koine/internal/caller", "koine/internal/plainjson", "koine/internal/systemgraph", "koine/internal/agents", "koine/internal/jobs"}, []string{"github.com/google/uuid", "github.com/tidwall/btree", "golang.org/x/time"},
		"conversations are the same in all protocols, so it knows none; whom a caller acts for is the same for all it asks, and who has a role stands in the records of agents"},

	{"koine/internal/jobs", []string{}, []string{"github.com/tidwall/btree"},
		"what runs in the background is started and stopped the same way, whatever it does"},
	{"koine/internal/extsort", []string{}, []string{},
		"records are put in order the same way whatever they are"},
	{"koine/internal/social", []string{"koine/kg"}, []string{},
		"data for benchmarks are made of statements alone"},
	{"koine/internal/query/valuespace", []string{"koine/kg"}, []string{},
		"what literals mean is the same for queries, shapes and rules"},
	{"koine/internal/query/valuewalk", []string{"koine/kg", "koine/internal/query/valuespace"}, []string{},
		"lists and patterns read the order of the index in one way"},
	{"koine/internal/slowtest", []string{}, []string{},
		"tests of all packages import it"},
	{"koine/internal/w3c", []string{}, []string{},
		"where the suites of the W3C are is the same for all tests that run them"},
	{"koine/internal/fanoutbench", []string{"koine/internal/footprint"}, []string{},
		"it measures builds of any age, so it knows them by their command line and by HTTP alone"},
	{"koine/internal/readbench", []string{"koine/internal/garbage"}, []string{"github.com/dgraph-io/badger/v4"},
		"it measures builds of any age, so it knows them by their command line and by HTTP alone; its twin has the same limit of garbage and the same Badger"},
	{"koine/internal/benchguard", []string{}, []string{},
		"it measures builds of any age, so it knows them by their command line and by HTTP alone"},
	{"koine/internal/rest", []string{"koine/kg", "koine/internal/plainjson", "koine/internal/sse"}, []string{},
		"how requests about resources are read and answered is the same in all protocols of paths; their errors are theirs"},
	{"koine/internal/delivery", []string{"koine/kg", "koine/internal/backoff", "koine/internal/jobs"}, []string{},
		"how addresses that others named are called is the same whatever they are told"},
	{"koine/internal/delivery/push", []string{"koine/kg", "koine/internal/systemgraph", "koine/internal/caller", "koine/internal/tasks", "koine/internal/throttle", "koine/internal/delivery"}, []string{"github.com/google/uuid"},
		"who is told of tasks, and how it is called, is the same for all protocols: the bodies are handed in"},
	{"koine/internal/delivery/mailhook", []string{"koine/kg", "koine/internal/systemgraph", "koine/internal/caller", "koine/internal/agents", "koine/internal/tasks", "koine/internal/delivery"}, []string{},
		"how letters come to agents that are called is the same whatever form they are written in, which is handed in"},
	{"koine/internal/delivery/inboxhook", []string{"koine/kg", "koine/channels", "koine/channels/message", "koine/internal/systemgraph", "koine/internal/agents", "koine/internal/delivery"}, []string{},
		"how the messages of channels come to endpoints is the same whatever form they are written in, which is handed in"},
	{"koine/internal/delivery/forward", []string{"koine/kg", "koine/internal/systemgraph", "koine/internal/caller", "koine/internal/agents", "koine/internal/tasks", "koine/internal/delivery", "koine/internal/backoff", "koine/internal/plainjson", "koine/internal/sse"}, []string{"github.com/google/uuid"},
		"how letters come to agents that are servers, and what becomes of their answers, is the same in all versions and bindings, which are handed in"},
	{"koine/internal/recent", nil, []string{},
		"values that goroutines share know nothing of what they are"},
	{"koine/internal/operation", []string{"koine/kg"}, nil,
		"the seam between adapters and the engine must stay free of both"},
	{"koine/internal/caller", []string{"koine/kg"}, []string{},
		"everybody imports it: it carries who is calling, and nothing else"},
	{"koine/internal/plainjson", []string{}, []string{},
		"everybody writes JSON: it needs values, and nothing of koine"},
	{"koine/internal/names", []string{"koine/kg", "koine/internal/suggest", "koine/internal/operation"}, []string{},
		"which names may be written is the same for all protocols and for all that is loaded, so it knows none"},
	{"koine/internal/update", []string{"koine/kg", "koine/internal/names", "koine/internal/operation"}, []string{},
		"how patches are written is the same for all protocols, so it knows none"},
	{"koine/internal/provenance", []string{"koine/kg", "koine/internal/systemgraph", "koine/internal/shapes"}, []string{},
		"what is believed and how it is repaired is the same for all protocols, so it knows none"},
	{"koine/internal/changefeed", []string{"koine/kg", "koine/internal/operation"}, []string{},
		"what stands and what changes is the same for all protocols, so it knows none"},
	{"koine/internal/suggest", []string{}, []string{},
		"a guess at a name needs names"},
	{"koine/internal/query", []string{"koine/kg", "koine/kg/base", "koine/internal/query/idtable", "koine/internal/query/path", "koine/internal/query/pattern", "koine/internal/query/valuespace", "koine/internal/query/valuewalk", "koine/internal/suggest", "koine/internal/pacedregexp"}, []string{},
		"lists, conditions, orders and groups are the same for all protocols and schemas, so it knows none"},
	{"koine/internal/query/path", []string{"koine/kg", "koine/internal/suggest"}, []string{},
		"ways through the graph are the same for all protocols, so it knows none"},
	{"koine/internal/rdf", []string{"koine/kg"}, nil,
		"reading and writing RDF needs terms, not a server"},
	{"koine/internal/assertions", []string{"koine/kg", "koine/internal/backoff", "koine/internal/extsort"}, []string{},
		"what is known of statements is described and compared the same way in all formats, so it knows none"},
	{"koine/internal/pacedregexp", []string{}, []string{},
		"what a match costs is the same for all that pay"},
	{"koine/internal/backoff", []string{}, []string{},
		"whatever tries again waits the same way"},
	{"koine/internal/footprint", []string{}, []string{},
		"what a process takes of the machine is the same whatever it does"},
	{"koine/internal/diagnosis", []string{"koine/kg"}, []string{"github.com/vektah/gqlparser/v2"},
		"it shows what others report, and none of them knows it"},
	{"koine/internal/memory", []string{}, []string{"github.com/KimMachineGun/automemlimit"},
		"who has which part of the memory is one table; what has it is told by cmd"},
	{"koine/internal/garbage", []string{}, []string{},
		"how a process collects its garbage has nothing to do with what it does"},
	{"koine/internal/sse", []string{"koine/internal/backoff"}, []string{"github.com/r3labs/sse/v2", "gopkg.in/cenkalti/backoff.v1"},
		"streams move bytes; what the events mean is their dialect's business"},
	{"koine/internal/shapes", []string{"koine/kg", "koine/internal/query/valuespace", "koine/internal/rdf", "koine/internal/systemgraph", "koine/internal/pacedregexp"}, []string{},
		"a judgement is the same whoever asks for the update; shapes are written as RDF"},
	{"koine/internal/query/idtable", []string{"koine/kg"}, []string{},
		"numbers of ids, which queries over whole properties keep in arrays"},
	{"koine/internal/query/pattern", []string{"koine/kg", "koine/internal/query/idtable", "koine/internal/query/path", "koine/internal/query/valuespace", "koine/internal/query/valuewalk"}, []string{},
		"how patterns are joined is the same for all languages that ask with them"},
	{"koine/internal/query/livematch", []string{"koine/kg", "koine/internal/query/pattern"}, []string{},
		"how solutions change with a commit is the same for all protocols, so it knows none"},
	{"koine/internal/audit", []string{"koine/kg", "koine/channels/actions", "koine/channels/channel", "koine/channels/message", "koine/channels/scope", "koine/internal/caller", "koine/internal/jobs"}, []string{},
		"what was done and what was refused is the same for all protocols, so it knows none"},
	{"koine/internal/tracing", []string{"koine/kg"}, []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/trace"},
		"only it knows OpenTelemetry: everybody else is given a function that begins a span"},
	{"koine/internal/throttle", []string{"koine/kg", "koine/internal/caller"}, []string{"golang.org/x/time"},
		"how much one caller may ask for is the same in all protocols, so it knows none"},
	{"koine/internal/policy", []string{"koine/kg", "koine/internal/systemgraph"}, []string{"github.com/google/uuid"},
		"who may do what with a graph is the same for all protocols, so it knows none"},
	{"koine/internal/systemgraph", []string{"koine/kg"}, []string{},
		"what koine writes down about itself is kept the same way, whatever it is about"},
	{"koine/internal/agents", []string{"koine/kg", "koine/internal/caller", "koine/internal/plainjson", "koine/internal/systemgraph", "koine/internal/jobs"}, []string{},
		"who has been here, and who can be asked, is the same for all protocols, so it knows none"},
	{"koine/internal/presence", []string{"koine/kg", "koine/internal/backoff", "koine/internal/systemgraph", "koine/internal/agents", "koine/internal/jobs"}, []string{"github.com/tidwall/btree"},
		"who is there is the same for all protocols, so it knows none; who is written down stands in the records of agents"},
	{"koine/internal/following", []string{"koine/kg", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/internal/caller", "koine/internal/systemgraph"}, []string{},
		"who follows whom, and what they publish, is the same for all protocols, so it knows none"},
	{"koine/internal/reputation", []string{"koine/kg", "koine/channels/channel", "koine/channels/message", "koine/internal/agents", "koine/internal/caller", "koine/internal/systemgraph"}, []string{},
		"a score follows from the graph alone: it is computed from what its reader may see"},
	{"koine/internal/intents", []string{"koine/kg", "koine/channels", "koine/channels/scope", "koine/channels/channel", "koine/channels/message", "koine/internal/agents", "koine/internal/caller", "koine/internal/jobs", "koine/internal/plainjson", "koine/internal/systemgraph"}, []string{"github.com/google/uuid"},
		"what an intent has beyond its scope is the same for all protocols, so it knows none"},
	{"koine/internal/textindex/words", nil, []string{"golang.org/x/text", "github.com/blevesearch/snowballstem"},
		"texts become words in the same way wherever they come from"},
	{"koine/internal/sealed", nil, []string{"golang.org/x/sys"},
		"files of derived data are written in one way, whatever is in them"},
	{"koine/internal/textindex", []string{"koine/kg", "koine/internal/sealed", "koine/internal/textindex/words"}, []string{},
		"an index of texts knows ids and no store, so that it is tested without one"},
	{"koine/internal/vectorindex", []string{"koine/kg", "koine/internal/sealed", "koine/internal/textindex"}, []string{"golang.org/x/sys"},
		"an index of vectors knows ids and no store, so that it is tested without one; subjects and places are those of the text index"},
	{"koine/internal/embedding", []string{"koine/kg", "koine/internal/backoff", "koine/internal/jobs", "koine/internal/sealed", "koine/internal/vectorindex"}, []string{},
		"the endpoint is told texts and no more, so it knows no protocol and no index of texts"},
	{"koine/internal/search", []string{"koine/kg", "koine/channels/channel", "koine/internal/query", "koine/internal/query/pattern", "koine/internal/textindex/...", "koine/internal/vectorindex", "koine/internal/jobs", "koine/internal/sealed"}, []string{},
		"it follows the log, and is the same for all protocols, so it knows none"},
	{"koine/internal/compact", []string{"koine/kg", "koine/internal/plainjson"}, []string{},
		"lines of text mean the same wherever they come from, so it knows no store"},
	{"koine/internal/recall", []string{"koine/kg", "koine/internal/compact", "koine/internal/query", "koine/internal/search"}, []string{},
		"what is known about a topic is the same for all protocols, so it knows none"},
	{"koine/internal/remember", []string{"koine/kg", "koine/internal/compact", "koine/internal/names", "koine/internal/plainjson", "koine/internal/provenance", "koine/internal/rdf", "koine/internal/shapes", "koine/internal/suggest", "koine/internal/update"}, []string{"github.com/google/uuid"},
		"an entity is found or made the same way for all protocols, so it knows none"},
	{"koine/internal/conformance", []string{"koine/internal/caller", "koine/internal/tasks"}, []string{},
		"it stands in for an agent, and knows no more than one"},
	{"koine/internal/tasks", []string{"koine/kg", "koine/internal/caller", "koine/internal/plainjson", "koine/internal/systemgraph", "koine/internal/jobs", "koine/internal/throttle"}, []string{"github.com/google/uuid", "golang.org/x/time"},
		"work that agents ask of each other is the same in all protocols, so it knows none"},
	{"koine/internal/auth", []string{"koine/kg", "koine/internal/caller", "koine/internal/systemgraph", "koine/internal/agents"}, []string{},
		"whose a credential is has nothing to do with how it came; other people's tokens are checked below it"},
	{"koine/internal/auth/jwt", []string{"koine/kg", "koine/internal/auth", "koine/internal/caller"}, []string{"github.com/lestrrat-go/jwx/v3"},
		"the one place that knows the library for tokens"},
	{"koine/internal/demo", []string{"koine/kg", "koine/internal/rdf", "koine/internal/policy", "koine/internal/systemgraph"}, nil,
		"the demo is data, how to load it, and who may read it"},
	{"koine/internal/archtest", []string{}, []string{},
		"the law stands beside the packages"},
	{"koine/internal/housestyle", []string{}, []string{},
		"it measures source text, of any commit"},

	{"koine/internal/celrules", []string{"koine/kg", "koine/internal/query/valuespace", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/channels/scope", "koine/internal/pacedregexp"}, []string{"github.com/google/cel-go", "gopkg.in/yaml.v3"},
		"what the operator's rules say, of facts and of messages, is the same for all protocols; only it knows their language"},
	{"koine/internal/scan", []string{"koine/kg", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/internal/delivery"}, []string{},
		"whether a message may be published is asked the same way for all protocols, so it knows none; the language of rules is celrules'"},
	{"koine/internal/proposals", []string{"koine/kg", "koine/internal/systemgraph"}, []string{"github.com/google/uuid", "github.com/tidwall/btree"},
		"held updates are kept and decided about in the domain: it knows no protocol, and no rules either"},

	{"koine", []string{}, []string{},
		"the schema is a text: whatever reads it brings the rest"},
	{"koine/graph/executor", []string{}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"how an operation is executed does not depend on what its fields are about"},
	{"koine/graph/internal/tablegen", []string{}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"the tables follow from the schema and from Go's types: their generator runs before the engine exists"},
	{"koine/graph/internal/scalar", []string{"koine/graph/executor", "koine/kg"}, []string{"github.com/99designs/gqlgen"},
		"scalars are coerced and written the same way wherever they stand"},
	{"koine/graph/internal/views", []string{"koine/graph/internal/scalar", "koine/kg"}, []string{},
		"what a view shows does not depend on the field that has it"},
	{"koine/graph/limit", []string{"koine/graph/internal/scalar", "koine/channels", "koine/internal/changefeed", "koine/internal/operation", "koine/internal/query/livematch", "koine/internal/query/path", "koine/internal/query/pattern", "koine/kg"}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"what an operation may cost is decided by its document and the operator's numbers: nothing is read for it"},
	{"koine/graph/internal/fault", []string{"koine/graph/executor", "koine/graph/limit", "koine/kg"}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"errors get their public form in one place, wherever they come from"},
	{"koine/graph/internal/hint", []string{"koine/graph/internal/fault", "koine/internal/operation", "koine/internal/query", "koine/internal/query/path", "koine/internal/suggest", "koine/kg"}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"what would be right follows from the schema, the document and the names in the data: the engine is not needed"},
	{"koine/graph/documents", []string{"koine/graph/limit", "koine/graph/internal/fault", "koine/graph/internal/hint", "koine/internal/operation", "koine/kg"}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"a document is valid in a schema, whatever it is executed for"},
	{"koine/graph/internal/knowledge", []string{"koine/graph/executor", "koine/graph/limit", "koine/graph/internal/fault", "koine/graph/internal/scalar", "koine/graph/internal/views", "koine/internal/changefeed", "koine/internal/names", "koine/internal/operation", "koine/internal/query", "koine/internal/query/livematch", "koine/internal/query/path", "koine/internal/query/pattern", "koine/internal/query/valuespace", "koine/kg", "koine/kg/base"}, []string{"github.com/99designs/gqlgen", "github.com/vektah/gqlparser/v2"},
		"what the graph says is answered the same way whatever else the schema has: channels, tasks and agents are handed in as what tables write"},
	{"koine/graph", []string{"koine/internal/intents", "koine/internal/recent", "koine", "koine/graph/executor", "koine/graph/internal/knowledge", "koine/graph/documents", "koine/graph/limit", "koine/graph/internal/fault", "koine/graph/internal/hint", "koine/graph/internal/scalar", "koine/graph/internal/views", "koine/kg/base", "koine/internal/query", "koine/channels", "koine/channels/actions", "koine/channels/channel", "koine/channels/message", "koine/channels/receipts", "koine/channels/scope", "koine/internal/query/valuespace", "koine/internal/tasks", "koine/internal/audit", "koine/internal/provenance", "koine/internal/proposals", "koine/internal/query/livematch", "koine/kg", "koine/internal/query/pattern", "koine/internal/names", "koine/internal/suggest", "koine/internal/query/path", "koine/internal/operation", "koine/internal/update", "koine/internal/changefeed", "koine/internal/policy", "koine/internal/rdf",
		"koine/internal/auth", "koine/internal/agents", "koine/internal/presence", "koine/internal/compact", "koine/internal/recall", "koine/internal/remember", "koine/internal/search", "koine/internal/shapes"}, nil,
		"the engine executes operations, whatever brings them: it knows no HTTP"},
	{"koine/graph/reference", []string{}, []string{},
		"it compares the engine with another one, in tests alone"},
	{"koine/internal/ws", []string{"koine/kg", "koine/internal/caller", "koine/internal/sse", "koine/internal/throttle"}, []string{"github.com/coder/websocket"},
		"a socket opens, lives and ends the same way in all protocols, so it knows none"},
	{"koine/graph/transport/...", []string{"koine/internal/plainjson", "koine/internal/recent", "koine/kg", "koine/internal/operation", "koine/internal/caller", "koine/internal/sse", "koine/internal/throttle", "koine/internal/ws"}, nil,
		"a transport knows the engine through the interface that it declares: it must serve any other as well"},
	{"koine/a2a/internal/...", []string{"koine/a2a/internal/...", "koine/internal/plainjson", "koine/kg", "koine/internal/tasks", "koine/internal/delivery/forward", "koine/internal/delivery/push"}, []string{},
		"how a version of A2A is written knows no server"},
	{"koine/a2a", []string{"koine/internal/plainjson", "koine/a2a/internal/...", "koine/kg", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/channels/scope", "koine/internal/tasks", "koine/internal/delivery/push", "koine/internal/compact", "koine/internal/names", "koine/internal/suggest", "koine/internal/operation", "koine/internal/caller", "koine/internal/update", "koine/internal/changefeed", "koine/internal/sse"}, nil,
		"adapters never import each other: what one needs of another it declares, and cmd hands it in"},
	{"koine/a2a/hub", []string{"koine/a2a", "koine/internal/plainjson", "koine/a2a/internal/...", "koine/kg", "koine/internal/agents", "koine/internal/tasks", "koine/internal/delivery/mailhook", "koine/internal/delivery/forward", "koine/internal/delivery", "koine/internal/caller", "koine/internal/rest", "koine/internal/sse"}, []string{},
		"other agents are asked as koine is: it is the same adapter, for those who have no address of their own"},
	{"koine/internal/dialect/agentchat", []string{"koine/kg", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/internal/agents", "koine/internal/auth", "koine/internal/presence", "koine/internal/following", "koine/internal/reputation", "koine/internal/search", "koine/internal/jobs", "koine/internal/plainjson", "koine/internal/caller", "koine/internal/rest", "koine/internal/sse", "koine/internal/throttle", "koine/internal/ws"}, nil,
		"rooms are channels and its agents those of all protocols: it decodes, calls them, and encodes"},
	{"koine/internal/dialect/openintent", []string{"koine/kg", "koine/channels", "koine/channels/channel", "koine/channels/message", "koine/channels/receipts", "koine/channels/scope", "koine/internal/agents", "koine/internal/presence", "koine/internal/intents", "koine/internal/plainjson", "koine/internal/caller", "koine/internal/rest", "koine/internal/sse"}, nil,
		"its channels and messages are those of all protocols: it decodes, calls them, and encodes"},
	{"koine/internal/dialect/facts", []string{"koine/kg", "koine/internal/caller", "koine/internal/operation", "koine/internal/rest"}, []string{},
		"facts are remembered as in GraphQL: it decodes, executes a mutation, and encodes"},
	{"koine/internal/dialect/modelcontext", []string{"koine/internal/sse", "koine/kg", "koine/internal/caller", "koine/internal/compact", "koine/internal/operation", "koine/internal/suggest"}, nil,
		"its tools are GraphQL operations of one caller: it decodes, runs them, and encodes"},
	{"koine/internal/dialect/...", []string{"koine/kg", "koine/internal/names", "koine/internal/plainjson", "koine/internal/tasks", "koine/internal/operation", "koine/internal/policy", "koine/internal/caller", "koine/internal/update", "koine/internal/changefeed", "koine/internal/rest", "koine/internal/sse", "koine/internal/rdf", "koine/internal/assertions", "koine/internal/throttle", "koine/internal/ws"}, nil,
		"a dialect is one directory that knows no sibling"},
	{"koine/internal/httpd", []string{"koine/kg", "koine/internal/tracing", "koine/internal/audit", "koine/internal/caller", "koine/internal/sse", "koine/internal/throttle"}, nil,
		"the server is handed its adapters: importing one would make all the others depend on it"},
	{"koine/web/...", []string{}, []string{},
		"the pages are embedded files"},
	{"koine/client", []string{"koine/internal/backoff", "koine/internal/sse"}, []string{"github.com/a2aproject/a2a-go/v2", "github.com/google/uuid"},
		"a client knows the wire and nothing of the server behind it"},
	{"koine/examples/...", []string{"koine/client"}, []string{},
		"an example has what everybody has"},
	{"koine/internal/observertest", []string{"koine/kg", "koine/channels", "koine/internal/agents", "koine/internal/auth", "koine/internal/provenance", "koine/internal/policy", "koine/internal/presence", "koine/internal/proposals", "koine/internal/shapes"}, []string{},
		"tests compare all observers that a server has, so it knows them all"},
	{"koine/internal/wiretest", []string{"koine/internal/slowtest"}, []string{"github.com/rogpeppe/go-internal"},
		"conversations are run the same way whatever the protocol says"},
	{"koine/internal/logtest", nil, []string{},
		"every package's tests read logs"},
	{"koine/internal/servertest", []string{"koine/internal/observertest"}, []string{},
		"tests of clients meet the program as everybody does: as a process with an address"},
	{"koine/cmd/koine/internal/buildinfo", []string{}, []string{},
		"which build this is follows from the linker alone"},
	{"koine/cmd/koine/internal/cli", []string{"koine/cmd/koine/internal/buildinfo", "koine/client", "koine/kg", "koine/internal/names", "koine/internal/rdf"}, nil,
		"what all commands share knows none of them, and no server"},
	{"koine/cmd/koine/internal/online", []string{"koine/cmd/koine/internal/cli", "koine/client", "koine/kg", "koine/channels/channel", "koine/channels/message", "koine/graph/limit", "koine/internal/names"}, nil,
		"commands that are clients of a server see it as everybody does; of the domain they take names and bounds"},
	{"koine/cmd/koine/internal/offline", []string{"koine/cmd/koine/internal/cli", "koine/channels/channel", "koine/channels/message", "koine/client", "koine/kg", "koine/internal/assertions", "koine/internal/auth", "koine/internal/celrules", "koine/internal/embedding", "koine/internal/garbage", "koine/internal/memory", "koine/internal/names", "koine/internal/provenance", "koine/internal/rdf", "koine/internal/search", "koine/internal/shapes"}, nil,
		"commands on a data directory use the domain, and no adapter: nobody listens while they run"},
	{"koine/cmd/koine/internal/bench", []string{"koine/cmd/koine/internal/cli", "koine/client", "koine/kg", "koine/internal/rdf", "koine/internal/social"}, nil,
		"a benchmark measures a server from outside; the one of its own is handed in"},
	{"koine/cmd/...", []string{"koine/..."}, nil,
		"only cmd imports everything: that is where it is wired together"},
}

// pkg is a package as reported by `go list`. Tests may import anything.
type pkg struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Path string }
	Standard   bool
}

func TestImportLaw(t *testing.T) {
	ours, modules := list(t)
	for _, l := range law {
		if !slices.ContainsFunc(ours, func(p pkg) bool { return fits(p.ImportPath, l.of) }) {
			t.Errorf("the law speaks of %s, which is not there", l.of)
		}
	}
	for _, p := range ours {
		i := slices.IndexFunc(law, func(l layer) bool { return fits(p.ImportPath, l.of) })
		if i < 0 {
			t.Errorf("%s has no row in the law: say what it may import, and why not more", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if allowed(law[i], imported, modules) {
				continue
			}
			t.Errorf("%s must not import %s: %s", p.ImportPath, imported, law[i].why)
		}
	}
}

func allowed(l layer, imported string, modules map[string]string) bool {
	if imported == "koine" || strings.HasPrefix(imported, "koine/") {
		return fits(imported, l.of) && strings.HasSuffix(l.of, "/...") && l.of != "koine/internal/dialect/..." ||
			slices.ContainsFunc(l.imports, func(of string) bool { return fits(imported, of) })
	}
	module, ok := modules[imported]
	if !ok { // the standard library
		return true
	}
	return l.modules == nil || slices.Contains(l.modules, module)
}

// fits reports whether the pattern names the package or a folder above it.
func fits(path, pattern string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == folder || strings.HasPrefix(path, folder+"/")
	}
	return path == pattern
}

// list returns koine's packages, and the module of each other package on which they depend.
func list(t *testing.T) (ours []pkg, modules map[string]string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Imports,Module,Standard", "koine/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules = map[string]string{}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Standard || p.Module == nil:
		case p.Module.Path == "koine":
			ours = append(ours, p)
		default:
			modules[p.ImportPath] = p.Module.Path
		}
	}
	if len(ours) < 10 {
		t.Fatalf("only %d packages of koine were listed", len(ours))
	}
	return ours, modules
}

// TestLawRefuses checks that the law rejects some invalid imports.
func TestLawRefuses(t *testing.T) {
	modules := map[string]string{"github.com/99designs/gqlgen/graphql": "github.com/99designs/gqlgen"}
	for _, row := range []struct{ from, to string }{
		{"koine/kg", "koine/a2a"},
		{"koine/kg", "koine/internal/caller"},
		{"koine/kg", "github.com/99designs/gqlgen/graphql"},
		{"koine/kg/internal/wal", "koine/kg"},
		{"koine/graph", "koine/a2a"},
		{"koine/graph", "koine/internal/caller"},
		{"koine/graph", "koine/graph/transport"},
		{"koine/graph/transport", "koine/graph"},
		{"koine/a2a", "koine/graph"},
		{"koine/internal/dialect/rdfdata", "koine/internal/dialect/other"},
		{"koine/internal/httpd", "koine/a2a"},
		{"koine/internal/sse", "koine/kg"},
		{"koine/internal/caller", "koine/internal/sse"},
	} {
		i := slices.IndexFunc(law, func(l layer) bool { return fits(row.from, l.of) })
		if i < 0 || allowed(law[i], row.to, modules) {
			t.Errorf("%s may import %s", row.from, row.to)
		}
	}
}
