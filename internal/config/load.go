package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Load reads the TOML file at path into a T. T is a struct whose fields all
// carry a `toml:"name"` tag.
//
// It is strict: an unknown key, a key in other letter case, a key given twice
// and a value of another type are errors that name file and line, and all of a
// file's are reported at once. A duration is a string with a unit ("90s"). Who
// may have written the file is checked as ReadTrusted does.
func Load[T any](path string) (T, error) {
	var v T
	err := loadOnto(path, &v)
	return v, err
}

// Layers is a value that several files determine, and which of them exist.
type Layers[T any] struct {
	Value T
	Files []string // those that were read, the weakest first
}

// LoadLayers reads NAME.toml in the system's folder and then in the user's onto
// base, and lets flags, which may be nil, have the last word. A later layer
// replaces single keys; lists are replaced whole. A file that does not exist is
// no error.
func LoadLayers[T any](base T, paths Paths, name string, flags func(*T)) (Layers[T], error) {
	layers := Layers[T]{Value: base}
	for _, dir := range []string{paths.System, paths.Config} {
		path := filepath.Join(dir, name+".toml")
		switch err := loadOnto(path, &layers.Value); {
		case err == nil:
			layers.Files = append(layers.Files, path)
		case !errors.Is(err, fs.ErrNotExist):
			return Layers[T]{}, err
		}
	}
	if flags != nil {
		flags(&layers.Value)
	}
	return layers, nil
}

func loadOnto(path string, v any) error {
	data, err := ReadTrusted(path)
	if err != nil {
		return err
	}
	return decode(path, data, v)
}

// decode reads data, the content of the file at path, onto the struct that v
// points to.
//
// The library would match keys in any letter case, report unknown keys without
// their lines and stop at the first wrong type. So it parses, and walking the
// tables is done here.
func decode(path string, data []byte, v any) error {
	table := make(map[string]toml.Primitive)
	meta, err := toml.Decode(string(data), &table)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return fmt.Errorf("config: %s:%d: %s", path, syntax.Position.Line, syntax.Message)
		}
		return fmt.Errorf("config: %s: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
	}
	d := decoder{path: path, meta: &meta}
	d.structure(table, reflect.ValueOf(v).Elem(), nil)
	return d.err()
}

// decoder walks one document and collects what is wrong with it.
type decoder struct {
	path     string
	meta     *toml.MetaData
	problems []problem
}

type problem struct {
	line int
	text string
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortFunc(d.problems, func(a, b problem) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.text, b.text)
	})
	lines := make([]string, len(d.problems))
	for i, p := range d.problems {
		lines[i] = fmt.Sprintf("config: %s:%d: %s", d.path, p.line, p.text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// structure reads table into the struct v, which has the key parent.
func (d *decoder) structure(table map[string]toml.Primitive, v reflect.Value, parent toml.Key) {
	for name, value := range table {
		key := append(slices.Clip(parent), name)
		if field, ok := fieldNamed(v, name); ok {
			d.value(value, field, key)
		} else {
			d.problem(value, fmt.Sprintf("unknown key %q%s", key, hint(v)))
		}
	}
}

// value reads one value into v. Tables and lists of them are walked, so that
// their keys are held to the same rules; everything else is the library's.
func (d *decoder) value(value toml.Primitive, v reflect.Value, key toml.Key) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		var text string
		if d.into(value, &text, key, `a duration such as "90s"`) {
			duration, err := time.ParseDuration(text)
			if err != nil {
				d.problem(value, fmt.Sprintf(`key %q: %q is not a duration such as "90s", "15m" or "48h"`, key, text))
			}
			v.SetInt(int64(duration))
		}
	case isText(v):
		d.into(value, v.Addr().Interface(), key, "text")
	case v.Kind() == reflect.Struct:
		var table map[string]toml.Primitive
		if d.into(value, &table, key, "a table") {
			d.structure(table, v, key)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var tables []toml.Primitive
		if d.into(value, &tables, key, "a list of tables") {
			list := reflect.MakeSlice(v.Type(), len(tables), len(tables))
			for i, table := range tables {
				d.value(table, list.Index(i), key)
			}
			v.Set(list)
		}
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct:
		var table map[string]toml.Primitive
		if d.into(value, &table, key, "a table of tables") {
			all := reflect.MakeMap(v.Type())
			for name, entry := range table {
				elem := reflect.New(v.Type().Elem()).Elem()
				d.value(entry, elem, append(slices.Clip(key), name))
				all.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), elem)
			}
			v.Set(all)
		}
	default:
		v.SetZero() // else the library would write into the lower layer's list
		d.into(value, v.Addr().Interface(), key, kindName(v))
	}
}

// into lets the library read value, and notes the problem if it is none of
// what.
func (d *decoder) into(value toml.Primitive, v any, key toml.Key, what string) bool {
	var err error
	if reflect.TypeOf(v).Elem().Kind() == reflect.Map {
		var raw any // the library takes any single value for an empty table
		if err = d.meta.PrimitiveDecode(value, &raw); err == nil {
			if _, ok := raw.(map[string]any); !ok {
				err = errors.New("no table")
			}
		}
	}
	if err == nil {
		err = d.meta.PrimitiveDecode(value, v)
	}
	if err == nil {
		return true
	}
	text := fmt.Sprintf("key %q must be %s", key, what)
	var parse toml.ParseError
	if errors.As(err, &parse) { // says more than the type: out of range, or a type's own words
		text = fmt.Sprintf("key %q: %s", key, parse.Message)
	}
	d.problem(value, text)
	return false
}

func (d *decoder) problem(at toml.Primitive, text string) {
	d.problems = append(d.problems, problem{line: d.line(at), text: text})
}

// line finds where a value stands: the library tells only in errors, so it is
// made to report one.
func (d *decoder) line(value toml.Primitive) int {
	var parse toml.ParseError
	if errors.As(d.meta.PrimitiveDecode(value, new(refuser)), &parse) {
		return parse.Position.Line
	}
	return 0
}

type refuser struct{}

func (*refuser) UnmarshalTOML(any) error { return errors.New("refused") }

// isText reports whether v reads itself from text.
func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error })
	return ok
}

// fieldNamed returns the field of the struct v with the tag name, in exactly
// these letters.
func fieldNamed(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("toml"); tag == name && tag != "" && tag != "-" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// hint lists the keys that the struct v has.
func hint(v reflect.Value) string {
	var names []string
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("toml"); tag != "" && tag != "-" {
			names = append(names, tag)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; known here: " + strings.Join(names, ", ")
}

func kindName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list of " + strings.TrimPrefix(kindName(reflect.New(v.Type().Elem()).Elem()), "a ") + "s"
	case reflect.Map:
		return "a table"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		if v.CanInt() || v.CanUint() {
			return "a whole number"
		}
		return "a value of another type"
	}
}

// LoadOnto reads the file at path onto base, under the rules of Load.
func LoadOnto[T any](base T, path string) (T, error) {
	err := loadOnto(path, &base)
	return base, err
}
