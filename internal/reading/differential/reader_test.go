package differential

import (
	"slices"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading"
)

// readVogt reads as vogt does.
func readVogt() reader {
	rd := reading.New(catalog.New())
	return func(line, cwd string) claim {
		r := rd.Text(line, reading.Place{Cwd: cwd, Home: homeDir})
		return claim{
			ParseOK: r.ParseOK, Programs: r.Programs(),
			ReadOnly: r.Effects.ReadOnly(), Inert: r.Effects.Inert(), Network: r.Effects.Has(detail.Contacts),
			Writes: r.Effects.Has(detail.Writes), Destructive: r.Effects.Has(detail.Destroys), Privilege: r.Effects.Has(detail.Privileged),
			Executes: r.Effects.Has(detail.Executes), Opaque: r.Effects.Has(detail.Opaque),
			Reading: r.Paths.Reads,
			Writing: slices.Concat(r.Paths.Writes, r.Paths.Deletes, r.Paths.Sinks), Deleting: r.Paths.Deletes, Sinks: r.Paths.Sinks,
			More: r.Paths.Unknown,
		}
	}
}
