package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the program as it is, in processes of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"koine": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(2 * time.Minute),
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"keyfrom": keyFrom,
			"serve":   serve,
			"signal":  signalServer,
			"sorted":  sorted,
			"private": private,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("MOVIES", mustAbs("../../internal/rdf/testdata/movies-excerpt.nq.gz"))
			env.Values[serversKey{}] = &servers{}
			env.Defer(env.Values[serversKey{}].(*servers).killAll)
			return nil
		},
	})
}
