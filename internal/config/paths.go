package config

import (
	"fmt"
	"path/filepath"
	"runtime"
)

// Paths are the folders that Vogt uses, all absolute. Nothing is created here.
type Paths struct {
	System string // what the administrator configures, for example /etc/vogt
	Config string // what the user configures
	Data   string // database, keys, logs; to be kept at mode 0700
	State  string // what may be lost: caches, last checkpoints, histories
}

// FindPaths determines the folders from environment variables, which getenv
// looks up as os.Getenv does.
//
// VOGT_HOME puts everything of the user under one folder. Otherwise the XDG
// Base Directory Specification (0.8) holds, on every system, with defaults that
// are usual there. A relative path is an error, where the specification would
// ignore it: whoever wrote it believes that it is in force.
func FindPaths(getenv func(string) string) (Paths, error) {
	return findPaths(runtime.GOOS, getenv)
}

func findPaths(goos string, getenv func(string) string) (Paths, error) {
	env := lookup{getenv: getenv}
	p := Paths{System: "/etc/vogt"}
	if goos == "windows" {
		p.System = env.dir("ProgramData", "Vogt")
	}
	if getenv("VOGT_HOME") != "" {
		p.Config = env.dir("VOGT_HOME", "config")
		p.Data = env.dir("VOGT_HOME", "data")
		p.State = env.dir("VOGT_HOME", "state")
		return p, env.err
	}
	home := defaultsFor(goos)
	p.Config = env.dirOr("XDG_CONFIG_HOME", home.config)
	p.Data = env.dirOr("XDG_DATA_HOME", home.data)
	p.State = env.dirOr("XDG_STATE_HOME", home.state)
	return p, env.err
}

// place is a folder below the one that a variable names.
type place struct{ variable, below string }

type defaults struct{ config, data, state place }

func defaultsFor(goos string) defaults {
	switch goos {
	case "darwin":
		const support = "Library/Application Support/vogt/"
		return defaults{place{"HOME", support + "config"}, place{"HOME", support + "data"}, place{"HOME", support + "state"}}
	case "windows":
		return defaults{place{"AppData", "Vogt/config"}, place{"LocalAppData", "Vogt/data"}, place{"LocalAppData", "Vogt/state"}}
	default:
		return defaults{place{"HOME", ".config/vogt"}, place{"HOME", ".local/share/vogt"}, place{"HOME", ".local/state/vogt"}}
	}
}

// lookup reads folders from variables and keeps the first error.
type lookup struct {
	getenv func(string) string
	err    error
}

// dirOr returns the folder vogt below the one that variable names or, if that
// is not set, the default.
func (l *lookup) dirOr(variable string, or place) string {
	if l.getenv(variable) != "" {
		return l.dir(variable, "vogt")
	}
	return l.dir(or.variable, or.below)
}

// dir returns the folder below the one that variable names.
func (l *lookup) dir(variable, below string) string {
	value := l.getenv(variable)
	switch {
	case filepath.IsAbs(value):
		return filepath.Join(value, filepath.FromSlash(below))
	case l.err != nil:
	case value == "":
		l.err = fmt.Errorf("config: %s is not set, so there is no place for Vogt's files; set it, or set VOGT_HOME to an absolute path", variable)
	default:
		l.err = fmt.Errorf("config: %s is %q, which is not an absolute path; give the whole path or unset it", variable, value)
	}
	return ""
}
