// Package embedding makes vectors of texts at an OpenAI-compatible endpoint that the operator
// configures.
//
// A Maker follows the log. It sends the texts of those graphs that its policy names, in batches,
// and keeps the vectors in files beside the log, by a hash of graph and text: so they outlast the
// indexes that are made of them. The log is the queue: the place up to which all texts have
// vectors is saved with them, and a text waits in the log until the endpoint has answered.
// Nothing else waits for the endpoint.
package embedding
