// Package koine has the GraphQL schema that koine serves.
package koine

import _ "embed"

// Schema is the schema in GraphQL's schema definition language.
//
//go:embed schema.graphqls
var Schema string
