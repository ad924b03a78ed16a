// Package push delivers the events of tasks to web hooks. The creator of a task
// configures the hooks (Service.Set). The events are read from the log and delivered in
// order, independently for each hook.
//
// # Storage
//
// The configurations of one agent are in one graph, a journal whose name contains the
// agent's id. That agent and administrators can read it (Guard). The URL and the
// credentials of a hook are sealed with the store's own secret (kg.Store.Seal): no
// statement or backup contains them in the clear, and a restored store cannot read
// them, so that only the server on which a hook was configured calls it. The commit that
// deletes a task deletes its configurations (Forget).
//
// # Guarantees
//
//   - Each status and artifact after the commit that set the configuration is delivered
//     at least once, in order, unless delivery is given up: the hook rejects it, or
//     does not respond in MaxTries attempts. That is logged, without URL and
//     credentials.
//   - A hook that lags behind the retained log, or by more than MaxPending commits,
//     gets the present task and then the later events.
//   - The events of a creator that is suspended wait (Options.MayDeliver), and are delivered
//     when it no longer is.
//   - Delivery resumes after a restart. Positions are stored at most once per
//     Options.FlushEvery, and when the server stops: after a crash, the deliveries
//     since then are repeated.
//   - Hooks do not delay each other, except for the limit of Options.MaxConcurrent
//     calls, of which the hooks of a creator get a share.
//   - A creator gets a share of Options.MaxActive hooks.
package push
