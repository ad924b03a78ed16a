package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"koine/a2a"
	"koine/a2a/hub"
	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/cmd/koine/internal/offline"
	"koine/graph"
	"koine/graph/transport"
	"koine/internal/audit"
	"koine/internal/auth"
	"koine/internal/demo"
	"koine/internal/dialect/agentapi"
	"koine/internal/dialect/agentchat"
	"koine/internal/dialect/facts"
	"koine/internal/dialect/modelcontext"
	"koine/internal/dialect/openintent"
	"koine/internal/dialect/rdfdata"
	follows "koine/internal/following"
	"koine/internal/httpd"
	"koine/internal/intents"
	"koine/internal/names"
	"koine/internal/policy"
	"koine/internal/reputation"
	"koine/internal/sse"
	"koine/kg"
	"koine/web"
)

// defaultDataDir is the data directory of a server without --data.
const defaultDataDir = "koine-data"

// judgingGrace is the time that shapes and rules may still run after the server begins to
// shut down. Other requests have ShutdownTime.
const judgingGrace = 200 * time.Millisecond

// serveCommand runs the server.
type serveCommand struct {
	Listen       string        `group:"network" help:"Address to listen on. Without credentials it must be a loopback address." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	PublicURL    string        `group:"network" help:"URL under which clients reach the server, for the agent card (default: the URL of the request)." placeholder:"URL" name:"public-url"`
	Insecure     bool          `group:"network" help:"Listen on any address without credentials. Everyone who can connect may do anything."`
	Heartbeat    time.Duration `group:"network" help:"Interval of heartbeats on idle streams." default:"15s"`
	ShutdownTime time.Duration `group:"network" help:"How long requests in progress may take to finish at shutdown." default:"20s"`
	tlsFlags     `group:"network"`
	originFlags  `group:"network"`
	restFlags    `group:"network"`
	chatFlags    `group:"network"`
	intentFlags  `group:"network"`

	identityFlags `group:"authentication"`

	policyFlags    `group:"policies"`
	rulesFlags     `group:"policies"`
	contentFlags   `group:"policies"`
	trustedFlags   `group:"policies"`
	QueryMutations bool `group:"policies" help:"Allow mutations in knowledge/query." default:"true" negatable:""`

	Data            string      `group:"storage" help:"Data directory, created if it does not exist (default: koine-data in the working directory; with --demo, a temporary one)." placeholder:"DIR" type:"path"`
	Demo            bool        `group:"storage" help:"Load a small example graph if the store is empty."`
	History         historyTime `group:"storage" help:"How long to keep history: all, or a duration such as 30d or 36h. Older history is deleted and cannot be read anymore." default:"all" placeholder:"all|TIME"`
	cli.ReserveFlag `group:"storage"`
	searchFlags     `group:"storage"`
	embeddingFlags  `group:"storage"`

	cli.PrefixFlags `group:"names"`
	nameFlags       `group:"names"`

	memoryFlag       `group:"limits"`
	limitFlags       `group:"limits"`
	capacityFlags    `group:"limits"`
	cli.LiteralFlag  `group:"limits"`
	serveJSONLDFlags `group:"limits"`

	throttleFlags `group:"rates"`
	tierFlags     `group:"rates"`

	taskFlags        `group:"agents"`
	pushFlags        `group:"agents"`
	Card             string `group:"agents" help:"A2A version of agent cards: 1.0, 0.3, or both for cards that clients of either version can read." enum:"1.0,0.3,both" default:"both" placeholder:"1.0|0.3|both"`
	ConformanceAgent bool   `group:"agents" help:"Answer messages as the public A2A compatibility kit expects of a server under test."`

	tracingFlags `group:"observability"`
	debugFlag    `group:"observability"`

	listening func(url string) // called with the server's address; may be nil
}

// Help is shown by --help.
func (serveCommand) Help() string {
	return `Without --auth the server runs in open mode: callers need no credentials, X-Agent-ID names the caller, and the server listens on loopback addresses only. With --auth keys, callers need an API key (koine keys). With --auth jwt, they need a token of the provider that --jwks, --jwt-issuer and --jwt-audience describe.

A --prefix is registered with the store, so later servers know it as well. To change the meaning of a registered prefix, add --prefix-force. --demo registers its own (lab and finding). Names in updates must begin with a registered prefix or a known URI scheme: --scheme allows further schemes, --names lenient accepts all names.

Ctrl-C shuts the server down: streams receive a last event, requests are completed, and the store is closed. A second Ctrl-C ends the process at once; acknowledged updates are not lost.

Examples:
  koine serve --demo
  koine serve --data /var/lib/koine --listen 127.0.0.1:9090 --prefix ex=https://example.org/
  koine serve --data /var/lib/koine --auth keys --listen :8080
  koine serve --only-trusted-documents --trusted-documents documents.json
  KOINE_LOG_FORMAT=json koine serve --config koine.yaml`
}

// Run serves until ctx is done. It assembles the server from bottom to top: the store, the
// engine on it, the protocols, the routes.
func (c *serveCommand) Run(ctx context.Context, t cli.Terminal, log *slog.Logger) (err error) {
	buildinfo.Current().LogTo(log)
	if _, err := c.BuiltinPrefixes(); err != nil {
		return err
	}
	if err := c.checkHistory(c.History); err != nil {
		return err
	}
	documents, err := c.trustedDocuments()
	if err != nil {
		return err
	}
	shares, err := c.shares()
	if err != nil {
		return err
	}
	limits, err := c.graphLimits(shares)
	if err != nil {
		return err
	}
	jsonld, err := c.JSONLDOptions()
	if err != nil {
		return err
	}
	certificate, err := c.openCertificate(log)
	if err != nil {
		return err
	}
	rest, err := c.restPrefix()
	if err != nil {
		return err
	}
	chat, err := c.chatPrefix(rest)
	if err != nil {
		return err
	}
	coordination, err := c.intentPrefix(rest, chat)
	if err != nil {
		return err
	}
	who, err := c.newIdentity(ctx, log)
	if err != nil {
		return err
	}
	defer who.close()
	registering, err := c.registration(!who.requiresCredentials())
	if err != nil {
		return err
	}
	origins, err := c.checkOrigins(!who.requiresCredentials())
	if err != nil {
		return err
	}
	traces, flush, err := c.startTracing(ctx, log)
	if err != nil {
		return err
	}
	defer flush()
	if err := c.capacityFlags.validateRanges(); err != nil {
		return err
	}
	if err := c.LiteralFlag.CheckMaxLiteral(); err != nil {
		return err
	}
	counters, trail := httpd.NewCounters(), audit.NewTrail(audit.Options{Logger: log})
	limiter, err := c.newThrottle(!who.requiresCredentials(), c.MaxStreams, counters, trail)
	if err != nil {
		return err
	}
	statements, _, err := c.principalQuotas(!who.requiresCredentials())
	if err != nil {
		return err
	}
	trust, err := c.newTrust(log, who)
	if err != nil {
		return err
	}
	// Listen before the store opens, so that an address in use leaves the data directory
	// untouched.
	listener, err := httpd.Listen(c.Listen, c.Insecure || who.requiresCredentials())
	if err != nil {
		trust.close()
		return listenError(err)
	}
	defer listener.Close() // a no-op after Serve

	debugging, err := c.listenForDebugging()
	if err != nil {
		trust.close()
		return err
	}
	defer debugging.close()

	options := kg.Options{ReserveBytes: c.ReserveFlag.ReserveBytes(), LiteralBytes: c.MaxLiteral, Governor: kg.Governor{Admit: limiter.AdmitUpdate, Charge: limiter.ChargeUpdate, Span: traces.Begin(), Stages: traces.ForStages()}, MaxSourceStatements: statements}
	keepStoreWithin(shares, &options)
	trust.govern(&options.Governor)
	options.Verifier = counters.Verifier(options.Verifier)
	debugging.govern(&options.Governor)
	store, forget, err := c.openStore(ctx, log, options, trust)
	if err != nil {
		return err
	}
	defer func() { trust.close(); err = errors.Join(err, store.Close(), forget()) }()
	defer trail.Persist(c.Data)()
	who.store = store
	if err := who.firstKey(ctx, t, log, store); err != nil {
		return err
	}
	registry, err := c.registerPrefixes(ctx, store)
	if err != nil {
		return err
	}
	if err := c.keepSchemes(ctx, store); err != nil {
		return err
	}
	judge := names.NewJudge(store, c.checkMode())
	newNames, err := c.newNamesOf(ctx, registry, judge)
	if err != nil {
		return err
	}
	trust.reviews.SetPatchCheck(judge.CheckPatches)

	intake := c.newIntake(shares)
	streams := sse.New(sse.Options{Heartbeat: c.Heartbeat, MaxStreams: c.MaxStreams, Admit: trust.admitStream(limiter.AdmitStream),
		Ended: counters.StreamEnded(log, func(position string) kg.Revision {
			at, _ := store.ParsePosition(position) // of a channel it is a sequence
			return at.Revision
		})})
	var behind *hub.Handler
	directory := trust.newDirectory(store, func(id kg.AgentID) { behind.Deregistered(id) })
	work, hooks := c.newTasks(log, who), c.newPushService(log, who)
	plans := intents.New(store, trust.channels, intents.Options{})
	if err := plans.Start(ctx); err != nil {
		return err
	}
	defer plans.Close()
	graphs := policy.NewGraphs(store, trust.policies)
	texts, maker, stopSearch, err := c.openSearch(ctx, log, store)
	if err != nil {
		return err
	}
	defer stopSearch()
	defer watchMemory(ctx, log, shares, store, texts)()
	engine := graph.NewEngine(graph.Deps{
		Store: store, Prefixes: registry, Names: judge, Logger: log, Span: traces.Begin(), Trail: trail,
		Graphs: graphs, Shapes: trust.shapes, Rules: trust, Reviews: trust.reviews, Quarantines: trust.quarantines, Channels: trust.channels, Intents: plans, Agents: directory, Presence: trust.presence, Tasks: work, Search: texts, Finished: debugging.finished(),
	}, graph.Options{Limits: limits, Trusted: documents, OnlyTrusted: c.OnlyTrustedDocuments, NewNames: newNames})
	reportDocuments(log, engine, documents)
	resource, metadata := who.protectedResource(c.PublicURL)
	server := httpd.New(httpd.Options{ResourceMetadata: metadata, MaxConnections: c.maxConnections(), Intake: intake, Store: store, Streams: streams, Logger: log, Insecure: c.Insecure, ShutdownTimeout: c.ShutdownTime,
		Throttle: limiter, TrustedProxies: c.TrustedProxy, Certificate: certificate, Counters: counters, Trail: trail, Admit: who.httpAdmit(), Tracing: traces, AllowOrigins: origins, PublicOrigin: httpd.OriginOf(c.PublicURL), Build: buildinfo.Current().MetricLabels(), TextIndex: textIndexState(texts), Embeddings: embeddingsState(maker), CheckAgent: who.checkAgent})

	deps := a2a.Deps{Store: store, Querier: engine, Channels: trust.channels, Tasks: work, Push: hooks, Streams: streams, Prefixes: registry, Names: judge}
	about := c.cardOptions(who)
	rpc := a2a.Options{Card: &about, Recall: texts != nil, Logger: log, Observe: debugging.observe(server.Call), RefuseQueryMutations: !c.QueryMutations, Admit: limiter.AdmitCall, AdmitHistory: limiter.AdmitHistory, Refused: trail.RecordDenied, Span: traces.Begin(), Narrow: who.narrowFunc()}
	endpoint := a2a.NewHandler(deps, rpc)
	server.HandleRPC(endpoint)
	server.Handle(a2a.RPCPath+a2a.HTTPPath+"/", httpd.A2AHTTP, endpoint.HTTP(a2a.RPCPath+a2a.HTTPPath))
	work.Handle(kg.System, c.selfWorker(endpoint))
	if err := work.Load(ctx, store); err != nil {
		return err
	}
	defer work.Close()
	if err := hooks.Load(ctx, store, work); err != nil {
		return err
	}
	defer hooks.Close()
	carrier := c.newMailHooks(log, who)
	if err := carrier.Load(ctx, store, work); err != nil {
		return err
	}
	defer carrier.Close()
	forwarding := c.newForwarding(log, who)
	if err := forwarding.Load(ctx, store, work); err != nil {
		return err
	}
	defer forwarding.Close()
	server.Handle("/changes", httpd.Plain, a2a.NewChangesHandler(deps, rpc))
	card := a2a.NewCardHandler(about)
	for _, below := range []string{"", "/a2a"} { // at the root and below the endpoint
		server.HandlePublic("GET "+below+"/.well-known/agent-card.json", httpd.Plain, card)
		server.HandlePublic("GET "+below+"/.well-known/agent.json", httpd.Plain, card)
	}
	behind = hub.NewHandler(hub.Deps{Endpoint: endpoint, Card: card, Agents: directory, Tasks: work, Hooks: carrier, Forward: forwarding, Streams: streams},
		hub.Options{Logger: log, PublicURL: strings.TrimRight(c.PublicURL, "/"), Only: c.cardVersion(), Keys: who.acceptsKeys(), Tokens: who.acceptsTokens(), Push: true, Refused: trail.RecordDenied})
	for pattern, form := range map[string]httpd.Form{"/agents": httpd.Coded, "/agents/": httpd.Coded, "/agents/{id}/a2a": httpd.JSONRPC, "/agents/{id}/a2a/{$}": httpd.JSONRPC, "/agents/{id}/a2a" + a2a.HTTPPath + "/": httpd.A2AHTTP} {
		server.Handle(pattern, form, behind)
	}
	server.HandlePublic("GET /schemas/", httpd.Plain, a2a.NewSchemaHandler())

	graphql := transport.NewHandler(transport.Deps{Engine: engine, Positions: store, Streams: streams}, transport.Options{Intake: intake, Heartbeat: c.Heartbeat, Connect: server.Connect, OriginAllowed: server.OriginAllowed, Admit: server.AdmitOperation, Observe: counters.Operation})
	server.HandleSocket("/graphql", httpd.GraphQL, graphql)
	server.HandleStream("/changes")
	server.HandleStream("/graphql")
	for _, path := range []string{"/graphql/schema", "/graphql/schema.graphql", "/graphql/schema.graphqls"} {
		server.HandlePublic(path, httpd.GraphQL, graphql)
	}

	handleREST(server, rest, agentapi.NewHandler(agentapi.Deps{Agents: directory, Tasks: work, Streams: streams, Positions: store},
		agentapi.Options{Intake: intake, Logger: log, OriginAllowed: server.OriginAllowed, Connect: server.Connect, Refused: recordRefusals(trail)}))

	rooms := agentchat.NewHandler(agentchat.Deps{Channels: trust.channels, Agents: directory, Presence: trust.presence, Keys: auth.NewKeys(store), Following: follows.New(store, trust.channels), Reputation: reputation.New(store), Store: store, Streams: streams, Search: texts},
		agentchat.Options{Intake: intake, Logger: log, Registration: registering, PublicURL: chatURL(c.PublicURL, chat), Prefix: chat, PublicDirectory: c.AgentchatPublicDirectory, OriginAllowed: server.OriginAllowed,
			Admit: who.chatAdmit(), Connect: server.Connect, QueryToken: httpd.QueryToken, Refused: recordRefusals(trail)})
	handleChat(server, chat, c.AgentchatPublicDirectory, rooms)

	coordinating := openintent.NewHandler(openintent.Deps{Channels: trust.channels, Intents: plans, Agents: directory, Presence: trust.presence, Streams: streams, Positions: store},
		openintent.Options{Heartbeat: c.Heartbeat, RFCNames: c.OpenintentRFCNames, Logger: log, CheckAgent: who.checkAgent, Refused: recordRefusals(trail)})
	handleIntents(server, coordination, coordinating)
	endpoints := c.newInboxHooks(log, who, coordinating)
	if err := endpoints.Load(ctx, store, trust.channels, directory); err != nil {
		return err
	}
	defer endpoints.Close()

	data := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: registry, Graphs: graphs, Logger: log, Charge: limiter.ChargeUpdate, Refused: trail.RecordDenied}, rdfdata.Options{PublicURL: c.PublicURL, JSONLD: jsonld, Ending: ctx})
	for _, pattern := range []string{rdfdata.Path, rdfdata.Path + "/"} {
		server.HandleUpload(pattern, httpd.Plain, data)
	}
	server.Handle(facts.Path, httpd.Plain, facts.NewHandler(engine, trail.RecordDenied))
	server.Handle(offline.CheckPath, httpd.Plain, requireAdmin(checkHandler(store, shares)))
	server.HandleAdmin(offline.BackupPath, kg.RoleBackup, httpd.Plain, backupHandler(store, attachMade(log, maker, c.Data), log))

	models := modelcontext.NewHandler(engine, streams, modelcontext.Options{Version: buildinfo.Current().Version, Schema: engine.SDL(), Logger: log, Heartbeat: c.Heartbeat})
	defer models.Close()
	server.Handle(modelcontext.Path, httpd.Plain, models)

	if resource != nil {
		server.HandlePublic("GET "+modelcontext.MetadataPath, httpd.Plain, resource)
		server.HandlePublic("GET "+modelcontext.MetadataPath+modelcontext.Path, httpd.Plain, resource)
	}

	page := web.Handler()
	server.HandlePublic("/playground", httpd.Plain, page)
	server.HandlePublic("/playground/", httpd.Plain, page)

	defer watchCertificate(ctx, certificate)()
	defer followRules(ctx, trust.rules)()
	debugging.serve(log, store, shares)
	c.printWelcome(t, log, listener.Addr(), store, who)
	defer context.AfterFunc(ctx, func() { time.AfterFunc(judgingGrace, store.EndJudging) })()
	err = server.Serve(ctx, listener)
	log.Info("server stopped", "revision", store.Head().Revision)
	return err
}

func (c *serveCommand) registerPrefixes(ctx context.Context, store *kg.Store) (*kg.Prefixes, error) {
	if c.Demo {
		return c.RegisterNew(ctx, store, demo.Prefixes)
	}
	return c.RegisterNew(ctx, store, nil)
}

// openStore opens the data directory and sets c.Data to its path. It loads the state of
// trust, and the demo. forget removes a temporary directory.
func (c *serveCommand) openStore(ctx context.Context, log *slog.Logger, o kg.Options, trust *trust) (store *kg.Store, forget func() error, err error) {
	dir := cli.Target{Data: c.Data}
	forget = func() error { return nil }
	switch {
	case c.Data == "" && c.Demo:
		if dir.Data, err = os.MkdirTemp("", "koine-demo-*"); err != nil {
			return nil, nil, err
		}
		forget = func() error { return os.RemoveAll(dir.Data) }
	case c.Data == "":
		dir.Data = defaultDataDir
	}
	c.Data = dir.Data
	o.History = time.Duration(c.History)
	store, err = dir.OpenStore(log, true, o)
	if err != nil {
		return nil, nil, errors.Join(err, forget())
	}
	if err := trust.loadState(ctx, store); err != nil {
		return nil, nil, errors.Join(err, store.Close(), forget())
	}
	if c.Demo {
		_, err := demo.Load(ctx, store, slices.Collect(maps.Keys(c.Prefix))...)
		if err == nil && trust.identity.requiresCredentials() {
			err = demo.Publish(ctx, store, trust.policies)
		}
		if err != nil {
			trust.close()
			return nil, nil, errors.Join(err, store.Close(), forget())
		}
	}
	log.Info("store opened", "dir", dir.Data, "revision", store.Head().Revision)
	return store, forget, nil
}

func listenError(err error) error {
	var network *net.OpError
	if errors.As(err, &network) {
		return cli.WithCode(fmt.Errorf("%w\nThe address may be in use: choose another one with --listen", err), cli.ExitFailure)
	}
	return cli.AsUsage(err)
}
