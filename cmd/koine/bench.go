package main

import "context"

type benchCommand struct{}

func (benchCommand) Run(ctx context.Context, t terminal) error { return nil }
