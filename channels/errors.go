package channels

import "koine/kg"

func errNoEvents() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "audit requires a channel in a scope").At("audit")
}

func errOutOfScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeNotMember, "%s has no access to the scope of the channel, so it could not accept", agent).At("principalId")
	e.Hint = "give the agent access to the scope first; the roles of a credential are known after its first request"
	return e
}

func errLastOwner() *kg.Error {
	e := kg.Errorf(kg.CodeLastOwner, "agent is the last owner of the channel").At("principalId")
	e.Hint = "make another member an owner first, or delete the channel"
	return e
}

func errStaysByScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "%s has access through the scope and would keep it", agent).At("principalId")
	e.Hint = "ban the agent from the channel or remove its access to the scope; to change its role, add it again"
	return e
}
