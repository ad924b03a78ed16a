package suggest_test

import (
	"koine/internal/suggest"
	"slices"
	"testing"
)

func TestIRIs(t *testing.T) {
	known := []string{
		"https://schema.org/name", "https://schema.org/actor", "https://schema.org/author", "https://schema.org/birthDate",
		"http://xmlns.com/foaf/0.1/name", "http://www.w3.org/2000/01/rdf-schema#label", "urn:x:size",
	}
	for _, row := range []struct {
		iri  string
		want []string
	}{
		{"https://schema.org/nmae", known[:1]},
		{"https://schema.org/birthdate", known[3:4]},
		{"http://schema.org/name", known[:1]},
		{"http://www.w3.org/2000/01/rdf-schema/label", known[5:6]},
		{"https://schema.org/actors", known[1:2]},
		{"https://schema.org/auctor", []string{known[1], known[2]}},
		{"urn:x:sise", known[6:]},
		{"https://schema.org/director", nil},
		{"https://example.org/other/place/name", nil},
		{"", nil},
	} {
		if got := suggest.IRIs(row.iri, known, 3); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.iri, got, row.want)
		}
	}
	if got := suggest.IRIs("https://schema.org/auctor", known, 1); len(got) != 1 {
		t.Errorf("got %v, want one", got)
	}
}

func TestNames(t *testing.T) {
	prefixes := []string{"ex", "lab", "foaf", "rdf", "rdfs", "schema", "address"}
	for _, row := range []struct {
		name string
		want []string
	}{
		{"lba", []string{"lab"}}, // neighbours changed places: one slip
		{"fofa", []string{"foaf"}},
		{"xe", []string{"ex"}},
		{"exx", []string{"ex"}},
		{"ipfs", nil}, // half of its letters are others
		{"rfd", []string{"rdf"}},
		{"rdsf", []string{"rdf", "rdfs"}},
		{"shcmea", []string{"schema"}},
		{"adres", []string{"address"}},
		{"label", nil},             // two letters more than lab has
		{"fxxf", []string{"foaf"}}, // two slips, but it begins alike
		{"doi", nil},
		{"e", nil},
		{"q", nil},
	} {
		if got := suggest.Names(row.name, prefixes, 3); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}
