package modelcontext

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a server.
type Options struct {
	Version string
	// ReadOnly leaves out the tools that change the graph.
	ReadOnly bool
	// Schema is the text of the GraphQL schema.
	Schema string
	// Logger is told of panics. Nil discards.
	Logger *slog.Logger
	// Heartbeat is the silence of a stream before a sign of life. 0 stands for
	// sse.DefaultHeartbeat.
	Heartbeat time.Duration
	// Memory offers the tools of the reference memory server instead.
	Memory bool

	// Shared by the servers of a handler, since to make them costs more than all else.
	rows    []row
	schemas *mcp.SchemaCache
}

// chooseTools returns the tools to offer.
func (o *Options) chooseTools(q Querier) []row {
	rows := tools{q}.listTools()
	if o.Memory {
		rows = memory{tools{q}}.listTools()
	}
	if o.ReadOnly {
		rows = slices.DeleteFunc(rows, func(r row) bool { return !r.tool.Annotations.ReadOnlyHint })
	}
	return rows
}

// instructions tell a model how the tools belong together.
const instructions = `koine is a shared memory: a graph of facts that agents and people write with their sources and certainties.
Look before you write: "recall" a topic, or "search" by words. "remember" facts with the names that you were shown; "correct" or "retract" those that are wrong.
Facts are lines of text: a line that is not indented begins a subject; lines below it, indented, have a predicate and its objects, separated by commas. A text in parentheses behind a name is its label.
Other agents work on the same graph: "agents" lists them, "ask" and "say" reach them, "inbox" shows what they want of you.`

// NewServer returns a server with tools that act as the caller of a Querier. A Watcher makes
// its resources be watched during life.
func NewServer(life context.Context, q Querier, w Watcher, o Options) *mcp.Server {
	return newServer(q, o, &watching{life: life, watcher: w}, nil)
}

// newServer returns a server. A nil watching refuses subscriptions.
func newServer(q Querier, o Options, w *watching, sessionID func() string) *mcp.Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	options := &mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}, SchemaCache: o.schemas, GetSessionID: sessionID,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }} // answers are for their caller
	options.SubscribeHandler, options.UnsubscribeHandler = w.watchResource, w.leaveResource
	if o.Memory {
		options.Instructions = ""
	}
	rows := o.rows
	if rows == nil {
		rows = o.chooseTools(q)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "koine", Version: o.Version}, options)
	for _, r := range rows {
		r.addTo(s)
	}
	exists := func(_ context.Context, uri string) (bool, error) { return uri == memoryURI, nil }
	if o.Memory {
		memory{tools{q}}.addResource(s)
	} else {
		texts := resources{tools{q}, o.Schema}
		exists = texts.hasResource
		texts.addTo(s)
		tools{q}.addPrompts(s)
	}
	if w != nil {
		w.exists, w.log, w.server = exists, o.Logger, s
	}
	s.AddReceivingMiddleware(containPanics(o.Logger), repairCalls(rows))
	return s
}

// tools are the tools of a server.
type tools struct{ Querier }

