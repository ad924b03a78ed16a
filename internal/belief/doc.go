// Package belief answers why a statement stands, finds what contradicts itself,
// and takes back what is wrong: one commit, or all that an agent said.
//
// It knows no protocol. What it reads, it reads as its caller: what that caller
// may not see is absent, from a commit's justification to the other side of a
// contradiction. What it writes goes through the store's one door like any other
// update, under the caller's rights and the operator's rules.
package belief
