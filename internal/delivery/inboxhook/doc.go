// Package inboxhook delivers the messages of channels to the endpoints that agents
// registered: an agent gets by POST the messages of its stream
// (channels.StreamAudience), without keeping one open.
//
// Endpoints belong to the registrations of agents (package agents). The package stores only
// how far the deliveries to each are, in a journal (Graph) that only administrators can read.
//
// # Guarantees
//
//   - Each message after the registration of the endpoint is delivered at least once, in the
//     order of the log, if it still has content and the agent may still read it. A message
//     that the endpoint refuses for good (delivery.IsRetryable) is left out: it stays in
//     its channel. After any other failure the message is tried again, with pauses up to
//     delivery.MaxBackoff, and later ones wait for it.
//   - Delivery resumes after a restart. Progress is stored at most once per
//     Options.FlushEvery, and when the server stops: after a crash, the deliveries since
//     then are repeated. The header Idempotency-Key has the id of the message.
//   - Nothing is delivered to a suspended agent, and no call starts after the commit that
//     changes the endpoint or deregisters the agent.
//   - Endpoints do not delay each other, except for the limit of Options.MaxConcurrent calls.
//   - Messages are read from the store when their turn comes: nothing is queued in memory.
package inboxhook
