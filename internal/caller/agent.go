package caller

import "koine/kg"

// ParseAgent is the agent that a text from outside names, in its canonical
// form.
func ParseAgent(text string) (kg.AgentID, error) {
	if text == "" {
		return "", kg.Errorf(kg.CodeInvalid, "an agent id cannot be empty")
	}
	id := kg.CanonicalAgent(text)
	if err := id.Valid(); err != nil {
		return "", err
	}
	return id, nil
}
