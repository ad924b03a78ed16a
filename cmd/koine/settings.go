package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	kongyaml "github.com/alecthomas/kong-yaml"
	"gopkg.in/yaml.v3"

	"koine/internal/suggest"
)

const variablePrefix = "KOINE_"

// addVariables gives each global flag and each flag of serve an environment variable,
// KOINE_ and the name in capitals. Other commands' flags have a variable only if their tag
// names one: those for the server, the agent and the reserved disk space mean the same in
// every command. A flag for a single call has none, so that no variable has two meanings.
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
		f.Value.Tag.Envs = slices.Clone(f.Envs) // the parser reads the names from the tag
	}
}

// warnOfVariables logs a warning for each environment variable that resembles the variable
// of a flag but matches none. It ignores other variables with the prefix: many deployments
// set variables that begin with the name of a service.
func warnOfVariables(log *slog.Logger, commands *kong.Node, environment []string) {
	known := variableNames(commands)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && strings.HasPrefix(name, variablePrefix) && !slices.Contains(known, name) {
			if meant := nearestVariable(name, known); meant != "" {
				log.Warn("unknown environment variable", "variable", name, "nearest", meant)
			}
		}
	}
}

// variableNames returns the sorted environment variables of all flags.
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

// minStem is the minimum length of a known name that is a prefix of a misspelt one, such
// as DATA of DATADIR.
const minStem = 4

// nearestVariable returns the known variable that a name is probably a misspelling of: a
// few letters differ, or a word is missing or added at the end. It returns "" if there is
// none.
func nearestVariable(name string, known []string) string {
	bare := make([]string, len(known))
	for i, k := range known {
		bare[i] = strings.TrimPrefix(k, variablePrefix)
	}
	short := strings.TrimPrefix(name, variablePrefix)
	if meant := suggest.Names(short, bare, 1); len(meant) > 0 {
		return variablePrefix + meant[0]
	}
	for _, k := range bare {
		if strings.HasPrefix(short, k+"_") || strings.HasPrefix(k, short+"_") || len(k) >= minStem && strings.HasPrefix(short, k) {
			return variablePrefix + k
		}
	}
	return ""
}

// loadConfig reads a configuration file. It has the flags of all commands by
// their names, those of a command below the command's name:
//
//	log-format: json
//	serve:
//	  listen: 127.0.0.1:8080
//	  data: /var/lib/koine
//	  prefix:
//	    ex: https://example.org/
func loadConfig(r io.Reader) (kong.Resolver, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{}
	if err := yaml.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	values, err := kongyaml.Loader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return config{Resolver: values, settings: settings}, nil
}

// config adds to the loader's resolver that a misspelt setting is an error and
// not silently without effect.
type config struct {
	kong.Resolver
	settings map[string]any
}

// Validate reports an error for a setting that matches no flag.
func (c config) Validate(app *kong.Application) error {
	return checkUnknownSettings(c.settings, app.Node, "")
}

func checkUnknownSettings(settings map[string]any, node *kong.Node, path string) error {
	for name, value := range settings {
		if hasFlag(node, name) {
			continue
		}
		child := childOf(node, name)
		if child == nil {
			return fmt.Errorf("configuration file: unknown setting %q", path+name)
		}
		below, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("configuration file: %q must contain settings, not a value", path+name)
		}
		if err := checkUnknownSettings(below, child, path+name+"."); err != nil {
			return err
		}
	}
	return nil
}

func hasFlag(node *kong.Node, name string) bool {
	for _, f := range node.Flags {
		if f.Name == name && !strings.EqualFold(name, "config") {
			return true
		}
	}
	return false
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, n := range node.Children {
		if n.Name == name {
			return n
		}
	}
	return nil
}
