package sealed

import (
	"encoding/json"
	"fmt"
)

// ManifestName is the name of the manifest in a directory.
const ManifestName = "manifest"

// Manifest names the files of an index, and the place in the log that they stand for.
type Manifest struct {
	// Version changes with the meaning of the files.
	Version int    `json:"version"`
	Place   string `json:"place"`
	Files   []File `json:"files"`
}

// File is a part of an index, with the file that tells which of its entries were removed
// since.
type File struct {
	Name    string `json:"name"`
	Removed string `json:"removed,omitempty"`
}

// Seal returns the content of the manifest's file.
func (m *Manifest) Seal() ([]byte, error) {
	text, err := json.Marshal(m)
	return Seal(text), err
}

// ParseManifest reads the content of a manifest's file. Another version is an error.
func ParseManifest(image []byte, version int) (m Manifest, err error) {
	content, err := Open(image)
	if err == nil {
		err = json.Unmarshal(content, &m)
	}
	if err == nil && m.Version != version {
		err = fmt.Errorf("version %d, and not %d", m.Version, version)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", ManifestName, err)
	}
	return m, err
}
