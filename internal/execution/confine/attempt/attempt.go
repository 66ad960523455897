// Package attempt makes a few attempts that a box must hold, from within the
// process that calls it, and says which of them went through.
//
// It owns the attempts that `vogt doctor` makes on a user's machine: harmless
// ones, which succeed there without a box. It leaves out what they mean (trial)
// and the many others, which belong to tests (confinetest). The helper is linked
// with it.
package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Argument begins the arguments of the helper when it is to make the attempts.
// The scene follows, as JSON.
const Argument = "attempt"

// Scene is what the attempts aim at.
type Scene struct {
	Home      string // of the user, with a key in .ssh/id
	Workspace string // a repository
	Outside   string // a folder that is neither, with a file `file`
	Port      int    // somebody listens there, on 127.0.0.1 (TCP)
	Socket    string // path of a unix socket on which somebody listens
	Abstract  string // name of an abstract one
	PID       int    // a process of the same user
	Variable  string // name of a variable in the environment
	Secret    string // what is in the key, the file and the variable
}

// Result is how one attempt went.
type Result struct {
	Name   string `json:"name"`
	Open   bool   `json:"open"` // it went through
	Detail string `json:"detail"`
}

// errHeld is for what was not refused and brought nothing.
var errHeld = errors.New("nothing gained")

// one is an attempt. A nil error says that it went through.
type one struct {
	name string
	try  func(Scene) error
}

// Main makes all attempts of the scene and writes the results as JSON. It
// returns the exit code.
func Main(scene string, stdout, stderr io.Writer) int {
	var s Scene
	if err := json.Unmarshal([]byte(scene), &s); err != nil {
		fmt.Fprintf(stderr, "vogt-confine: the scene of the attempts: %v\n", err)
		return 64
	}
	var results []Result
	for _, a := range all() {
		err := a.try(s)
		r := Result{Name: a.name, Open: err == nil}
		if err != nil {
			r.Detail = err.Error()
		}
		results = append(results, r)
	}
	if err := json.NewEncoder(stdout).Encode(results); err != nil {
		return 1
	}
	return 0
}
