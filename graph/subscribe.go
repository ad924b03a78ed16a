package graph

import (
	"context"

	"koine/kg"
)

func followStatements(ctx context.Context, where *StatementFilter, ops []kg.Op, resume *Position, view *ViewInput) error {
	return nil
}