// listTools lists the tools. Each has an example, with the names of the demo where it needs names.
func (t tools) listTools() []row {
	return []row{
		newRow(reads, "recall", "Recall a topic", `What is known about a topic, as lines of facts within a budget of tokens. The topic is a few words, or a name that you were shown, such as lab:run-7. The last line says if there is more. Use it before you answer from memory.`,
			`{"topic": "water in the crystal", "maxTokens": 500}`, t.recallTopic),
		newRow(reads, "search", "Search by words", `Finds entities and messages by words, the best first: name, label and the text that was found. "words in this order", begin* and -unwanted are understood; word forms and small misspellings are found too.`,
			`{"query": "impure salt", "limit": 5}`, t.searchWords),
		newRow(reads, "vocabulary", "Show the vocabulary", `The prefixes, classes and predicates in use, with their numbers of entities and statements. Use existing predicates when you remember something.`,
			`{}`, t.listVocabulary),
		newRow(reads, "query", "Query with GraphQL", `Runs a GraphQL query, for counts, filters, orders and paths that the other tools do not have. Errors have a hint with the right form.`,
			`{"query": "{ entities(where: {type: {eq: \"lab:Finding\"}}, first: 5) { nodes { iri label } totalCount } }"}`, t.runQuery),
		newRow(adds, "remember", "Remember facts", `Adds facts to the graph, all or none, in lines or as triples in words. A label in parentheses instead of a name, as in "(Run 8) lab:used lab:cell-7", stands for the entity with that label and class, which is made if there is none; in triples labels need no parentheses. [0.4] is your certainty; without it you state a fact. Numbers and dates stand as they are, texts in quotes. The answer names the entities and tells contradictions.`,
			`{"facts": "lab:run-9 (Run 9: 50 cycles at 2C)\n  a lab:Measurement\n  lab:used lab:cell-7\n  lab:quality \"doubtful\" [0.4]", "triples": [["Run 9: 50 cycles at 2C", "lab:cycles", 50]], "why": "measured today"}`, t.rememberFacts),
		newRow(adds, "define", "Define a word", `Makes a predicate or a class for a word that the vocabulary does not have, so that triples can use it. Use an existing one where it means the same.`,
			`{"label": "was stored at", "comment": "the temperature in which a cell was kept"}`, t.defineWord),
		newRow(changes, "correct", "Correct facts", `Puts facts in place of those that are wrong: all values of the same subject and predicate give way to the values that you write. To add a value beside others, use remember.`,
			`{"facts": "lab:run-9 lab:quality \"good\"", "why": "the sensor was checked"}`, t.correctFacts),
		newRow(changes, "retract", "Retract facts", `Removes facts that do not hold. Write them as they were shown to you. They stay in the history.`,
			`{"facts": "lab:run-9 lab:used lab:cell-7", "why": "it was cell 8"}`, t.retractFacts),
		newRow(reads, "why", "Explain a fact", `Who states a fact, when, with which certainty, for which reason and on which evidence, and how it came about.`,
			`{"fact": "finding:2 lab:contradicts finding:1"}`, t.explainFact),
		newRow(reads, "history", "Show the history of an entity", `What was added, removed and replaced about an entity, by whom and why, the newest first.`,
			`{"name": "lab:prussian-white", "limit": 5}`, t.listHistory),
		newRow(reads, "changes", "List changes", `What changed in the graph since a time or a revision, the oldest first; without since, the newest first.`,
			`{"since": "2020-01-01T00:00:00Z", "limit": 5}`, t.listChanges),
		newRow(reads, "contradictions", "List contradictions", `Facts that cannot all hold, such as two values where there can be one, with those who state them.`,
			`{}`, t.listContradictions),
		newRow(reads, "agents", "List agents", `The agents, people and programs, that work on the graph: whether they are online, and what they do.`,
			`{}`, t.listAgents),
		newRow(reads, "channels", "List channels", `The conversations that you may read. Two agents always have one of their own: say something to an agent, and you are told its id.`,
			`{}`, t.listChannels),
		newRow(sends, "say", "Say something", `Publishes a message to an agent or in a channel, if you wish with facts that are added to the graph with it.`,
			`{"to": "chen", "text": "Run 9 is done.", "facts": "lab:run-9 lab:cycles 50"}`, t.sayText),
		newRow(reads, "read", "Read a channel", `The messages of a channel, the newest first; after a sequence that you know, the oldest first.`,
			`{"channel": "chan:direct:3d0dd91bae166f8dd520d8f4", "limit": 5}`, t.readChannel),
		newRow(sends, "ask", "Ask an agent", `Asks an agent and waits for the answer. Without one in time the request stands, and the answer comes to your inbox.`,
			`{"to": "chen", "text": "Which cell did run 8 use?", "seconds": 1}`, t.askAgent),
		newRow(reads, "inbox", "Read your inbox", `Messages to you, the oldest first, except those that you answered or acknowledged. Requests wait for answer.`,
			`{}`, t.listInbox),
		newRow(sends, "answer", "Answer a request", `Answers a request in your inbox, if you wish with facts that are added to the graph with the answer.`,
			`{"request": "01a21897-bba5-765f-81bf-c4e6af5fb099", "text": "Cell 8."}`, t.answerRequest),
		newRow(adds, "acknowledge", "Acknowledge messages", `Takes messages out of your inbox. They stay in their channels.`,
			`{"channel": "chan:direct:3d0dd91bae166f8dd520d8f4", "messages": ["01a21897-bba5-765f-81bf-c4e6af5fb099"]}`, t.acknowledgeMessages),
		newRow(reads, "proposals", "List proposals", `Changes that are held until others approve them: yours, and those that you may review.`,
			`{}`, t.listProposals),
		newRow(changes, "review", "Review a proposal", `Approves or rejects a proposal of another agent. The last approval that it needs applies it.`,
			`{"proposal": "01a21897-bba5-765f-81bf-c4e6af5fb099", "approve": true, "comment": "as measured"}`, t.reviewProposal),
	}
}

// kind is the effect of a tool.
type kind uint8

const (
	reads   kind = iota
	adds         // again without an effect
	changes      // may remove facts
	sends        // each time anew
)

func (k kind) toolAnnotations() *mcp.ToolAnnotations {
	destructive, open := k == changes, false
	return &mcp.ToolAnnotations{ReadOnlyHint: k == reads, DestructiveHint: &destructive, IdempotentHint: k != sends, OpenWorldHint: &open}
}

// row is a row of the table of tools.
type row struct {
	tool    *mcp.Tool
	input   *jsonschema.Schema
	example string // arguments as JSON
	addTo   func(*mcp.Server)
}

// newRow returns a row. The arguments and the structured answer have the schemas of In and
// Out; the text has the same for models.
func newRow[In, Out any](k kind, name, title, description, example string, run func(context.Context, In) (string, Out, error)) row {
	input, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err)) // a type without a schema
	}
	tool := &mcp.Tool{Name: name, Title: title, Description: description + "\nExample: " + example, Annotations: k.toolAnnotations(), InputSchema: input}
	return row{tool, input, example, func(s *mcp.Server) {
		mcp.AddTool(s, tool, func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			defer reportProgress(ctx, r)()
			text, out, err := run(ctx, in)
			if err != nil {
				return nil, out, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, out, nil
		})
	}}
}
