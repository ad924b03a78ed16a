package graph

import "koine/graph/internal/scalar"

// Tokens of the schema.
type (
	// Cursor marks a place in a connection.
	Cursor = scalar.Cursor
	// Position is a place in the log.
	Position = scalar.Position
)
