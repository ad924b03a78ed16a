package celrules

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// record is a type in the environment of rules: its fields. Its values are maps with
// these keys.
type record map[string]*cel.Type

// The names of the types, as in the errors of a rule.
const (
	typePatch     = "koine.Patch"
	typeStatement = "koine.Statement"
	typeAssertion = "koine.Assertion"
	typeCaller    = "koine.Caller"
	typeEntity    = "koine.Entity"
	typeQuery     = "koine.Query"
	typePlace     = "koine.Place"
	typeMessage   = "koine.Message"
)

var (
	stringList = cel.ListType(cel.StringType)
	anything   = cel.MapType(cel.StringType, cel.DynType)
)

// records are the types in the environment of rules.
var records = map[string]record{
	typePatch: {
		"op": cel.StringType, "subject": cel.StringType, "predicate": cel.StringType,
		"object": cel.DynType, "datatype": cel.StringType, "language": cel.StringType, "graph": cel.StringType,
		"certainty": cel.DoubleType, "hasCertainty": cel.BoolType, "source": cel.StringType, "provenance": anything,
		"withdrawn": stringList, "replaced": cel.BoolType,
	},
	typeStatement: {
		"subject": cel.StringType, "predicate": cel.StringType,
		"object": cel.DynType, "datatype": cel.StringType, "language": cel.StringType, "graph": cel.StringType,
		"certainty": cel.DoubleType, "sources": stringList, "assertions": cel.ListType(cel.ObjectType(typeAssertion)),
	},
	typeAssertion: {
		"source": cel.StringType, "certainty": cel.DoubleType, "hasCertainty": cel.BoolType,
		"recordedAt": cel.TimestampType, "provenance": anything,
	},
	typeCaller: {"id": cel.StringType, "roles": stringList, "actor": cel.StringType, "method": cel.StringType},
	typeEntity: {
		"iri": cel.StringType, "types": stringList,
		"properties": cel.MapType(cel.StringType, cel.ListType(cel.DynType)),
	},
	typeQuery: {"text": cel.StringType, "operationName": cel.StringType, "fields": stringList},
	typePlace: {"predicate": cel.StringType, "graph": cel.StringType},
	typeMessage: {
		"id": cel.StringType, "channel": cel.StringType, "channelName": cel.StringType, "kind": cel.StringType, "visibility": cel.StringType, "scope": cel.StringType,
		"author": cel.StringType, "parts": cel.ListType(anything), "text": cel.StringType, "metadata": anything,
		"artifactRefs": stringList, "size": cel.IntType, "facts": cel.IntType,
		"interaction": cel.StringType, "contentType": cel.StringType, "format": cel.StringType, "tags": stringList,
		"to": cel.StringType, "recipients": stringList, "private": cel.BoolType,
		"correlation": cel.StringType, "replyTo": cel.StringType, "retracts": cel.StringType, "thread": cel.StringType,
		"expires": cel.BoolType, "expiresAt": cel.TimestampType,
	},
}

// provider adds records to the types of the registry.
type provider struct{ types.Provider }

func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := records[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if r, ok := records[name]; ok {
		return slices.Sorted(maps.Keys(r)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns no accessor: CEL then looks the field up in the value,
// which is a map.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if r, ok := records[name]; ok {
		t, found := r[field]
		return &types.FieldType{Type: t}, found
	}
	return p.Provider.FindStructFieldType(name, field)
}

// common are the variables of all rules except those that hide.
var common = record{
	"caller": cel.ObjectType(typeCaller),
	"method": cel.StringType, "taskId": cel.StringType, "sessionId": cel.StringType, "metadata": anything,
}

// variables are the other variables of rules, by the kind of request.
var variables = map[On]record{
	OnUpdate: {
		"patch": cel.ObjectType(typePatch), "statement": cel.ObjectType(typeStatement),
		"before": cel.ListType(cel.ObjectType(typeStatement)), "entity": cel.ObjectType(typeEntity),
		"justification": cel.StringType, "message": cel.ObjectType(typeMessage),
	},
	OnMessage:   {"message": cel.ObjectType(typeMessage), "justification": cel.StringType},
	OnQuery:     {"query": cel.ObjectType(typeQuery)},
	OnSubscribe: {"query": cel.ObjectType(typeQuery)},
	OnRead:      {"caller": cel.ObjectType(typeCaller), "statement": cel.ObjectType(typePlace)},
}

// newEnvironment returns the CEL environment for a kind of request.
func newEnvironment(on On) (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(provider{registry}),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxExpressionBytes), cel.ParserRecursionLimit(maxExpressionDepth),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals()),
	}
	for name, t := range variables[on] {
		options = append(options, cel.Variable(name, t))
	}
	if on != OnRead {
		for name, t := range common {
			options = append(options, cel.Variable(name, t))
		}
	}
	return cel.NewEnv(options...)
}
