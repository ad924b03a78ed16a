// Package words divides texts into the words that they are searched by.
//
// A word is a run of letters, marks and digits, in the folded form: lower case, without
// accents, compatibility characters replaced by their equivalents. Runs of Chinese,
// Japanese and Korean characters are divided into overlapping pairs, because these
// languages are written without spaces. Words of the languages with a stemmer (Snowball)
// have a stem as well, which the forms of one word share.
package words
