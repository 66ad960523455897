package coverage

// Labels are what an agent has seen and done that changes what patterns cover,
// until a person, or a fresh box, ends them.
type Labels struct {
	Secret  bool // it may have seen credentials
	Foreign bool // it has seen what strangers wrote: web, mail, tools of others
	// Wrote are the paths that it wrote, or WroteAll. Content patterns cover none of them;
	// everything else that executes is covered in boxes only, where it does not
	// matter.
	Wrote []string
}

// WroteAll stands for more paths than are remembered.
const WroteAll = "*"

// network says why no pattern covers what leaves the machine, if none does.
func (l Labels) network() string {
	switch {
	case l.Secret:
		return "the agent may have seen credentials, so what leaves the machine is asked until you end its label (vogt agent labels)"
	case l.Foreign:
		return "the agent has read what strangers wrote, so what leaves the machine is asked until you end its label (vogt agent labels)"
	}
	return ""
}
