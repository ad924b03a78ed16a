package agents

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Registration is the self-description of an agent that can be asked. It grants no
// rights: Role is a description, not a role of a credential.
type Registration struct {
	Description string
	Version     string
	Role        string
	Endpoint    string // http or https URL, or ""
	// Capabilities are search tags, like the ids and tags of skills.
	Capabilities []string
	// Skills are objects with an id and a name, as in an A2A card.
	Skills []json.RawMessage
	// Parameters, Auth, Limits and Metadata are JSON objects, or nil.
	Parameters, Auth, Limits, Metadata json.RawMessage
	// Extra holds unknown members by name.
	Extra map[string]json.RawMessage
	// Time is the time of the registration. Changed is the time of the last change, or
	// zero.
	Time, Changed time.Time
}

// Limits of registrations.
const (
	MaxRegistrationBytes = 64 << 10 // the whole self-description as JSON
	MaxDescriptionBytes  = 4 << 10
	MaxTagBytes          = 256
	MaxEndpointBytes     = 2 << 10
	MaxCapabilities      = 100
	MaxSkills            = 100
	MaxSkillTags         = 200 // ids and tags of all skills
)

const (
	propDescription  = "agentDescription"
	propVersion      = "agentVersion"
	propDuty         = "agentDuty"
	propEndpoint     = "agentEndpoint"
	propCapability   = "agentCapability"
	propSkills       = "agentSkills"
	propSkillTag     = "agentSkillTag" // search index of the tags in agentSkills
	propParameters   = "agentParameters"
	propAuth         = "agentAuth"
	propLimits       = "agentLimits"
	propMetadata     = "agentMetadata"
	propRest         = "agentOther"
	propRegistered   = "agentRegistered"
	propReregistered = "agentReregistered"
)

// Registered is the property whose removal indicates that an agent has deregistered.
var Registered = systemgraph.Property(propRegistered)

// EndpointPatterns are the patterns of the statements that an agent's endpoint, the first, and
// its unknown members are in.
func EndpointPatterns() []kg.Pattern {
	return []kg.Pattern{{Predicate: systemgraph.Property(propEndpoint), Graph: Graph}, {Predicate: systemgraph.Property(propRest), Graph: Graph}}
}

// skill holds the members of a skill that koine reads.
type skill struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// Tags returns the capabilities or, without any, the ids of the skills.
func (r *Registration) Tags() []string {
	if len(r.Capabilities) > 0 || len(r.Skills) == 0 {
		return r.Capabilities
	}
	var out []string
	for _, raw := range r.Skills {
		var s skill
		if json.Unmarshal(raw, &s) == nil {
			out = append(out, s.ID)
		}
	}
	return out
}

// ExtraJSON returns the unknown members as an object; nil if there are none.
func (r *Registration) ExtraJSON() json.RawMessage {
	if len(r.Extra) == 0 {
		return nil
	}
	return plainjson.MustEncode(r.Extra)
}

// Can reports whether a search for the capability finds the agent.
func (r *Registration) Can(capability string) bool {
	tags, _ := skillTags(r.Skills)
	return slices.Contains(r.Capabilities, capability) || slices.Contains(tags, capability)
}

// skillTags returns the ids and tags of skills.
func skillTags(skills []json.RawMessage) (tags []string, err error) {
	if len(skills) > MaxSkills {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "agent has more than %d skills", MaxSkills).At("skills")
	}
	for _, raw := range skills {
		var s skill
		if err := json.Unmarshal(raw, &s); err != nil || s.ID == "" || s.Name == "" {
			return nil, kg.Errorf(kg.CodeInvalid, "skill must be an object with an id, a name and, optionally, a list of tags").At("skills")
		}
		for _, tag := range append(s.Tags, s.ID) {
			if err := checkTag("skills", tag); err != nil {
				return nil, err
			}
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) > MaxSkillTags {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "skills have more than %d ids and tags", MaxSkillTags).At("skills")
	}
	return tags, nil
}

