// Package tracing sends OpenTelemetry traces of requests to a collector, if the
// operator named one: a span for the request, below it one for the method or the
// operation, below that one for each view and update of the store. It follows the
// W3C header traceparent.
//
// A span carries names of routes and methods, statuses and codes. It carries no
// agent, graph, IRI, literal, text of a query or credential.
//
// The spans are made by the OpenTelemetry SDK and sent by an exporter of our own
// (OTLP over HTTP with JSON): the SDK's links gRPC, which is more than the rest of
// the tracing together. A nil *Tracing does nothing and costs nothing.
package tracing
