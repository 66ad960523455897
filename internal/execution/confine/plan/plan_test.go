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
		Read: []string{}, Write: []string{"/home/u/w"}, Hidden: []string{"/home/u/w/.env.\xff\xfe", "/home/u/w/.env.\uFFFD"}, Pinned: []string{}, Guarded: []string{"/home/u/w/a\n\"b\\"},
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

func TestCheck(t *testing.T) {
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"version":            func(p *Plan) { p.Version = 2 },
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
	f.Add([]byte(`{"Version":1}`))
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
