package httpapi

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLogNamesNoValues: what a call's address holds may be a secret, and the log of a
// failure names the route alone.
func TestLogNamesNoValues(t *testing.T) {
	var log bytes.Buffer
	s := &server{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /api/links/{token}", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errors.New("broken")) })
	mux.HandleFunc("DELETE /api/panics/{token}", func(w http.ResponseWriter, r *http.Request) {
		defer s.recover(w, r)
		panic("broken")
	})
	for _, path := range []string{"/api/links/very-secret", "/api/panics/very-secret"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("DELETE", path, nil))
		if w.Code != 500 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if got := log.String(); strings.Contains(got, "very-secret") || strings.Count(got, "{token}") != 2 {
		t.Errorf("the log says %s", got)
	}
}
