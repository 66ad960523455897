package execution

// Kind tells why a command cannot run. The zero value is the general refusal.
type Kind uint8

// The kinds.
const (
	Unexecutable  Kind = iota // the system refuses it
	Empty                     // no program is named
	TooLong                   // more than MaxArgv bytes
	BadBytes                  // an argument holds a NUL byte or is not UTF-8
	NotFound                  // no such program
	RelativePath              // PATH finds it in a folder that is not absolute
	IsFolder                  // the name is that of a folder
	Forbidden                 // the file may not be executed
	Architecture              // built for another machine
	NoProgram                 // neither a program nor a script with a #! line
	BadScript                 // a #! line that names no absolute interpreter
	NoInterpreter             // the interpreter does not exist
	NoFolder                  // the working directory does not exist
	Changed                   // a file is not what it was when it was bound
	Reparsed                  // another program would read the arguments again
	Unresolved                // its #! line has env(1) start what cannot be known
	Unboxed                   // the box that it is to run in cannot be had
	Swapped                   // another file was executed than the one that was bound
	Unseen                    // it, or what runs it, is not shown in the box
)

// Error is a command that cannot be bound or was not started.
type Error struct {
	Kind Kind
	Path string // file, folder or argument that is the cause; may be empty
	Err  error  // cause from the system; may be nil
}

var kindTexts = [...]string{
	Unexecutable:  "cannot be executed",
	Empty:         "no program is named",
	TooLong:       "the argument list is longer than 1 MiB",
	BadBytes:      "an argument holds a NUL byte or is not valid UTF-8",
	NotFound:      "no such program",
	RelativePath:  "PATH finds it through an entry that is not an absolute folder",
	IsFolder:      "is a folder",
	Forbidden:     "is not executable",
	Architecture:  "is built for another kind of machine",
	NoProgram:     "is neither a program nor a script with a #! line",
	BadScript:     "its #! line does not name an absolute path",
	NoInterpreter: "its interpreter or loader does not exist",
	NoFolder:      "the working directory does not exist any more",
	Changed:       "changed after it was looked at",
	Reparsed:      "cmd.exe would read its arguments again",
	Unresolved:    "its #! line has env(1) start a program that cannot be known; name the interpreter by its path there, or as in: #!/usr/bin/env -S PROGRAM ARGUMENTS",
	Unboxed:       "was not started, for want of its box",
	Swapped:       "another file was executed; it was killed before it did anything",
	Unseen:        "it, or what runs it, lies outside of what the box shows",
}

// Error implements error.
func (e *Error) Error() string {
	text := kindTexts[e.Kind]
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is what a shell would exit with (POSIX.1-2024, XCU 2.8.2): 127 for a
// program that was not found, 126 for one that could not be executed; 64, the
// usage error of sysexits.h, for what is not a command at all.
func (e *Error) ExitCode() int {
	switch e.Kind {
	case Empty, TooLong, BadBytes:
		return 64
	case NotFound:
		return 127
	}
	return 126
}
