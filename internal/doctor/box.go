package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"vogt/internal/execution/confine/plan"
)

// box says what a box holds here, by trying to get out of one.
func (x *exam) box(ctx context.Context) Check {
	const name = "box"
	if x.Box != "" {
		return finding(name, InPart, "vogt doctor",
			"this is a box already, by what the environment says of the profile %s: there is none to be made in it, and what else stands here is what the box shows", x.Box)
	}
	if x.Try == nil {
		return finding(name, NotInForce, "", "no box was tried")
	}
	v, err := x.Try(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding(name, NotInForce, "install vogt-confine beside vogt", "there is no vogt-confine, so that no command can be boxed: %v", err)
	case err != nil:
		return finding(name, Failed, "", "the box could not be tried: %v", err)
	case v.Refused != "" && v.Reduced:
		return finding(name, InPart, v.Remedy, "there can be a reduced box only, without namespaces, and only where the profile says reduced = true: %s. It does not protect hooks and settings in the workspace. %s", v.Refused, limits(v.Group))
	case v.Refused != "":
		return finding(name, NotInForce, v.Remedy, "there can be no box here, and `vogt confine` refuses: %s", v.Refused)
	case len(v.Open) > 0:
		return finding(name, Failed, "do not rely on the box, and report this", "in a box, a program could %s", strings.Join(v.Open, ", "))
	case !v.Report.Level.Whole():
		return finding(name, InPart, "", "there can be a reduced box only")
	}
	unshown := ""
	if len(v.Unshown) > 0 {
		unshown = "; not shown here, since it fails without a box as well: " + strings.Join(v.Unshown, ", ")
	}
	how := ""
	if v.Report.Level == plan.Bwrap {
		how = " The system's bwrap makes its namespaces, since this user may not; it starts faster where vogt-confine may (docs/confinement.md)."
	}
	if len(v.Report.Lacks) > 0 {
		how += " It lacks " + strings.Join(v.Report.Lacks, " and ") + "."
	}
	return inForce(name, "a box holds, level %s: %d of %d attempts that succeed without one failed in it (Landlock %d, filter %.12s…)%s.%s %s",
		v.Report.Level, len(v.Held), len(v.Held), v.Report.Landlock, v.Report.Filter, unshown, how, limits(v.Group))
}

// limits says for whom the limits of a box hold.
func limits(group []string) string {
	if len(group) == 0 {
		return "Limits hold for each process, as this user can make no control group here (a systemd user session has one)."
	}
	return "A control group holds for the box as a whole: " + strings.Join(group, ", ") + "."
}
