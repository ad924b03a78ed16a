// Package tracing sends OpenTelemetry traces of requests to a collector, if the
// operator named one: a span for the request, below it one for the method or the
// operation, below that one for each view and update of the store. It follows the
// W3C header traceparent.
//
// A span carries names of routes and methods, statuses and codes. It carries no
// agent, graph, IRI, literal, text of a query or credential.
//
// The spans are made by the OpenTelemetry SDK and sent by its exporter for OTLP over
// HTTP. A nil *Tracing does nothing and costs nothing.
package tracing
