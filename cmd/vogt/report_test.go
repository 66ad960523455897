package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"vogt/internal/api"
	"vogt/internal/egress"
)

// What is kept for an authority that never answers is bounded, and what did not fit
// is counted in the next report.
func TestReportsAreBounded(t *testing.T) {
	r := &boxReport{folder: t.TempDir(), email: "bot@example.com", box: "0123456789abcdef", wake: make(chan struct{}, 1)}
	for range maxWaiting + 3 {
		r.add(egress.Record{Host: "a.example", Verdict: egress.Allowed})
	}
	if len(r.waiting) != maxWaiting || r.lost != 3 {
		t.Errorf("%d wait, %d are lost", len(r.waiting), r.lost)
	}
	r.keep()
	names, err := r.names()
	if err != nil || len(names) != maxWaiting/api.MaxConnections {
		t.Fatalf("%q, %v", names, err)
	}
	var first, second api.Connections
	for i, to := range []*api.Connections{&first, &second} {
		data, err := os.ReadFile(filepath.Join(r.folder, names[i]))
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if first.Serial != 1 || first.Lost != 3 || len(first.Records) != api.MaxConnections || second.Serial != 2 || second.Lost != 0 {
		t.Errorf("the reports are number %d with %d lost and number %d with %d lost", first.Serial, first.Lost, second.Serial, second.Lost)
	}
	for range maxReports {
		r.add(egress.Record{Host: "a.example", Verdict: egress.Allowed})
		r.keep()
	}
	if names, err := r.names(); err != nil || len(names) != maxReports || r.lost != maxWaiting/api.MaxConnections || r.serial != maxReports {
		t.Errorf("%d reports are kept, %d connections lost, the last number is %d; %v", len(names), r.lost, r.serial, err)
	}
}
