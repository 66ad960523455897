package pages

import (
	"strconv"

	"vogt/internal/statement"
)

// factView is a line of "Where and as whom". Bound tells that the statement
// contains it; what it contains is still the word of the machine that asked.
type factView struct {
	Key   string // of the catalog, after "fact."
	Value string // "" when nothing is known
	Word  string // key of a catalog phrase that stands for the value
	Bound bool
}

// factsOf lists the surroundings of the action: from the statement where it
// has them, else from what the request claims, which an answer does not bind.
func factsOf(c Card) []factView {
	st, r := c.Statement, c.Grant.Request
	fact := func(key string, bound *string, claimed string) factView {
		if bound != nil {
			return factView{Key: key, Value: *bound, Bound: true}
		}
		return factView{Key: key, Value: claimed}
	}
	var program, folder, stdin, user, box string
	if r.Context != nil {
		program = r.Context.Executable
		folder = filePath(r.Context.Cwd)
		if stdinClaim := r.Context.Stdin; stdinClaim != nil {
			stdin = *stdinClaim
		}
		if r.Context.Confinement != nil {
			box = *r.Context.Confinement
		}
	}
	user = r.RunAs
	facts := []factView{
		fact("program", pathOf(st.Executable), program),
		fact("folder", pathOf(st.Cwd), folder),
		fact("user", st.RunAsName, user),
		fact("machine", nil, r.Host),
		fact("stdin", st.Stdin, stdin),
		fact("box", st.Confinement, box),
		{Key: "environment"},
		fact("owner", st.Owner, c.Grant.Owner),
		fact("audience", nil, r.Audience),
	}
	if r.Binding() != "" {
		facts = append(facts, factView{Key: "binding", Word: "fact.binding.client"})
	}
	for i := range facts {
		f := &facts[i]
		switch {
		case f.Key == "machine" && st.Host != nil:
			f.Bound = true
		case f.Key == "environment" && st.Environment != nil:
			f.Value, f.Word, f.Bound = strconv.Itoa(len(st.Environment)), "fact.environment.n", true
		case f.Key == "user" && f.Value == "":
			f.Word = "fact.user.own"
		}
	}
	return facts
}

// Said reports whether there is anything to show besides "not bound".
func (f factView) Said() bool { return f.Bound || f.Value != "" || f.Word != "" }

// Unsaid lists the facts that nobody told and no answer binds.
func (c *cardView) Unsaid() (out []factView) {
	for _, f := range c.Facts {
		if !f.Said() {
			out = append(out, f)
		}
	}
	return out
}

func pathOf(f *statement.File) *string {
	if f == nil {
		return nil
	}
	return f.Path
}

func filePath(f *statement.File) string {
	if p := pathOf(f); p != nil {
		return *p
	}
	return ""
}
