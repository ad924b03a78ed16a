package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"koine/internal/slowtest"
)

// The scripts run the program as it is, in processes of its own.
func TestMain(m *testing.M) {
	// Updates must not fail because the machine has little free space. A script that tests
	// the reserve sets the variable itself, and runs this again as its koine.
	if _, set := os.LookupEnv("KOINE_RESERVE_MIB"); !set {
		if err := os.Setenv("KOINE_RESERVE_MIB", "0"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"koine": main})
}

// scriptsEnd is a little before go test would end the process, so that a hanging script is
// reported: their total time depends on the machine.
func scriptsEnd(t *testing.T) time.Time {
	end, ok := t.Deadline()
	if !ok {
		return time.Now().Add(time.Hour)
	}
	return end.Add(-30 * time.Second)
}

func TestScripts(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            scriptsEnd(t),
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"jsonlines": jsonLines,
			"keyfrom":   keyFrom, "valuefrom": valueFrom,
			"serve":   serve,
			"signal":  signalServer,
			"sorted":  sorted,
			"private": private,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("KOINE_RESERVE_MIB", "0")
			env.Setenv("MOVIES", mustAbs("../../internal/rdf/testdata/movies-excerpt.nq.gz"))
			env.Values[serversKey{}] = &servers{}
			env.Defer(env.Values[serversKey{}].(*servers).killAll)
			return nil
		},
	})
}
