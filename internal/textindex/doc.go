// Package textindex finds statements by the words of their texts.
//
// An Index holds texts: the literal of a statement, or the text of a message, with the ids of
// the statement. Search ranks the subjects of the texts by BM25: the score of a subject is
// the sum, over the words of the query, of the best that one of its texts has for the word, and
// a share of the best of another text.
//
// # Access
//
// Search is called with the rights of the caller, by graph and predicate, and its statistics
// (how many texts there are, how many have a word, how long they are) are counted by these.
// So hits, their scores and their order are those of an index that holds only the texts
// that the caller may read: a text elsewhere changes nothing. Conditions on single texts, such
// as a quarantine, are checked for each candidate before it counts (Request.Shown).
//
// # Structure
//
// New texts are gathered by a builder, which becomes a segment when it is full or a search
// comes. Segments are immutable, and merged when several are of about one size. A segment has
// its texts in the order of their subjects, and for each word the texts with it and the
// places there (postings), in blocks with the largest impacts: how often the word is in how
// long a text. Search walks the postings of all segments together, subject by subject, and
// skips blocks whose texts cannot be among the first hits any more (block-max MaxScore).
package textindex
