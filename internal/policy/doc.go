// Package policy is the access control for graphs. It implements
// kg.Access.
//
//	policies := policy.New(policy.Options{})
//	store, err := kg.Open(dir, kg.Options{Access: policies, OnSystemChange: policies.Follow, ...})
//	err = policies.Load(ctx, store)              // once, before other use
//	graphs := policy.NewGraphs(store, policies)  // create, set, delete
//
// A Policy is a set of statements about a graph in kg.SystemGraph (vocabulary.go),
// written only by this package. Policies holds all of them in memory, in a form that
// takes one lookup and no lock to evaluate. It follows the system graph: a commit that
// changes a policy takes effect before any reader sees the commit.
//
// # Access rules
//
// The first rule that applies decides:
//
//   - koine itself (kg.SystemPrincipal) has all rights;
//   - a deleted graph grants no rights;
//   - principals with the role kg.RoleAdmin, or with access to the data directory, have
//     all rights;
//   - with a policy, owners have all rights, writers read and write, readers read, and
//     everyone reads a public graph;
//   - of the system graphs, everyone reads the agents' records, their presence, and the
//     shapes; the others grant no rights;
//   - the default graph grants the rights of Options.DefaultGraph;
//   - a graph whose name begins with an agent's id and "/", such as agent://dora/notes,
//     belongs to that agent;
//   - other graphs grant the rights of Options.NewGraphs.
//
// # Guarantees
//
//   - The newest policy decides, regardless of the revision being read.
//   - Without read access a graph is not found: Graphs returns the same error as for a
//     graph that does not exist.
//   - A deleted graph leaves a tombstone: its past cannot be read, and only its owners
//     and administrators can create a graph of that name.
//   - A graph has an owner unless an administrator removes the last one.
package policy
