// Package base contains the common part of the versions of base A2A: requests in
// decoded form, and the interface of a version.
package base
