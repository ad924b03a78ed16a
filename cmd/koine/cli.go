package main

import (
	"context"
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/bench"
	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/cmd/koine/internal/offline"
	"koine/cmd/koine/internal/online"
	"koine/kg"
)

// commandLine is the command line. The configuration file can set every flag. Environment
// variables set the flags that are settings (see addVariables).
type commandLine struct {
	Config kong.ConfigFlag `help:"YAML file with settings. Flags and environment variables take precedence." placeholder:"FILE" type:"path" env:"KOINE_CONFIG"`
	Log    cli.LogFlags    `embed:"" prefix:"log-"`
	Quiet  bool            `help:"Suppress messages for people: the welcome, progress and remarks. Errors, warnings and the log remain."`

	ShowVersion kong.VersionFlag `help:"Print the version and exit." name:"version"`

	Serve  serveCommand         `cmd:"" group:"server" help:"Run the server."`
	MCP    mcpCommand           `cmd:"" name:"mcp" group:"server" help:"Give a language model tools to read and write, by the Model Context Protocol."`
	Health online.HealthCommand `cmd:"" group:"server" help:"Check whether a server is ready."`
	Bench  bench.Command        `cmd:"" group:"server" help:"Benchmark a server."`

	Query    online.QueryCommand    `cmd:"" group:"data" help:"Run a GraphQL query."`
	Search   online.SearchCommand   `cmd:"" group:"data" help:"Find entities and messages by words."`
	Recall   online.RecallCommand   `cmd:"" group:"data" help:"Print what is known about a topic, for a language model."`
	Remember online.RememberCommand `cmd:"" group:"data" help:"Add facts whose entities are named by labels."`
	Update   online.UpdateCommand   `cmd:"" group:"data" help:"Add, remove or replace statements."`
	Watch    online.WatchCommand    `cmd:"" group:"data" help:"Print changes as they happen."`
	Load     offline.LoadCommand    `cmd:"" group:"data" help:"Load RDF files."`
	Export   offline.ExportCommand  `cmd:"" group:"data" help:"Export statements as RDF."`
	Diff     offline.DiffCommand    `cmd:"" group:"data" help:"Compare two stores, or two revisions of a store."`

	Channel online.ChannelCommand `cmd:"" group:"channels" help:"Manage channels, and publish and read messages."`
	Intent  online.IntentCommand  `cmd:"" group:"channels" help:"Manage intents: goals that agents work on."`
	Agent   online.AgentCommand   `cmd:"" group:"channels" help:"List, register and deregister agents."`

	Graph  online.GraphCommand  `cmd:"" group:"access" help:"Manage named graphs and their access policies."`
	Keys   offline.KeysCommand  `cmd:"" group:"access" help:"Create, list, rotate and revoke API keys."`
	Review online.ReviewCommand `cmd:"" group:"access" help:"List, approve and reject proposals."`
	Rules  offline.RulesCommand `cmd:"" group:"access" help:"Validate rules files."`

	Prefix offline.PrefixCommand `cmd:"" group:"vocabulary" help:"Register, list and remove prefixes."`
	Scheme offline.SchemeCommand `cmd:"" group:"vocabulary" help:"Allow, list and forbid URI schemes of new names."`
	Shapes offline.ShapesCommand `cmd:"" group:"vocabulary" help:"Manage the shapes that updates are checked against."`

	Check   offline.CheckCommand   `cmd:"" group:"maintenance" help:"Verify the integrity of a store."`
	Backup  offline.BackupCommand  `cmd:"" group:"maintenance" help:"Back up a store while it is in use."`
	Restore offline.RestoreCommand `cmd:"" group:"maintenance" help:"Restore a data directory from backups."`
	Erase   offline.EraseCommand   `cmd:"" group:"maintenance" help:"Erase statements from a store, including their history."`

	Version    versionCommand    `cmd:"" group:"other" help:"Print the version."`
	Help       helpCommand       `cmd:"" group:"other" help:"Print the help of a command."`
	Completion completionCommand `cmd:"" group:"other" help:"Print the completion script for bash, zsh or fish."`
	Complete   completeCommand   `cmd:"" hidden:"" group:"other" help:"Print the completions of a command line."`
}

