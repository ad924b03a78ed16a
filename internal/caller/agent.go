package caller

import "koine/kg"

// ParseAgent returns the canonical form of an agent id from outside.
func ParseAgent(text string) (kg.AgentID, error) {
	if text == "" {
		return "", kg.Errorf(kg.CodeInvalid, "agent id is empty")
	}
	id := kg.CanonicalAgent(text)
	if err := id.Valid(); err != nil {
		return "", err
	}
	return id, nil
}
