package push

import (
	"net/url"
	"strconv"
	"strings"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/kg"
)

const (
	configClass = "PushConfig"
	idPrefix    = "urn:koine:push:"
)

// Properties of a configuration.
const (
	propTask        = "pushTask"
	propKey         = "pushKey"
	propForm        = "pushForm"
	propSet         = "pushSet"         // unique for each Set; absent once done
	propURL         = "pushURL"         // sealed
	propToken       = "pushToken"       // sealed
	propScheme      = "pushScheme"      // sealed
	propCredentials = "pushCredentials" // sealed
	propPosition    = "pushPosition"    // position of the last delivery; absent before the first
	propDone        = "pushDone"        // no further events
)

// configEntity returns the configuration as an entity of the graph.
func configEntity(task tasks.TaskID, id string) kg.Term {
	return kg.IRI(idPrefix + string(task) + "/" + url.PathEscape(id))
}

func (c *Config) sealedFields() map[string]*string {
	return map[string]*string{propURL: &c.URL, propToken: &c.Token, propScheme: &c.Scheme, propCredentials: &c.Credentials}
}

// sealContext binds a sealed property to its configuration.
func (c *Config) sealContext(property string) []byte {
	return []byte("push\x00" + configEntity(c.Task, c.ID).Value() + "\x00" + property)
}

// configRecord returns the stored form of a configuration. It clears the position of a
// configuration that it replaces.
func (s *Service) configRecord(c *Config, version string, done bool) systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class(configClass), propTask: {c.Task.Entity()}, propKey: systemgraph.Values(c.ID), propForm: systemgraph.Values(c.Form), propSet: systemgraph.Values(version),
		propPosition: nil, propDone: nil,
	}
	if done {
		markDone(r)
	}
	for property, text := range c.sealedFields() {
		r[property] = systemgraph.Values(s.store.Seal([]byte(*text), c.sealContext(property)))
	}
	return r
}

// markDone marks a record as done. A start finds active configurations by propSet and
// reads no others.
func markDone(r systemgraph.Record) {
	r[propSet], r[propDone] = nil, []kg.Term{kg.Boolean(true)}
}

// configOf reads a configuration; nil if another store sealed it.
func (s *Service) configOf(task tasks.TaskID, r systemgraph.Record) *Config {
	c := &Config{Task: task, ID: r.Text(propKey), Form: r.Text(propForm)}
	for property, text := range c.sealedFields() {
		plain, err := s.store.Unseal(r.Text(property), c.sealContext(property))
		if err != nil {
			return nil
		}
		*text = string(plain)
	}
	return c
}

// formatPosition formats a position in the store's own log.
func formatPosition(p kg.Position) string {
	return strconv.FormatUint(uint64(p.Revision), 10) + "." + strconv.FormatUint(uint64(p.Index), 10)
}

func parsePosition(text string) (p kg.Position, ok bool) {
	revision, index, _ := strings.Cut(text, ".")
	r, errR := strconv.ParseUint(revision, 10, 64)
	i, errI := strconv.ParseUint(index, 10, 32)
	return kg.Position{Revision: kg.Revision(r), Index: uint32(i)}, errR == nil && errI == nil
}

// keyOf returns the task and the id of a configuration.
func keyOf(subject kg.Term) (tasks.TaskID, string) {
	task, escaped, _ := strings.Cut(strings.TrimPrefix(subject.Value(), idPrefix), "/")
	id, err := url.PathUnescape(escaped)
	if err != nil {
		return "", ""
	}
	return tasks.TaskID(task), id
}
