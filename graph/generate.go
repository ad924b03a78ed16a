package graph

//go:generate go -C .. run ./graph/internal/tablegen gqlgen.yml
