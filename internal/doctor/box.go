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
	if x.Try == nil {
		return finding(name, NotInForce, "", "no box was tried")
	}
	v, err := x.Try(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding(name, NotInForce, "install vogt-confine beside vogt", "there is no vogt-confine, so that no command can be boxed: %v", err)
	case err != nil:
		return finding(name, Failed, "", "the box could not be tried: %v", err)
	case v.Refused != "":
		return finding(name, NotInForce, v.Remedy, "there can be no box here, and `vogt confine` refuses: %s", v.Refused)
	case len(v.Open) > 0:
		return finding(name, Failed, "do not rely on the box, and report this", "in a box, a program could %s", strings.Join(v.Open, ", "))
	case v.Report.Level != plan.Full:
		return finding(name, InPart, "", "there can be a reduced box only")
	}
	unshown := ""
	if len(v.Unshown) > 0 {
		unshown = "; not shown here, since it fails without a box as well: " + strings.Join(v.Unshown, ", ")
	}
	return inForce(name, "a box holds: %d of %d attempts that succeed without one failed in it (Landlock %d, filter %.12s…)%s",
		len(v.Held), len(v.Held), v.Report.Landlock, v.Report.Filter, unshown)
}
