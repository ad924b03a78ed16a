// Package valuespace knows what literals mean: the value spaces of numbers, booleans,
// dates and times (XML Schema Datatypes 1.1) and of texts, and how SPARQL 1.1 compares
// them (section 17.3). Queries, shapes and rules compare by it.
//
// Terms that join, that DISTINCT keeps apart and that groups are made of are compared as
// terms, never by value.
package valuespace
