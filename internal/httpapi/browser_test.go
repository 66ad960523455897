package httpapi_test

import (
	"encoding/json"
	"net/http"
	"sync"

	"vogt/internal/authoritytest"
)

type httpHandler = http.Handler

func jsonRaw(b []byte) json.RawMessage { return b }

// clickOf is the header of a click for a POST to path without a body.
func clickOf(p *authoritytest.Page, path string) string {
	return authoritytest.SignCall(p.Key, p.S.Pages, path, nil)
}

// runMany calls fn n times at once.
func runMany[T any](n int, fn func(int) T) []T {
	out := make([]T, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { out[i] = fn(i) })
	}
	all.Wait()
	return out
}

// subscription is a browser's push subscription; the point is the base point of
// P-256.
func subscription(endpoint string) map[string]any {
	return map[string]any{"endpoint": endpoint, "keys": map[string]string{
		"p256dh": "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
		"auth":   "AAECAwQFBgcICQoLDA0ODw",
	}}
}
