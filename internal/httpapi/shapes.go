package httpapi

import (
	"net/http"

	"vogt/internal/api"
)

// The registry of shapes is public: it says what the catalog knows, and nothing of
// anybody.

func (s *server) listShapes(c *call) error {
	return c.ok(http.StatusOK, s.shapes())
}

func getShape(c *call) error {
	out, err := c.s.Authority.Shape(c.PathValue("cli"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func resolveShape(c *call) error {
	var in api.Resolve
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.Resolve(in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}
