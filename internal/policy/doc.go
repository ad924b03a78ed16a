// Package policy decides who may see and change which graph (DESIGN 3.5): it is
// the kg.Access of a server.
//
//	policies := policy.New(policy.Options{})
//	store, err := kg.Open(dir, kg.Options{Access: policies, OnSystemChange: policies.Follow, ...})
//	err = policies.Load(ctx, store)              // once, before anybody asks
//	graphs := policy.NewGraphs(store, policies)  // create, set, delete
//
// A Policy is a few statements about a graph in kg.SystemGraph (vocabulary.go),
// written by this package only. Policies holds all of them in memory, in a form
// from which the answer takes one look-up and no lock. It follows the system
// graph: a commit that changes a policy is in force before any reader sees it.
//
// # Who may do what
//
// In this order, the first that applies:
//
//   - koine itself (kg.SystemPrincipal) may do everything;
//   - with a deleted graph nobody may do anything;
//   - who has the role kg.RoleAdmin, or works on the data directory itself, may do everything;
//   - where there is a policy: owners everything, writers read and write, readers
//     read, and everybody reads a public graph;
//   - koine's own graphs: everybody reads the agents' records and presence, and
//     the shapes, nobody anything else;
//   - the default graph: what Options.DefaultGraph says;
//   - a graph whose name begins with an agent's id and "/", such as
//     agent://dora/notes, belongs to that agent;
//   - any other graph: what Options.NewGraphs says.
//
// # Promises
//
//   - The newest policy decides, whatever revision is read.
//   - What may not be read is not found: the calls of Graphs answer for a graph
//     that is hidden as for one that is not there.
//   - A deleted graph leaves a tombstone: its name is never used again, and its
//     past is not read.
//   - A graph keeps an owner, unless an administrator says otherwise.
package policy
