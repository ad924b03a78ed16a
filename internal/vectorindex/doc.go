// Package vectorindex finds the vectors that are nearest to a given one, by cosine or dot
// product.
//
// # Exactness
//
// Search reads every vector of the model that the caller may read, so its hits are those of an
// index that holds nothing else; a graph of neighbours would lead walks through vectors that the
// caller may not read. Each vector is kept twice: as it was given, and as codes of one byte a
// dimension with a bound on their error. A search computes the dot products of all codes, and
// the exact score of those vectors that the bound leaves among the first hits.
//
// # Structure
//
// Vectors of one dimension are in chunks, in the order in which they came. The last chunk is in
// memory and grows; the others are immutable and mapped from their files. Removed vectors are
// marked, and a chunk of which more than half are removed is given up.
package vectorindex
