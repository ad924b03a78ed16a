package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"koine/internal/nearest"
)

const variablePrefix = "KOINE_"

// addVariables gives all flags of serve, and those of every command, a variable: KOINE_
// and the name in capitals. Other flags have one only where they say so, because they
// stand for the same thing whatever is called: where, as whom, and what is kept free. What
// is of one call has none, so that no variable means two things.
func addVariables(parser *kong.Kong) error {
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
		if f.Name == "help" || f.Name == "version" || len(f.Envs) > 0 {
			continue
		}
		name := variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		f.Envs = []string{name}
		f.Value.Tag.Envs = slices.Clone(f.Envs) // the parser reads these
	}
}

// warnOfVariables logs the variables of the environment that no flag has and that look
// like one that a flag has, with that one. Others are left alone: many programs have
// variables that begin with the name of a service.
func warnOfVariables(log *slog.Logger, commands *kong.Node, environment []string) {
	known := variableNames(commands)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && strings.HasPrefix(name, variablePrefix) && !slices.Contains(known, name) {
			if meant := nearestVariable(name, known); meant != "" {
				log.Warn("no setting has this environment variable", "variable", name, "nearest", meant)
			}
		}
	}
}

// variableNames lists the variables that flags have, sorted.
func variableNames(node *kong.Node) (list []string) {
	for _, f := range node.Flags {
		list = append(list, f.Envs...)
	}
	for _, child := range node.Children {
		list = append(list, variableNames(child)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// minStem is the length from which a word counts as meant by a longer one that begins
// with it: DATA by DATADIR.
const minStem = 4

// nearestVariable is the known variable that a name is a slip of: some letters differ, or
// a word is left out or added at the end. It is "" where there is none.
func nearestVariable(name string, known []string) string {
	bare := make([]string, len(known))
	for i, k := range known {
		bare[i] = strings.TrimPrefix(k, variablePrefix)
	}
	short := strings.TrimPrefix(name, variablePrefix)
	if meant := nearest.Names(short, bare, 1); len(meant) > 0 {
		return variablePrefix + meant[0]
	}
	for _, k := range bare {
		if strings.HasPrefix(short, k+"_") || strings.HasPrefix(k, short+"_") || len(k) >= minStem && strings.HasPrefix(short, k) {
			return variablePrefix + k
		}
	}
	return ""
}
