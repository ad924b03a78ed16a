package knowledge

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/internal/query"
	"koine/kg"
)

// MarshalIRI writes the full IRI, or "_:label".
func MarshalIRI(t kg.Term) graphql.ContextMarshaler {
	return graphql.ContextWriterFunc(func(_ context.Context, w io.Writer) error {
		_, err := w.Write(scalar.AppendName(nil, t))
		return err
	})
}

// UnmarshalIRI parses an absolute IRI, a registered prefix:name or "_:label".
func UnmarshalIRI(ctx context.Context, v any) (kg.Term, error) {
	text, ok := v.(string)
	if !ok {
		return kg.Term{}, kg.Errorf(kg.CodeInvalid, "an IRI must be a string, not %s", scalar.JSONKind(v))
	}
	r := RunOf(ctx)
	t, err := query.ParseResource(r.Reader.Prefixes, text)
	return t, r.TellPrefixed(ctx, err)
}

// TellPrefixed adds the prefixed form, if one exists, to an error about a name
// without a prefix.
func (r *Run) TellPrefixed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return r.Reader.Names.SuggestPrefixed(ctx, r.request.Principal, err)
}
