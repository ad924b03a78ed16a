package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	kongyaml "github.com/alecthomas/kong-yaml"
	"gopkg.in/yaml.v3"
)

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
