package confine

import "fmt"

// Wide says why a folder cannot be a workspace.
type Wide uint8

// The reasons.
const (
	IsSystem       Wide = iota // a folder of the system, or one that all users share
	HoldsHome                  // the home is in it
	IsSettings                 // programs keep their settings there
	StartsPrograms             // programs in it are started by themselves
	IsSecret                   // no box may see it
	InSecret                   // it lies in what no box may see
	HoldsSecret                // it holds what no box may see
)

var wideTexts = [...]string{
	IsSystem:       "%s cannot be a workspace",
	HoldsHome:      "the workspace %s holds the home %s",
	IsSettings:     "%s cannot be a workspace, since it holds the settings of programs",
	StartsPrograms: "%s cannot be a workspace, since programs in it are started by themselves",
	IsSecret:       "%s cannot be a workspace, since no box may see it",
	InSecret:       "the workspace %s lies in %s, which no box may see",
	HoldsSecret:    "the workspace %s holds %s, which no box may see",
}

// WideError is a workspace in which a box could write what it is to keep.
type WideError struct {
	Why       Wide
	Workspace string
	Other     string // the folder that is in the way; the workspace itself if that is it
}

// Error implements error.
func (e *WideError) Error() string {
	args := []any{e.Workspace, e.Other}
	if !e.Two() {
		args = args[:1]
	}
	return fmt.Sprintf(wideTexts[e.Why], args...) + ": start the box in the folder of a project"
}

// Two reports whether the text names two folders.
func (e *WideError) Two() bool {
	return e.Why == HoldsHome || e.Why == InSecret || e.Why == HoldsSecret
}
