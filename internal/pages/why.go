package pages

import (
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/reading"
)

// whys are the reasons for a level of risk, weightiest first: keys of the
// catalog, after "risk.why.".
func whys() []string {
	return []string{
		"decides", "crossing", "rights", "device", "deletes", "keys", // critical
		"opaque", "executes", "steers", "network", "door", "outside", // high
		"writes", "settings", "reads", // medium
		"other",
	}
}

// why names what gives a request its level: the weightiest reason among the
// calls that reach it. Crossing tells that the request would run as another
// user. R is nil where nothing could be read. A low level needs no reason.
func why(level detail.Risk, crossing bool, r *reading.Reading) string {
	var found []string
	if crossing {
		found = append(found, "crossing")
	}
	switch {
	case level == detail.Low:
		return ""
	case r == nil && !crossing:
		return "unread"
	case r != nil:
		for _, c := range r.Calls {
			if c.Risk >= level {
				found = append(found, whyCall(c))
			}
		}
	}
	for _, reason := range whys() {
		if slices.Contains(found, reason) {
			return reason
		}
	}
	// No call explains it: the catalog has changed since it was rated.
	return "other"
}

// whyCall names what gives a call its risk. It follows the floors that reading
// gives by effects and paths; what no floor explains, the catalog's entry says
// of the program.
func whyCall(c *reading.Call) string {
	e := c.Effects
	entry := c.Use.Risk >= c.Risk
	switch c.Risk {
	case detail.Critical:
		switch {
		case c.Detail().Operation == reading.DecideOperation:
			return "decides"
		case e.Has(detail.Privileged):
			return "rights"
		case slices.ContainsFunc(c.Paths.Writes, device):
			return "device"
		case len(c.Paths.Deletes) > 0 || e.Has(detail.Destroys):
			return "deletes"
		case e.Has(detail.Secrets) || !entry && e.Has(detail.Writes):
			return "keys"
		}
	case detail.High:
		switch {
		case e.Has(detail.Opaque):
			return "opaque"
		case e.Has(detail.Executes):
			return "executes"
		case e.Has(detail.Secrets):
			return "keys"
		case e.Has(detail.Destroys):
			return "deletes"
		case len(c.Paths.Sinks) > 0:
			return "steers"
		case e.Has(detail.Contacts):
			return "network"
		case e.Has(detail.Door):
			return "door"
		case !entry && e.Has(detail.Writes):
			return "outside"
		}
	case detail.Medium:
		switch {
		case e.Has(detail.Writes):
			return "writes"
		case e.Has(detail.Unsettled):
			return "settings"
		case !entry && len(c.Paths.Reads) > 0:
			return "reads"
		}
	}
	return "other"
}

// device reports whether a path that is written is that of a device. Reading
// leaves out those that keep nothing, such as /dev/null.
func device(path string) bool { return strings.HasPrefix(path, "/dev/") }
