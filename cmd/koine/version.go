package main

import (
	"fmt"

	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
)

// versionCommand prints the version.
type versionCommand struct{}

// Run prints the version on one line.
func (versionCommand) Run(t cli.Terminal) error {
	_, err := fmt.Fprintln(t.Out, buildinfo.Current())
	return err
}
