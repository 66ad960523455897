package flow

import (
	"vogt/internal/coverage"
	"vogt/internal/grant"
)

// JudgePolicy looks whether a policy approves what Judge would ask about. The first
// of the policies decides; what any of the others denies is asked all the same. why
// says what is missing.
func JudgePolicy(r Reading, policies []*grant.Policy, w coverage.Where) (approved bool, why string) {
	if len(policies) == 0 {
		return false, "there is no policy"
	}
	if !r.Coverable() {
		return false, "it is critical, which is asked every time"
	}
	calls := r.Covered()
	for _, other := range policies[1:] {
		if denied, why := coverage.Denied(other, calls); denied {
			return false, why
		}
	}
	return coverage.Approves(policies[0], calls, w)
}
