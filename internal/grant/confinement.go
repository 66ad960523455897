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

// proxied is how the network mode of a box begins that reaches named hosts only.
const proxied = "proxy: "

// ProxyMode is the network mode of a box that reaches these hosts through its
// proxy and no others: "proxy: a.example, b.example:8443".
func ProxyMode(hosts []string) string {
	return proxied + strings.Join(sorted(hosts), ", ")
}

// ProxyHosts reads that form. Other network modes have no hosts.
func ProxyHosts(mode string) (hosts []string) {
	if list, ok := strings.CutPrefix(mode, proxied); ok && list != "" {
		hosts = strings.Split(list, ", ")
	}
	return hosts
}

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
