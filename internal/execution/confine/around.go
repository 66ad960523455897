package confine

// Variable names the profile of the box in the environment of what runs in one. It
// informs, and permits nothing: whoever sets it elsewhere is told less.
const Variable = "VOGT_BOX"

// Around returns the profile of the box that this process is in, if it is in one:
// as far as the environment says so, and this process is confined as in a box.
func Around(getenv func(string) string) (profile string, in bool) {
	profile = getenv(Variable)
	return profile, profile != "" && surrounded()
}