// toRecord validates the registration and returns it as properties.
func (r *Registration) toRecord() (systemgraph.Record, error) {
	for _, f := range []struct {
		field, text string
		most        int
	}{{"version", r.Version, MaxTagBytes}, {"role", r.Role, MaxTagBytes}, {"endpoint", r.Endpoint, MaxEndpointBytes}} {
		if err := checkLine(f.field, f.text, f.most); err != nil {
			return nil, err
		}
	}
	if len(r.Description) > MaxDescriptionBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", MaxDescriptionBytes).At("description")
	}
	if err := checkEndpoint(r.Endpoint); err != nil {
		return nil, err
	}
	if len(r.Capabilities) > MaxCapabilities {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "agent has more than %d capabilities", MaxCapabilities).At("capabilities")
	}
	for _, tag := range r.Capabilities {
		if err := checkTag("capabilities", tag); err != nil {
			return nil, err
		}
	}
	tags, err := skillTags(r.Skills)
	if err != nil {
		return nil, err
	}
	out := systemgraph.Record{
		propDescription: systemgraph.Text(r.Description), propVersion: systemgraph.Text(r.Version), propDuty: systemgraph.Text(r.Role), propEndpoint: systemgraph.Text(r.Endpoint),
		propCapability: systemgraph.Values(sortedUnique(r.Capabilities)...), propSkillTag: systemgraph.Values(tags...), propSkills: nil, propRest: nil,
	}
	if _, err := limitsOf(r.Limits); err != nil {
		return nil, err
	}
	size := 0
	if len(r.Skills) > 0 {
		size += putJSON(out, propSkills, r.Skills)
	}
	if len(r.Extra) > 0 {
		size += putJSON(out, propRest, r.Extra)
	}
	for _, f := range []struct {
		field, property string
		raw             json.RawMessage
	}{{"parameters", propParameters, r.Parameters}, {"auth", propAuth, r.Auth}, {"limits", propLimits, r.Limits}, {"metadata", propMetadata, r.Metadata}} {
		out[f.property] = nil
		if len(f.raw) == 0 {
			continue
		}
		if bytes.TrimSpace(f.raw)[0] != '{' {
			return nil, kg.Errorf(kg.CodeInvalid, "must be a JSON object").At(f.field)
		}
		size += putJSON(out, f.property, f.raw)
	}
	if size > MaxRegistrationBytes {
		return nil, errTooLarge()
	}
	return out, nil
}

func errTooLarge() *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, "registration has more than %d bytes", MaxRegistrationBytes)
}

func sortedUnique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// putJSON stores a value as JSON and returns its size.
func putJSON(r systemgraph.Record, property string, value any) int {
	raw := plainjson.MustEncode(value)
	r[property] = systemgraph.JSON(raw)
	return len(raw)
}

func checkLine(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", limit).At(field)
	case strings.ContainsFunc(text, unicode.IsControl):
		return kg.Errorf(kg.CodeInvalid, "must be one line of plain text").At(field)
	}
	return nil
}

func checkTag(field, tag string) error {
	if tag == "" {
		return kg.Errorf(kg.CodeInvalid, "tag is empty").At(field)
	}
	return checkLine(field, tag, MaxTagBytes)
}

func checkEndpoint(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return kg.Errorf(kg.CodeInvalid, "must be an http or https URL without user information").At("endpoint")
	}
	return nil
}

// registrationOf reads the self-description of an agent; nil if it is not registered.
func registrationOf(r systemgraph.Record) *Registration {
	if r[propRegistered] == nil {
		return nil
	}
	out := &Registration{
		Description: r.Text(propDescription), Version: r.Text(propVersion), Role: r.Text(propDuty), Endpoint: r.Text(propEndpoint),
		Capabilities: r.Texts(propCapability), Parameters: r.JSON(propParameters), Auth: r.JSON(propAuth), Limits: r.JSON(propLimits),
		Metadata: r.JSON(propMetadata), Time: r.Time(propRegistered), Changed: r.Time(propReregistered),
	}
	_ = json.Unmarshal(r.JSON(propSkills), &out.Skills) // was validated when written
	_ = json.Unmarshal(r.JSON(propRest), &out.Extra)
	return out
}

// clearedRegistration returns a record update that removes the registration.
func clearedRegistration() systemgraph.Record {
	out := systemgraph.Record{}
	for _, name := range []string{
		propDescription, propVersion, propDuty, propEndpoint, propCapability, propSkills, propSkillTag, propParameters, propAuth, propLimits,
		propMetadata, propRest, propRegistered, propReregistered,
	} {
		out[name] = nil
	}
	return out
}
