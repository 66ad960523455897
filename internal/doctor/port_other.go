//go:build !linux

package doctor

import "context"

func (x *exam) port(context.Context) Check {
	return finding("port", InPart, "", "this system does not tell here who listens on a port")
}
