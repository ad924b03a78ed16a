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
	Config kong.ConfigFlag `help:"Read settings from this YAML file. Flags and environment variables win over it." placeholder:"FILE" type:"path" env:"KOINE_CONFIG"`
	Log    logFlags        `embed:"" prefix:"log-"`
	Quiet  bool            `help:"Leave out what is only said to people: the welcome, progress, remarks. Errors, warnings and the log stay."`

	ShowVersion kong.VersionFlag `help:"Print the version and end." name:"version"`

	Serve   serveCommand   `cmd:"" help:"Run the server."`
	Load    loadCommand    `cmd:"" help:"Load RDF files."`
	Export  exportCommand  `cmd:"" help:"Write the graph, or one named graph, as RDF."`
	Diff    diffCommand    `cmd:"" help:"Compare two stores, or two revisions of one."`
	Query   queryCommand   `cmd:"" help:"Run a GraphQL query on a server."`
	Update  updateCommand  `cmd:"" help:"Add, remove or replace statements on a server."`
	Watch   watchCommand   `cmd:"" help:"Follow the changes of a server's graph."`
	Channel channelCommand `cmd:"" help:"Talk in the channels of a server."`
	Graph   graphCommand   `cmd:"" help:"Create graphs, and change who may read and write them."`
	Review  reviewCommand  `cmd:"" help:"List proposals, and approve or reject them."`
	Agent   agentCommand   `cmd:"" help:"List, show and register agents."`
	Check   checkCommand   `cmd:"" help:"Compare everything in a store with everything else."`
	Backup  backupCommand  `cmd:"" help:"Back a store up while it is used."`
	Restore restoreCommand `cmd:"" help:"Make a data directory of backups."`
	Keys    keysCommand    `cmd:"" help:"Make, list, rotate and revoke API keys."`
	Shapes  shapesCommand  `cmd:"" help:"Keep, list and check the shapes that updates are judged by."`
	Prefix  prefixCommand  `cmd:"" help:"Register, list and remove the prefixes of a store."`
	Scheme  schemeCommand  `cmd:"" help:"Allow, list and take back the URI schemes of new names."`
	Rules   rulesCommand   `cmd:"" help:"Work with files of rules."`
	Erase   eraseCommand   `cmd:"" help:"Take statements out of a store for good, with their history."`
	Bench   benchCommand   `cmd:"" help:"Measure a running server."`
	Health  healthCommand  `cmd:"" help:"Ask whether a server is ready."`
	Version versionCommand `cmd:"" help:"Say which version this is."`
	Help    helpCommand    `cmd:"" help:"Show the help of a command."`

	Completion completionCommand `cmd:"" help:"Print the script that completes commands in bash, zsh or fish."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what may come next on a command line."`
}

const description = `A knowledge graph that agents share: query it with GraphQL, patch it, follow its changes.

Try:  koine serve --demo

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
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Configuration(loadConfig),
		kong.PostBuild(addVariables),
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
