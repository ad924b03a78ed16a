// Package executor executes GraphQL operations over tables of fields.
//
// A Schema has a table for each object type. A selection set is merged once
// for each object type (Operation.Select), with the arguments of its fields
// coerced, and a Writer then resolves and writes the fields of each object. A
// field's function writes its value as JSON: a scalar directly, an object with
// Writer.Object, and a value that was planned and loaded as a whole with
// Writer.Value.
//
// # Promises
//
//   - Fields are written in the order of the operation, one after the other.
//   - A field that fails, panics included, is null, or its parent fails if it
//     must not be null (GraphQL, "Handling Execution Errors"). Each error has
//     the path of its field.
//   - Tables are values: types that are made at run time are more tables.
//
// The tables of koine's schema are generated from schema.graphqls by package
// tablegen.
package executor
