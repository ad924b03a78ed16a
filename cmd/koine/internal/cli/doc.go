// Package cli has the common parts of koine's commands: the terminal and its tables, exit codes
// and the errors that carry them, and the flags that select a server, a data directory, a
// caller or the form of the output.
//
// A command embeds the flags that it takes (Target for a data directory or a server,
// ServerFlags for a server, OutputFlags for tables, JSON and CSV). It writes results to
// Terminal.Out and everything else with Terminal.Notef, and returns an error: Usagef for a
// wrong command line, Refusedf for a request that cannot be granted, any other for a failure.
// ExitCode maps errors to the exit codes, on which scripts rely.
package cli
