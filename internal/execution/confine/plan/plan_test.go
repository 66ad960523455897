package plan

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func good() *Plan {
	return &Plan{
		Version: Version, Level: Full, Root: Listed, Network: Offline, Sockets: NoSockets, Home: "/home/u", Dir: "/home/u/w", Program: "/bin/true", Argv: []string{"true"},
		Write: []string{"/home/u/w"}, Hidden: []string{"/home/u/w/.env.\xff\xfe", "/home/u/w/.env.\uFFFD"}, Guarded: []string{"/home/u/w/a\n\"b\\"},
		Links: []Link{{"/bin", "usr/bin"}}, Environ: []string{"A=\x80"},
	}
}

func TestEncode(t *testing.T) {
	want := good()
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(bytes.NewReader(data))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

// TestEncodeAll fills every field, so that none is forgotten.
func TestEncodeAll(t *testing.T) {
	want := good()
	fill(t, reflect.ValueOf(want).Elem())
	want.Version, want.Level, want.Root, want.Network, want.Sockets = Version, Full, HostView, Proxied, OwnSockets
	want.Ports, want.Addresses, want.Direct = []int{1, 65535}, map[int]string{1: "127.0.0.2", 65535: "127.0.0.3"}, &Direct{"198.18.0.0/15", []int{443}}
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(bytes.NewReader(data))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	for n := range len(data) {
		if _, err := Decode(bytes.NewReader(data[:n])); err == nil {
			t.Errorf("%d of %d bytes are a plan", n, len(data))
		}
	}
	data[0]++
	if _, err := Decode(bytes.NewReader(append(data, 0))); err == nil {
		t.Error("a plan with one byte more is one")
	}
}

// fill gives every field a value that is not its zero.
func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.SetMapIndex(key, value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString("/x\xff")
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint64:
		v.SetUint(1 << 63)
	case reflect.Uint8:
		v.SetUint(255)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("fields of kind %v are not filled", v.Kind())
	}
}

func TestHidden(t *testing.T) {
	for _, want := range [][]string{nil, {"/etc/a\xff", "/b"}} {
		data, err := EncodeHidden(want)
		if err != nil {
			t.Fatal(err)
		}
		// It follows a plan.
		first, err := good().Encode()
		if err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(append(first, data...))
		if _, err := Decode(r); err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeHidden(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := EncodeHidden([]string{"etc"}); err == nil {
		t.Error("no path is encoded")
	}
	if _, err := DecodeHidden(bytes.NewReader(nil)); err == nil {
		t.Error("nothing is taken for no paths")
	}
}

func TestCheck(t *testing.T) {
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"version":            func(p *Plan) { p.Version++ },
		"level":              func(p *Plan) { p.Level = "some" },
		"root":               func(p *Plan) { p.Root = "" },
		"network":            func(p *Plan) { p.Network = "" },
		"sockets":            func(p *Plan) { p.Sockets = "all" },
		"no program":         func(p *Plan) { p.Argv = nil },
		"no path":            func(p *Plan) { p.Program = "" },
		"relative":           func(p *Plan) { p.Write = []string{"w"} },
		"unclean":            func(p *Plan) { p.Read = []string{"/usr/../etc"} },
		"slash at the end":   func(p *Plan) { p.Hidden = []string{"/etc/"} },
		"NUL in a path":      func(p *Plan) { p.Guarded = []string{"/a\x00b"} },
		"NUL in an argument": func(p *Plan) { p.Argv = []string{"a\x00"} },
		"NUL in a variable":  func(p *Plan) { p.Environ = []string{"A=\x00"} },
		"home":               func(p *Plan) { p.Home = "" },
		"cache":              func(p *Plan) { p.Cache = "x" },
		"link":               func(p *Plan) { p.Links = []Link{{"bin", "usr/bin"}} },
		"link to nothing":    func(p *Plan) { p.Links = []Link{{"/bin", ""}} },
		"no ports":           func(p *Plan) { p.Network = Proxied },
		"port 0":             func(p *Plan) { p.Network, p.Ports = Proxied, []int{0} },
		"ports offline":      func(p *Plan) { p.Ports = []int{1} },
		"many ports":         func(p *Plan) { p.Network, p.Ports = Proxied, make([]int, MaxPorts+1) },
		"direct, offline":    func(p *Plan) { p.Direct = &Direct{"198.18.0.0/15", []int{443}} },
		"direct, no port":    func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"198.18.0.0/15", nil} },
		"direct, many ports": func(p *Plan) {
			p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"198.18.0.0/15", make([]int, MaxDirect+1)}
		},
		"direct, port 70000": func(p *Plan) {
			p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"198.18.0.0/15", []int{70000}}
		},
		"direct, no network":  func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"", []int{443}} },
		"direct, IPv6":        func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"fd00::/64", []int{443}} },
		"direct, an address":  func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"198.18.0.1/15", []int{443}} },
		"direct, everything":  func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"0.0.0.0/0", []int{443}} },
		"direct, on loopback": func(p *Plan) { p.Network, p.Ports, p.Direct = Proxied, []int{1}, &Direct{"127.0.0.0/8", []int{443}} },
		"reduced sockets":     func(p *Plan) { p.Level, p.Starter, p.Sockets = Reduced, 2, OwnSockets },
		"bwrap unseen":        func(p *Plan) { p.Level = Bwrap },
		"bwrap, a bad place":  func(p *Plan) { p.Level, p.Outer, p.Same = Bwrap, map[string]uint64{"pid": 1}, []Place{{Path: "x"}} },
		"reduced, by whom":    func(p *Plan) { p.Level = Reduced },
		"reduced, by init":    func(p *Plan) { p.Level, p.Starter = Reduced, 1 },
		"an address":          func(p *Plan) { p.Network, p.Ports, p.Addresses = Proxied, []int{1}, map[int]string{1: "10.0.0.1"} },
		"address of no port":  func(p *Plan) { p.Network, p.Ports, p.Addresses = Proxied, []int{1}, map[int]string{2: "127.0.0.1"} },
		"reduced proxy":       func(p *Plan) { p.Level, p.Starter, p.Network, p.Ports = Reduced, 2, Proxied, []int{1} },
	} {
		p := good()
		change(p)
		if err := p.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := p.Encode(); err == nil {
			t.Errorf("%s: it is encoded", name)
		}
	}
	large := good()
	large.Environ = []string{"A=" + strings.Repeat("x", MaxSize)}
	if _, err := large.Encode(); err == nil {
		t.Error("a plan of any size is encoded")
	}
}

// FuzzDecode checks that whatever is decoded is a plan that can be carried out,
// and comes back as it is.
func FuzzDecode(f *testing.F) {
	data, err := good().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("\x02\x00\x00\x00\x01\x04full"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			return // it has grown beyond the limit
		}
		q, err := Decode(bytes.NewReader(again))
		if err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%v\n%+v\n%+v", err, p, q)
		}
	})
}
