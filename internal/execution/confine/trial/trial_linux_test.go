package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// built is vogt-confine, as it is installed.
func built(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "vogt-confine")
	cmd := exec.Command("go", "build", "-o", name, "vogt/cmd/vogt-confine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

func TestRun(t *testing.T) {
	before, err := filepath.Glob(filepath.Join(os.TempDir(), "vogt-trial-*"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := Run(t.Context(), built(t))
	if err != nil {
		t.Fatal(err)
	}
	if v.Refused != "" {
		t.Fatalf("no box: %s (%s)", v.Refused, v.Remedy)
	}
	t.Logf("%+v", v)
	if len(v.Open) > 0 || len(v.Held) < 14 || v.Report.Level != "full" {
		t.Errorf("%+v", v)
	}
	after, err := filepath.Glob(filepath.Join(os.TempDir(), "vogt-trial-*"))
	if err != nil || len(after) != len(before) {
		t.Errorf("left behind: %v, %v", after, err)
	}
}

func TestNoHelper(t *testing.T) {
	if v, err := Run(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("a trial without a helper: %+v", v)
	}
}

func TestRemedy(t *testing.T) {
	for _, tt := range []struct{ file, value, want string }{
		{"kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"kernel/unprivileged_userns_clone", "1", "else"},
		{"user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
		{"user/max_user_namespaces", "100", "else"},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, tt.file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(tt.value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := remedy(dir, "else"); got != tt.want {
			t.Errorf("%s = %s: %q, want %q", tt.file, tt.value, got, tt.want)
		}
	}
}
