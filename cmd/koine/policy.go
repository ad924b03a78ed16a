package main

import (
	"fmt"

	"koine/internal/policy"
)

// policyFlags set the rights on graphs without a policy.
type policyFlags struct {
	DefaultGraph string `help:"Access of all authenticated callers to the default graph while it has no policy: read-write, read-only or private." default:"read-write" name:"default-graph" placeholder:"MODE" completes:"read-write,read-only,private"`
	NewGraphs    string `help:"Access of all authenticated callers to other graphs without a policy, and to new graphs by default: private, read-only or read-write." default:"private" name:"new-graphs" placeholder:"MODE" completes:"private,read-only,read-write"`
}

// newPolicies returns the policies with these defaults; made is the number of graphs that a
// principal may create.
func (f policyFlags) newPolicies(made int) (*policy.Policies, error) {
	o := policy.Options{MaxGraphs: made}
	for _, flag := range []struct {
		name, text string
		mode       *policy.Mode
	}{{"default-graph", f.DefaultGraph, &o.DefaultGraph}, {"new-graphs", f.NewGraphs, &o.NewGraphs}} {
		mode, err := policy.ParseMode(flag.text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w", flag.name, err)}
		}
		*flag.mode = mode
	}
	return policy.New(o), nil
}
