// Package push tells web hooks what happens to tasks. Whoever created a task says
// where (Service.Set); what happens is read from the log and sent there, in order,
// hook by hook.
//
// # What is stored
//
// The configurations of one agent are in one graph, a journal whose name spells out
// whose it is: that agent and administrators read it (Guard). Where a hook is and
// what shows the server to it are sealed under the store's own secret (kg.Store.Seal):
// no statement and no backup has them in the clear, and in a restored store they
// are lost, so that only the server that was told of a hook calls it.
//
// # Promises
//
//   - Each status and artifact behind the commit that set the configuration is sent
//     at least once, in order, but for what is given up: a hook that refuses it, or
//     that does not answer in MaxTries tries. It is logged, without address and secrets.
//   - A hook that stands behind what the log still has, or for which more than
//     MaxPending commits wait, is told the task as it is, and then what comes behind
//     that.
//   - Delivery goes on after a restart. Positions are written down at most once in
//     Options.FlushEvery, and when the server ends: after a crash what was delivered
//     since is sent again.
//   - No hook waits for another one but for its place among Options.MaxSending.
package push
