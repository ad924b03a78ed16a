package graph

import (
	"koine/graph/internal/knowledge"
	"koine/graph/internal/scalar"
)

// Tokens of the schema.
type (
	// Cursor marks a place in a connection.
	Cursor = scalar.Cursor
	// Position is a place in the log.
	Position = scalar.Position
)

// Stream is an established subscription.
type Stream = knowledge.Stream
