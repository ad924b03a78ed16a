package observertest

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Dump renders a value and all that it refers to as sorted lines "path = value": unexported fields too, but
// neither empty values, nor what Ignored lists, nor locks, functions, channels and contexts.
func Dump(name string, v any) []string {
	d := dumper{open: map[unsafe.Pointer]bool{}}
	d.write(name, reflect.ValueOf(v))
	slices.Sort(d.lines)
	return d.lines
}

type dumper struct {
	lines []string
	open  map[unsafe.Pointer]bool // pointers on the way to the present value: cycles end there
}

func (d *dumper) write(at string, v reflect.Value) {
	if !v.IsValid() || d.isIgnored(v.Type()) {
		return
	}
	if v.Kind() == reflect.Struct {
		v = addressable(v)
		if d.writeKnown(at, v) {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || d.open[v.UnsafePointer()] {
			return
		}
		d.open[v.UnsafePointer()] = true
		d.write(at, v.Elem())
		delete(d.open, v.UnsafePointer())
	case reflect.Interface:
		d.write(at, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch name := typeName(v.Type()) + "." + f.Name; {
			case unordered[name]:
				for _, e := range readable(v.Field(i)).Seq2() {
					d.writeEntry(at+"."+f.Name, e, reflect.Value{})
				}
			case Ignored[name] == "":
				d.write(at+"."+f.Name, readable(v.Field(i)))
			}
		}
	case reflect.Map:
		for k, e := range v.Seq2() {
			d.writeEntry(at, k, e)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			d.writeLine(at, v, fmt.Sprintf("%x", v.Interface()))
			return
		}
		for i := range v.Len() {
			d.write(at+"["+strconv.Itoa(i)+"]", v.Index(i))
		}
	default:
		d.writeLine(at, v, fmt.Sprint(v.Interface()))
	}
}

// writeKnown writes values whose memory says less than their methods.
func (d *dumper) writeKnown(at string, v reflect.Value) bool {
	switch known := v.Addr().Interface().(type) {
	case *time.Time:
		if !known.IsZero() {
			d.lines = append(d.lines, at+" = "+known.UTC().Format(time.RFC3339Nano))
		}
		return true
	case *sync.Map:
		for k, e := range known.Range {
			d.writeEntry(at, reflect.ValueOf(k), reflect.ValueOf(e))
		}
		return true
	case fmt.Stringer:
		if v.Type().PkgPath() == "koine/kg/base" {
			d.writeLine(at, v, known.String())
			return true
		}
	}
	switch v.Type().PkgPath() {
	case "sync/atomic":
		d.write(at, v.Addr().MethodByName("Load").Call(nil)[0])
		return true
	case "github.com/tidwall/btree":
		name := "Items"
		switch {
		case strings.HasPrefix(v.Type().Name(), "Set["):
			name = "Keys"
		case strings.HasPrefix(v.Type().Name(), "Map["):
			name = "KeyValues"
		}
		lists := v.Addr().MethodByName(name).Call(nil)
		for i := range lists[0].Len() {
			d.writeEntry(at, lists[0].Index(i), lists[len(lists)-1].Index(i))
		}
		return true
	}
	return false
}

// writeEntry writes an entry of a map: an empty one too, because that it exists says something.
func (d *dumper) writeEntry(at string, k, e reflect.Value) {
	key := dumper{open: d.open}
	key.write("", k)
	slices.Sort(key.lines)
	at += "{" + strings.ReplaceAll(strings.Join(key.lines, ","), " = ", "=") + "}"
	before := len(d.lines)
	if d.write(at, e); len(d.lines) == before {
		d.lines = append(d.lines, at)
	}
}

func (d *dumper) writeLine(at string, v reflect.Value, text string) {
	if !v.IsZero() {
		d.lines = append(d.lines, at+" = "+text)
	}
}

func (d *dumper) isIgnored(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Uintptr:
		return true
	case reflect.Pointer:
		t = t.Elem()
	}
	return t.PkgPath() == "sync" && t.Name() != "Map" || t.PkgPath() == "context" || Ignored[typeName(t)] != ""
}

// typeName returns the last element of the type's package, and its name without type arguments.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return path.Base(t.PkgPath()) + "." + name
}

// addressable returns the value, or a copy whose fields can be read.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return readable(v)
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// readable returns a field as if it were exported.
func readable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
