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
	"koine/internal/records"
	"koine/kg"
)

// Registration is what an agent that can be asked says of itself. Nothing in it gives
// it rights: Role is what it does, not a role of its credentials.
type Registration struct {
	Description string
	Version     string
	Role        string
	Endpoint    string // its own address, http or https; "" for one that has none
	// Capabilities are tags that it is searched by, as are the ids and tags of its
	// skills.
	Capabilities []string
	// Skills are as in an A2A card: objects with an id and a name.
	Skills []json.RawMessage
	// Parameters, Auth, Limits and Metadata are objects, or nil.
	Parameters, Auth, Limits, Metadata json.RawMessage
	// Extra has what koine does not understand, by its name.
	Extra map[string]json.RawMessage
	// Time is when it registered, Changed when it last changed what it says; zero if never.
	Time, Changed time.Time
}

// Bounds on registrations.
const (
	MaxRegistrationBytes = 64 << 10 // of all that an agent says of itself, as JSON
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
	propSkillTag     = "agentSkillTag" // what is searched by; the skills themselves have it too
	propParameters   = "agentParameters"
	propAuth         = "agentAuth"
	propLimits       = "agentLimits"
	propMetadata     = "agentMetadata"
	propRest         = "agentOther"
	propRegistered   = "agentRegistered"
	propReregistered = "agentReregistered"
)

// Registered is the property whose removal tells that an agent has deregistered.
var Registered = records.Property(propRegistered)

// skill is what koine reads of a skill.
type skill struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// Tags are what the agent can do, as tags: what it said, or else the ids of its skills.
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

// ExtraJSON has what koine does not understand, as an object; nil for nothing.
func (r *Registration) ExtraJSON() json.RawMessage {
	if len(r.Extra) == 0 {
		return nil
	}
	return plainjson.MustEncode(r.Extra)
}

// Can tells whether it is found by the capability.
func (r *Registration) Can(capability string) bool {
	tags, _ := skillTags(r.Skills)
	return slices.Contains(r.Capabilities, capability) || slices.Contains(tags, capability)
}

// skillTags are the ids and tags of skills.
func skillTags(skills []json.RawMessage) (tags []string, err error) {
	if len(skills) > MaxSkills {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "an agent has at most %d skills", MaxSkills).At("skills")
	}
	for _, raw := range skills {
		var s skill
		if err := json.Unmarshal(raw, &s); err != nil || s.ID == "" || s.Name == "" {
			return nil, kg.Errorf(kg.CodeInvalid, "a skill is an object with an id, a name, and a list of tags if it has some").At("skills")
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
		return nil, kg.Errorf(kg.CodeLimitExceeded, "skills have at most %d ids and tags together", MaxSkillTags).At("skills")
	}
	return tags, nil
}

// toRecord checks the registration, and gives it as properties.
func (r *Registration) toRecord() (records.Record, error) {
	for _, f := range []struct {
		field, text string
		most        int
	}{{"version", r.Version, MaxTagBytes}, {"role", r.Role, MaxTagBytes}, {"endpoint", r.Endpoint, MaxEndpointBytes}} {
		if err := checkLine(f.field, f.text, f.most); err != nil {
			return nil, err
		}
	}
	if len(r.Description) > MaxDescriptionBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "at most %d bytes", MaxDescriptionBytes).At("description")
	}
	if err := checkEndpoint(r.Endpoint); err != nil {
		return nil, err
	}
	if len(r.Capabilities) > MaxCapabilities {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "an agent has at most %d capabilities", MaxCapabilities).At("capabilities")
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
	out := records.Record{
		propDescription: someText(r.Description), propVersion: someText(r.Version), propDuty: someText(r.Role), propEndpoint: someText(r.Endpoint),
		propCapability: records.Values(sortedUnique(r.Capabilities)...), propSkillTag: records.Values(tags...), propSkills: nil, propRest: nil,
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
			return nil, kg.Errorf(kg.CodeInvalid, "is an object").At(f.field)
		}
		size += putJSON(out, f.property, f.raw)
	}
	if size > MaxRegistrationBytes {
		return nil, errTooLarge()
	}
	return out, nil
}

func errTooLarge() *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, "what an agent says of itself has at most %d bytes", MaxRegistrationBytes)
}

func sortedUnique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// putJSON states a value as JSON, and gives its size.
func putJSON(r records.Record, property string, value any) int {
	raw := plainjson.MustEncode(value)
	r[property] = []kg.Term{kg.Typed(string(raw), kg.RDF+"JSON")}
	return len(raw)
}

func checkLine(field, text string, most int) error {
	switch {
	case len(text) > most:
		return kg.Errorf(kg.CodeLimitExceeded, "at most %d bytes", most).At(field)
	case strings.ContainsFunc(text, unicode.IsControl):
		return kg.Errorf(kg.CodeInvalid, "is one line of plain text").At(field)
	}
	return nil
}

func checkTag(field, tag string) error {
	if tag == "" {
		return kg.Errorf(kg.CodeInvalid, "a tag has at least one letter").At(field)
	}
	return checkLine(field, tag, MaxTagBytes)
}

func checkEndpoint(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return kg.Errorf(kg.CodeInvalid, "is an address with http or https, without a user").At("endpoint")
	}
	return nil
}

// registrationOf reads what an agent says of itself; nil for one that is not registered.
func registrationOf(r records.Record) *Registration {
	if r[propRegistered] == nil {
		return nil
	}
	out := &Registration{
		Description: r.Text(propDescription), Version: r.Text(propVersion), Role: r.Text(propDuty), Endpoint: r.Text(propEndpoint),
		Capabilities: r.Texts(propCapability), Parameters: rawOf(r, propParameters), Auth: rawOf(r, propAuth), Limits: rawOf(r, propLimits),
		Metadata: rawOf(r, propMetadata), Time: r.Time(propRegistered), Changed: r.Time(propReregistered),
	}
	_ = json.Unmarshal(rawOf(r, propSkills), &out.Skills) // as it was written
	_ = json.Unmarshal(rawOf(r, propRest), &out.Extra)
	return out
}

func rawOf(r records.Record, name string) json.RawMessage {
	if text := r.Text(name); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

// clearedRegistration takes all of a registration away.
func clearedRegistration() records.Record {
	out := records.Record{}
	for _, name := range []string{
		propDescription, propVersion, propDuty, propEndpoint, propCapability, propSkills, propSkillTag, propParameters, propAuth, propLimits,
		propMetadata, propRest, propRegistered, propReregistered,
	} {
		out[name] = nil
	}
	return out
}