// helpGroups are the titles under which --help lists commands, and those of the flags of
// serve, by the keys in the tags.
var helpGroups = []kong.Group{
	{Key: "server", Title: "Server:"},
	{Key: "data", Title: "Data:"},
	{Key: "channels", Title: "Channels and agents:"},
	{Key: "access", Title: "Access and review:"},
	{Key: "vocabulary", Title: "Vocabulary:"},
	{Key: "maintenance", Title: "Maintenance:"},
	{Key: "other", Title: "Other:"},

	{Key: "network", Title: "Network:"},
	{Key: "authentication", Title: "Authentication:"},
	{Key: "policies", Title: "Access and rules:"},
	{Key: "storage", Title: "Storage:"},
	{Key: "names", Title: "Names:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "rates", Title: "Limits per caller:"},
	{Key: "agents", Title: "Agents and tasks:"},
	{Key: "observability", Title: "Observability:"},
}

// groupSubcommands lists the subcommands of a command as such, and not under the title of
// the command's group.
func groupSubcommands(parser *kong.Kong) error {
	for _, command := range parser.Model.Children {
		for _, sub := range command.Children {
			sub.Group = &kong.Group{Key: "commands", Title: "Commands:"}
		}
	}
	return nil
}

const description = `A shared knowledge graph for agents: query it with GraphQL, update it, subscribe to its changes.

Get started with: koine serve --demo

` + cli.ExitHelp

// execute parses the command line, runs the command and reports its error. It returns the
// exit code.
func execute(ctx context.Context, args []string, t cli.Terminal) (code int) {
	if len(args) == 0 { // print the overview
		code := execute(ctx, []string{"--help"}, cli.Terminal{In: t.In, Out: t.Err, Err: t.Err})
		return max(code, cli.ExitUsage)
	}
	parser, err := newParser(t, func(status int) { panic(parserExit{status}) })
	if err != nil {
		t.Notef("koine: %v", err)
		return cli.ExitFailure
	}
	defer func() {
		if p := recover(); p != nil {
			ended, ok := p.(parserExit)
			if !ok {
				panic(p)
			}
			code = ended.status
		}
	}()
	command, err := parser.Parse(args)
	if err != nil {
		return reportError(t.WithFlags(cli.LogFlagsFromArgs(args), false), cli.PlainUsage(err), parseErrorContext(err))
	}
	options := command.Model.Target.Addr().Interface().(*commandLine)
	log := options.Log.NewLogger(t.Err)
	t = t.WithFlags(options.Log, options.Quiet)
	warnOfVariables(log, parser.Model.Node, os.Environ())
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(command, t, log, bench.ServerStarter(startDemoServer))
	var status cli.ExitStatus
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &status):
		return int(status)
	}
	return reportError(t, err, command)
}

// parserExit is the panic value with which the parser unwinds after --help, in place of
// ending the process.
type parserExit struct{ status int }

func newParser(t cli.Terminal, exit func(int)) (*kong.Kong, error) {
	return kong.New(&commandLine{},
		kong.Name("koine"),
		kong.Description(description),
		kong.Writers(t.Out, t.Err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups(helpGroups),
		kong.Configuration(loadConfig),
		kong.PostBuild(addVariables),
		kong.PostBuild(groupSubcommands),
		kong.Vars{"url": cli.DefaultURL, "version": buildinfo.Current().String()},
	)
}

func parseErrorContext(err error) *kong.Context {
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		return parse.Context
	}
	return nil
}

// reportError prints the error and, if there is one, a hint. It returns the exit code.
func reportError(t cli.Terminal, err error, command *kong.Context) int {
	code := cli.ExitCode(err)
	if code == cli.ExitInterrupted {
		message := "interrupted"
		var i cli.Interruption
		if errors.As(err, &i) {
			message += " " + i.Standing
		}
		t.PrintError(message, code)
		return code
	}
	var more []string
	var e *kg.Error
	if errors.As(err, &e) && e.Hint != "" {
		more = append(more, e.Hint)
	}
	if code == cli.ExitUsage {
		name := "koine"
		if command != nil && command.Selected() != nil {
			name = command.Selected().FullPath()
		}
		more = append(more, "See "+name+" --help.")
	}
	t.PrintError(errorText(err, command), code, more...)
	return code
}

// helpCommandName is the name of helpCommand.
const helpCommandName = "help"

// helpCommand shows the help of a command: koine help load is koine load --help.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command, for example: channel publish."`
}

// Run prints the help. It ends with the parserExit panic, as --help does.
func (c *helpCommand) Run(t cli.Terminal) error {
	parser, err := newParser(t, func(status int) { panic(parserExit{status}) })
	if err != nil {
		return err
	}
	_, err = parser.Parse(append(c.Command, "--help"))
	return cli.PlainUsage(err)
}
