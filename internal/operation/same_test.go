package operation_test

import (
	"reflect"
	"testing"
	"time"

	"koine/internal/operation"
	"koine/kg"
)

// shownChange returns a change as a reader sees it. Two calls with a commit return equal ones.
func shownChange(c *kg.Commit) kg.Event {
	statement := func(object int64) kg.Statement {
		return kg.Statement{Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(object)}, Assertions: []kg.Assertion{{
			Source: "ann", Certainty: 0.5, HasCertainty: true, Time: time.UnixMilli(1).UTC(), Validity: kg.TimeSpan{From: time.UnixMilli(2).UTC()},
			Provenance: []byte(`{"a":1}`), Revision: 7,
		}}}
	}
	return kg.Event{Op: kg.Replace, Statement: statement(1), Previous: []kg.Statement{statement(2)}, Commit: c, Position: kg.Position{Revision: 7, Index: 1}}
}

// Readers share an encoding only if they see the same of a change. Each field counts, also one
// that is added to these types later: it has to be compared as well.
func TestSameChange(t *testing.T) {
	commit := &kg.Commit{Revision: 7}
	base := shownChange(commit)
	if same := shownChange(commit); !operation.SameChange(&base, &same) {
		t.Error("equal changes are not the same")
	}
	differ := func(what string, change func(e *kg.Event)) {
		other := shownChange(commit)
		change(&other)
		if operation.SameChange(&base, &other) || operation.SameChange(&other, &base) {
			t.Errorf("a change with another %s is the same", what)
		}
	}
	for _, part := range []struct {
		name string
		of   func(e *kg.Event) reflect.Value
	}{
		{"Event", func(e *kg.Event) reflect.Value { return reflect.ValueOf(e).Elem() }},
		{"Statement", func(e *kg.Event) reflect.Value { return reflect.ValueOf(&e.Statement).Elem() }},
		{"Assertion", func(e *kg.Event) reflect.Value { return reflect.ValueOf(&e.Statement.Assertions[0]).Elem() }},
		{"previous Assertion", func(e *kg.Event) reflect.Value { return reflect.ValueOf(&e.Previous[0].Assertions[0]).Elem() }},
	} {
		fields := part.of(&base).Type()
		for i := range fields.NumField() {
			differ(part.name+"."+fields.Field(i).Name, func(e *kg.Event) { setOther(t, part.of(e).Field(i)) })
		}
	}
	differ("quad", func(e *kg.Event) { e.Statement.Object = kg.Integer(3) })
	differ("previous quad", func(e *kg.Event) { e.Previous[0].Object = kg.Integer(3) })
	differ("second assertion", func(e *kg.Event) { e.Statement.Assertions = append(e.Statement.Assertions, kg.Assertion{}) })
	differ("copy of the commit", func(e *kg.Event) { e.Commit = &kg.Commit{Revision: 7} })
}

// setOther gives a field another value.
func setOther(t *testing.T, field reflect.Value) {
	t.Helper()
	switch value := field.Addr().Interface().(type) {
	case *time.Time:
		*value = value.Add(time.Millisecond)
	case *kg.TimeSpan:
		value.Until = time.UnixMilli(9).UTC()
	case *kg.Quad:
		value.Graph = kg.IRI("urn:g")
	case *kg.Statement:
		value.Subject = kg.IRI("urn:other")
	case *[2]kg.Term:
		value[1] = kg.IRI("urn:type")
	case *kg.Position:
		value.Index++
	default:
		switch field.Kind() {
		case reflect.String:
			field.SetString(field.String() + "x")
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Float64:
			field.SetFloat(field.Float() + 0.25)
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			field.SetInt(field.Int() + 1)
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			field.SetUint(field.Uint() + 1)
		case reflect.Slice:
			field.Set(reflect.Zero(field.Type()))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			t.Fatalf("no other value of a %s", field.Type())
		}
	}
}
