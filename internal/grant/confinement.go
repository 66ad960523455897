package grant

import "strings"

// Confinement is the box of a request as Context.Confinement holds it.
type Confinement struct {
	Profile   string // its name
	Digest    string // SHA-256 of the profile, in hex
	Workspace string // the folder that the box is about
}

// Offline is the network mode of a box without a network.
const Offline = "none"

// String is the form in which a statement shows it: NAME sha256:HEX in FOLDER.
func (c Confinement) String() string {
	return c.Profile + " sha256:" + c.Digest + " in " + c.Workspace
}

// ParseConfinement reads that form.
func ParseConfinement(text string) (c Confinement, ok bool) {
	var rest string
	c.Profile, rest, _ = strings.Cut(text, " sha256:")
	c.Digest, c.Workspace, ok = strings.Cut(rest, " in ")
	return c, ok && c.Profile != "" && c.Workspace != ""
}
