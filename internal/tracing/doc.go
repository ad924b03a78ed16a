// Package tracing exports OpenTelemetry traces of requests to a collector, if the
// operator configures one: a span for the request, below it one for the method or
// operation, below that one for each view and update of the store. It accepts the W3C
// header traceparent.
//
// A span carries names of routes and methods, statuses and codes. It carries no agent, graph, IRI,
// literal, query text or credential.
//
// The OpenTelemetry SDK makes the spans and exports them by OTLP over HTTP. A nil
// *Tracing does nothing and costs nothing.
package tracing
