// Package typescript holds no Go: it is a program in TypeScript whose GraphQL operations
// are typed by graphql-codegen. scalars.ts maps the scalars of the schema; begin with
// codegen.ts. The tests generate the types from a server, compile the program strictly
// and run it.
package typescript
