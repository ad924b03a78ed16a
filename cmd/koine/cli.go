package main

import (
	"context"
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"koine/kg"
)

// cli is the command line. The configuration file can set every flag. Environment
// variables set the flags that are settings (see addVariables).
type cli struct {
	Config kong.ConfigFlag `help:"YAML file with settings. Flags and environment variables take precedence." placeholder:"FILE" type:"path" env:"KOINE_CONFIG"`
	Log    logFlags        `embed:"" prefix:"log-"`
	Quiet  bool            `help:"Suppress messages for people: the welcome, progress and remarks. Errors, warnings and the log remain."`

	ShowVersion kong.VersionFlag `help:"Print the version and exit." name:"version"`

	Serve  serveCommand  `cmd:"" group:"server" help:"Run the server."`
	Health healthCommand `cmd:"" group:"server" help:"Check whether a server is ready."`
	Bench  benchCommand  `cmd:"" group:"server" help:"Benchmark a server."`

	Query  queryCommand  `cmd:"" group:"data" help:"Run a GraphQL query."`
	Update updateCommand `cmd:"" group:"data" help:"Add, remove or replace statements."`
	Watch  watchCommand  `cmd:"" group:"data" help:"Print changes as they happen."`
	Load   loadCommand   `cmd:"" group:"data" help:"Load RDF files."`
	Export exportCommand `cmd:"" group:"data" help:"Export statements as RDF."`
	Diff   diffCommand   `cmd:"" group:"data" help:"Compare two stores, or two revisions of a store."`

	Channel channelCommand `cmd:"" group:"channels" help:"Manage channels, and publish and read messages."`
	Agent   agentCommand   `cmd:"" group:"channels" help:"List, register and deregister agents."`

	Graph  graphCommand  `cmd:"" group:"access" help:"Manage named graphs and their access policies."`
	Keys   keysCommand   `cmd:"" group:"access" help:"Create, list, rotate and revoke API keys."`
	Review reviewCommand `cmd:"" group:"access" help:"List, approve and reject proposals."`
	Rules  rulesCommand  `cmd:"" group:"access" help:"Validate rules files."`

	Prefix prefixCommand `cmd:"" group:"vocabulary" help:"Register, list and remove prefixes."`
	Scheme schemeCommand `cmd:"" group:"vocabulary" help:"Allow, list and forbid URI schemes of new names."`
	Shapes shapesCommand `cmd:"" group:"vocabulary" help:"Manage the shapes that updates are checked against."`

	Check   checkCommand   `cmd:"" group:"maintenance" help:"Verify the integrity of a store."`
	Backup  backupCommand  `cmd:"" group:"maintenance" help:"Back up a store while it is in use."`
	Restore restoreCommand `cmd:"" group:"maintenance" help:"Restore a data directory from backups."`
	Erase   eraseCommand   `cmd:"" group:"maintenance" help:"Erase statements from a store, including their history."`

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

` + exitHelp

// execute parses the command line, runs the command and reports its error. It returns the
// exit code.
func execute(ctx context.Context, args []string, t terminal) (code int) {
	if len(args) == 0 { // print the overview
		code := execute(ctx, []string{"--help"}, terminal{in: t.in, out: t.err, err: t.err})
		return max(code, exitUsage)
	}
	parser, err := newParser(t, func(status int) { panic(parserExit{status}) })
	if err != nil {
		t.sayf("koine: %v", err)
		return exitFailure
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
		return reportError(t.withFlags(loggingFromArgs(args), false), plainUsage(err), parseErrorContext(err))
	}
	options := command.Model.Target.Addr().Interface().(*cli)
	log := options.Log.newLogger(t.err)
	t = t.withFlags(options.Log, options.Quiet)
	warnOfVariables(log, parser.Model.Node, os.Environ())
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(command, t, log)
	var status exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	}
	return reportError(t, err, command)
}

// parserExit is the panic value with which the parser unwinds after --help, in place of
// ending the process.
type parserExit struct{ status int }

func newParser(t terminal, exit func(int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Name("koine"),
		kong.Description(description),
		kong.Writers(t.out, t.err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups(helpGroups),
		kong.Configuration(loadConfig),
		kong.PostBuild(addVariables),
		kong.PostBuild(groupSubcommands),
		kong.Vars{"url": defaultURL, "version": thisBuild().String()},
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
func reportError(t terminal, err error, command *kong.Context) int {
	code := exitCode(err)
	if code == exitInterrupted {
		message := "interrupted"
		var i interruption
		if errors.As(err, &i) {
			message += " " + i.standing
		}
		t.printError(message, code)
		return code
	}
	var more []string
	var e *kg.Error
	if errors.As(err, &e) && e.Hint != "" {
		more = append(more, e.Hint)
	}
	if code == exitUsage {
		name := "koine"
		if command != nil && command.Selected() != nil {
			name = command.Selected().FullPath()
		}
		more = append(more, "See "+name+" --help.")
	}
	t.printError(errorText(err, command), code, more...)
	return code
}

// isOnCommandLine reports whether the flag was given on the command line, and not by the
// environment or the configuration file.
func isOnCommandLine(command *kong.Context, flag string) bool {
	for _, p := range command.Path {
		if p.Flag != nil && p.Flag.Name == flag && !p.Resolved {
			return true
		}
	}
	return false
}
