// Tablegen generates the tables that the executor runs on from the schema, by
// what gqlgen's code generator knows of it: the models, and which Go field,
// method or function each field is bound to. It takes the place of gqlgen's
// own executor. A field without its function does not compile.
//
//	go run ./graph/internal/tablegen gqlgen.yml
//
// It writes the models (gqlgen's modelgen) and graph/tables_gen.go, which has
// for each object type an executor.Object, for each field with arguments a
// struct of them with its coercion, and for each input type its coercion. The
// arguments of planned types are in graph/internal/knowledge/args_gen.go, with a
// switch that calls the method that plans a field (plannedByField).
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/plugin"
	"github.com/99designs/gqlgen/plugin/modelgen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tablegen gqlgen.yml")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tablegen:", err)
		os.Exit(1)
	}
}

// valuesFile is the file of the planned types.
const valuesFile = "graph/internal/knowledge/args_gen.go"

func run(file string) error {
	cfg, err := config.LoadConfig(file)
	if err != nil {
		return err
	}
	data, err := buildData(cfg)
	if err != nil {
		return err
	}
	values := newGenerator(data, valuesPath, nil)
	text, err := values.generateValues()
	if err != nil {
		return err
	}
	if err := os.WriteFile(valuesFile, text, 0o644); err != nil {
		return err
	}
	if text, err = newGenerator(data, cfg.Exec.ImportPath(), values).generate(); err != nil {
		return err
	}
	return os.WriteFile(cfg.Exec.Filename, text, 0o644)
}

// buildData does what api.Generate of gqlgen does up to the generation of its
// executor.
func buildData(cfg *config.Config) (*codegen.Data, error) {
	log.SetOutput(io.Discard) // it tells of each field that is not bound to Go
	defer log.SetOutput(os.Stderr)
	if err := cfg.LoadSchema(); err != nil {
		return nil, fmt.Errorf("load the schema: %w", err)
	}
	if err := codegen.ExpandInlineArguments(cfg.Schema); err != nil {
		return nil, err
	}
	if err := cfg.Init(); err != nil {
		return nil, err
	}
	models := modelgen.New()
	if err := models.(plugin.ConfigMutator).MutateConfig(cfg); err != nil {
		return nil, fmt.Errorf("generate the models: %w", err)
	}
	return codegen.BuildData(cfg, models)
}
