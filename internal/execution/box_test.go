package execution

import (
	"testing"

	"vogt/internal/execution/confine/plan"
	"vogt/internal/grant"
)

// The plan is the helper's, which imports nothing of requests: the word is in both.
func TestOfflineIsOneWord(t *testing.T) {
	if string(plan.Offline) != grant.Offline {
		t.Errorf("a box without a network is %q in a plan and %q in a request", plan.Offline, grant.Offline)
	}
}
