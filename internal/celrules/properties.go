package celrules

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"koine/kg"
)

// properties is the map from property to values of an entity. A property that a rule
// names is read by itself, so the number of other properties does not matter; a rule
// that uses the whole map reads all of it.
type properties struct {
	budget   *budget
	snapshot *kg.Snapshot
	subject  kg.Term
}

var _ traits.Mapper = (*properties)(nil)

// Find returns the values of a property.
func (p *properties) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	property, err := kg.ResourceFromID(string(name))
	if err != nil {
		return nil, false // not the name of a property
	}
	byName, err := p.readValues(property)
	if err != nil {
		return types.WrapErr(err), false
	}
	list, found := byName[string(name)]
	if !found {
		return nil, false
	}
	return types.DefaultTypeAdapter.NativeToValue(list), true
}

// Get is Find for a required property.
func (p *properties) Get(key ref.Val) ref.Val {
	v, found := p.Find(key)
	if !found && v == nil {
		return types.NewErr("no such key: %v", key)
	}
	return v
}

// Contains reports whether the entity has the property.
func (p *properties) Contains(key ref.Val) ref.Val {
	v, found := p.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// readValues reads the values of a property, or of all for the zero Term.
func (p *properties) readValues(property kg.Term) (map[string][]any, error) {
	byName, n := map[string][]any{}, 0
	for s, err := range p.snapshot.Match(kg.Pattern{Subject: p.subject, Predicate: property}) {
		if err != nil {
			return nil, err
		}
		if n++; n > MaxEntityValues {
			return nil, kg.Errorf(kg.CodeInvalid, "the entity has more than %d values", MaxEntityValues)
		}
		if err := p.budget.chargeRead(byteSize(s.Object, nil)); err != nil {
			return nil, err
		}
		name := textOf(s.Predicate)
		byName[name] = append(byName[name], valueOf(s.Object))
	}
	return byName, nil
}

// readAll returns the whole map, or the error of reading it.
func (p *properties) readAll() ref.Val {
	byName, err := p.readValues(kg.Term{})
	if err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(byName)
}

// Iterator iterates over the names of the properties. If they cannot be read, it yields
// the error.
func (p *properties) Iterator() traits.Iterator {
	if m, ok := p.readAll().(traits.Mapper); ok {
		return m.Iterator()
	}
	return types.NewDynamicList(types.DefaultTypeAdapter, []ref.Val{p.readAll()}).Iterator()
}

// Size counts the properties.
func (p *properties) Size() ref.Val {
	if m, ok := p.readAll().(traits.Mapper); ok {
		return m.Size()
	}
	return p.readAll()
}

// Equal compares the whole map.
func (p *properties) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*properties); ok {
		other = o.readAll()
	}
	all := p.readAll()
	if types.IsUnknownOrError(all) {
		return all
	}
	return all.Equal(other)
}

// ConvertToNative converts the whole map.
func (p *properties) ConvertToNative(to reflect.Type) (any, error) {
	return p.readAll().ConvertToNative(to)
}

// ConvertToType converts the whole map.
func (p *properties) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return types.MapType
	}
	return p.readAll().ConvertToType(to)
}

// Type is the type of maps.
func (p *properties) Type() ref.Type { return types.MapType }

// Value returns the whole map.
func (p *properties) Value() any { return p.readAll().Value() }
