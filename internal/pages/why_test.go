package pages

import (
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading"
)

// read reads an argument list in a project, as the authority does.
func read(t testing.TB, argv ...string) *reading.Reading {
	t.Helper()
	r, err := reading.New(catalog.New()).Argv(argv, "", reading.Place{Cwd: "/home/mara/shop"})
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestWhy reads commands as they are, and says why they have the level that
// their reading gives.
func TestWhy(t *testing.T) {
	for _, c := range []struct {
		argv  []string
		level detail.Risk
		want  string
	}{
		{[]string{"vogt", "grant", "approve", "x"}, detail.Critical, "decides"},
		{[]string{"sudo", "vogt", "grant", "approve", "x"}, detail.Critical, "decides"},
		{[]string{"sh", "-c", "rm -rf /srv/x; vogt grant approve x"}, detail.Critical, "decides"},
		{[]string{"sudo", "ls"}, detail.Critical, "rights"},
		{[]string{"sh", "-c", "ls; sudo rm -rf /srv/x"}, detail.Critical, "rights"},
		{[]string{"rm", "-rf", "/srv/x"}, detail.Critical, "deletes"},
		{[]string{"find", "/srv", "-name", "x", "-exec", "rm", "{}", "+"}, detail.Critical, "deletes"},
		{[]string{"cp", "disk.img", "/dev/sda"}, detail.Critical, "device"},
		{[]string{"sh", "-c", "cat disk.img > /dev/sda"}, detail.Critical, "device"},
		{[]string{"cp", "key", "/home/mara/.ssh/authorized_keys"}, detail.Critical, "keys"},
		{[]string{"sh", "-c", "cat key >> /home/mara/.ssh/authorized_keys"}, detail.Critical, "keys"},
		{[]string{"cat", "/home/mara/.ssh/id_ed25519"}, detail.High, "keys"},
		{[]string{"no-such-program-here", "x"}, detail.High, "opaque"},
		{[]string{"cp", "x", "/srv/x"}, detail.High, "outside"},
		{[]string{"cp", "x", ".git/hooks/pre-commit"}, detail.High, "steers"},
		{[]string{"cp", "x", "y"}, detail.Medium, "writes"},
		{[]string{"cat", "/srv/x"}, detail.Medium, "reads"},
		{[]string{"ls"}, detail.Low, ""},
	} {
		r := read(t, c.argv...)
		if r.Risk != c.level {
			t.Errorf("%q is read as %s, want %s", c.argv, r.Risk, c.level)
			continue
		}
		if got := why(r.Risk, false, r); got != c.want {
			t.Errorf("%q is %s because %q, want %q", c.argv, r.Risk, got, c.want)
		}
	}
}

// TestWhyOf is about readings that no single command here gives.
func TestWhyOf(t *testing.T) {
	call := func(risk detail.Risk, e detail.Effects) *reading.Reading {
		return &reading.Reading{Calls: []*reading.Call{{Program: "x", Risk: risk, Effects: e}}}
	}
	entry := &reading.Reading{Calls: []*reading.Call{{Program: "x", Risk: detail.Critical, Effects: detail.Writes, Use: catalog.Use{Risk: detail.Critical}}}}
	for _, c := range []struct {
		name     string
		level    detail.Risk
		crossing bool
		r        *reading.Reading
		want     string
	}{
		{"the catalog's word alone", detail.Critical, false, entry, "other"},
		{"running work is lost", detail.Critical, false, call(detail.Critical, detail.Destroys), "deletes"},
		{"secrets are shown", detail.Critical, false, call(detail.Critical, detail.Secrets), "keys"},
		{"another user, harmless by itself", detail.Critical, true, call(detail.Low, 0), "crossing"},
		{"another user, and higher rights", detail.Critical, true, call(detail.Critical, detail.Privileged), "crossing"},
		{"another user decides", detail.Critical, true, read(t, "vogt", "grant", "approve", "x"), "decides"},
		{"another user, unreadable", detail.Critical, true, nil, "crossing"},
		{"unreadable", detail.High, false, nil, "unread"},
		{"nobody rated it", detail.Unrated, false, call(detail.Low, 0), "other"},
		{"the catalog rated it higher once", detail.Critical, false, call(detail.High, detail.Contacts), "other"},
		{"the catalog rates it higher now", detail.Medium, false, call(detail.High, detail.Opaque|detail.Writes), "opaque"},
		{"content runs", detail.High, false, call(detail.High, detail.Executes|detail.Contacts), "executes"},
		{"a door opens", detail.High, false, call(detail.High, detail.Door), "door"},
		{"another machine", detail.High, false, call(detail.High, detail.Contacts|detail.Writes), "network"},
		{"settings are asked", detail.Medium, false, call(detail.Medium, detail.Unsettled), "settings"},
		{"nothing at all", detail.Medium, false, &reading.Reading{}, "other"},
	} {
		if got := why(c.level, c.crossing, c.r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWhysHaveWords: each reason is said in each language.
func TestWhysHaveWords(t *testing.T) {
	for tag, l := range catalogs(t) {
		for _, reason := range append(whys(), "unread") {
			if _, err := l.text("risk.why." + reason); err != nil {
				t.Errorf("%s: %v", tag, err)
			}
		}
	}
}
