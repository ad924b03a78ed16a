// Package valuespace implements the values of literals: the value spaces of numbers,
// booleans, dates and times (XML Schema Datatypes 1.1) and of strings, and their
// comparison in SPARQL 1.1 (section 17.3). Queries, shapes and rules compare by it.
//
// Joins, DISTINCT and grouping compare terms, never values.
package valuespace
