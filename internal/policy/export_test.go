package policy

// Role returns the grantee for all principals with a role.
func Role(name string) Grantee { return Grantee(rolePrefix + name) }
