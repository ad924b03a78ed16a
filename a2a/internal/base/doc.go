// Package base has what the versions of base A2A have in common: what is asked for,
// as it is once a version has been read, and the interface of a version.
package base
