// Package forward forwards the letters of mailboxes to upstreams: an agent behind the hub
// may be an ordinary A2A server (Service.Set). The upstream's answers become reports on the
// task, as if the agent had made them through its mailbox, so order, access, streams and
// history are those of all tasks.
//
// # Storage
//
// Graph has one record for each agent with an upstream, sealed with the store's own secret
// (kg.Store.Seal), and one for each open task that an upstream works on: the ids of the
// upstream, and the last message that it accepted. The mailbox is the queue: a letter is
// acknowledged in the report with which the upstream has settled it.
//
// # Guarantees
//
//   - A message is sent until its upstream has accepted it, with the same message id; then the
//     task is followed, also after a restart. Only a crash between the two sends it twice.
//   - Letters of one task are forwarded in order, those of different tasks concurrently.
//   - While calls fail the task stays open and its status says so; after Options.MaxAway it
//     fails. Private addresses are treated like those that do not respond.
//   - Each call is bounded: in time, silence, bytes and events. An agent has at most
//     Options.MaxCallsPerAgent calls under way.
//   - No call starts after the commit that removes the upstream or deregisters the agent.
package forward
