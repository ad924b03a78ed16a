package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// environment gives all flags of serve, and those of every command, a variable: KOINE_
// and the name in capitals. Other flags have one only where they say so, because they
// stand for the same thing whatever is called: where, and as whom. What is of one call
// has none, so that no variable means two things.
func environment(parser *kong.Kong) error {
	nameVariables(parser.Model.Flags)
	for _, command := range parser.Model.Children {
		if command.Name == "serve" {
			nameVariables(command.Flags)
		}
	}
	return nil
}

func nameVariables(flags []*kong.Flag) {
	for _, f := range flags {
		if f.Name == "help" || len(f.Envs) > 0 {
			continue
		}
		name := "KOINE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		f.Envs = []string{name}
		f.Value.Tag.Envs = slices.Clone(f.Envs) // the parser reads these
	}
}
