package main

import (
	"context"
	"net/http"

	"koine/internal/audit"
	"koine/internal/caller"
	"koine/internal/dialect/agentapi"
	"koine/kg"
)

// restPrefix is where the REST protocol of agents and tasks is.
const restPrefix = "/rest"

func restHandler(deps agentapi.Deps, o agentapi.Options) http.Handler {
	return http.StripPrefix(restPrefix, agentapi.NewHandler(deps, o))
}

// refusedOf notes what somebody may not do.
func refusedOf(trail *audit.Trail) func(caller.Caller, kg.Code) {
	return func(who caller.Caller, code kg.Code) { trail.Refused(caller.With(context.Background(), who), code) }
}
