package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/egress"
)

// Bounds of what is reported: how often, how much at a time, and how many reports
// are kept for an authority that is away. What does not fit is counted.
const (
	reportEvery = 2 * time.Second
	reportAtEnd = 5 * time.Second // how long the end of a box waits for the last report
	maxReports  = 500             // of all boxes of an agent
	maxWaiting  = 4 * api.MaxConnections
)

// boxReport tells the authority what the proxy of an agent's box sees. Each report is
// a file first, so that neither the end of the box nor an authority that is away
// loses it; what others have left is sent too, and a connection never waits for it.
type boxReport struct {
	e      *env
	folder string
	agent  client.File
	person client.File
	email  string
	box    string

	mu      sync.Mutex
	waiting []api.Connection
	lost    int64
	serial  int64
	wake    chan struct{}
}

// newBoxReport begins the reports of a box of the agent.
func (e *env) newBoxReport(name string) (*boxReport, error) {
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	agent, err := home(paths).Agent(name)
	if err != nil {
		return nil, err
	}
	login, err := agent.Load()
	if err != nil {
		return nil, err
	}
	box := make([]byte, 8)
	if _, err := rand.Read(box); err != nil {
		return nil, err
	}
	r := &boxReport{
		e: e, folder: filepath.Join(agentData(paths, name), "connections"), agent: agent, person: home(paths).Default(),
		email: login.Email, box: hex.EncodeToString(box), wake: make(chan struct{}, 1),
	}
	return r, os.MkdirAll(r.folder, 0o700)
}

// add takes a connection that has ended.
func (r *boxReport) add(c egress.Record) {
	reason := ""
	if c.Reason != egress.NoReason {
		reason = c.Reason.String()
	}
	address := ""
	if c.Address.IsValid() {
		address = c.Address.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxWaiting {
		r.lost++
		return
	}
	r.waiting = append(r.waiting, api.Connection{
		Time: c.Start.UnixMilli(), MS: c.Duration.Milliseconds(), Protocol: c.Protocol.String(), Host: c.Host, Port: c.Port,
		Address: address, SNI: c.SNI, Verdict: c.Verdict.String(), Reason: reason, Basis: c.Basis, Sent: c.Sent, Received: c.Received,
	})
	if len(r.waiting) >= api.MaxConnections {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// run reports until ctx ends, and then once more.
func (r *boxReport) run(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportAtEnd)
			defer cancel()
			r.keep()
			_ = r.send(last) // what is left is sent with the next box
			return
		case <-tick.C:
		case <-r.wake:
		}
		r.keep()
		_ = r.send(ctx) // it is tried again
	}
}

// keep writes what waits into files.
func (r *boxReport) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) > 0 {
		n := min(len(r.waiting), api.MaxConnections)
		part := r.waiting[:n]
		r.waiting = slices.Clone(r.waiting[n:])
		r.serial++
		report := api.Connections{Agent: r.email, Box: r.box, Serial: r.serial, Lost: r.lost, Records: part}
		if err := r.write(report); err != nil {
			r.serial--
			r.lost += int64(n)
			continue
		}
		r.lost = 0
	}
}

func (r *boxReport) write(report api.Connections) error {
	names, err := r.names()
	if err != nil {
		return err
	}
	if len(names) >= maxReports {
		return fmt.Errorf("%s holds %d reports that were never sent", r.folder, len(names))
	}
	data, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return config.WriteFile(filepath.Join(r.folder, fmt.Sprintf("%s.%012d.json", report.Box, report.Serial)), data, 0o600)
}

// names are the reports that were not sent, those of a box in their order.
func (r *boxReport) names() ([]string, error) {
	entries, err := os.ReadDir(r.folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		box, rest, _ := strings.Cut(entry.Name(), ".")
		if _, err := strconv.ParseInt(strings.TrimSuffix(rest, ".json"), 10, 64); err == nil && box != "" && strings.HasSuffix(rest, ".json") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// send sends what is kept, of all boxes of the agent, one process at a time.
func (r *boxReport) send(ctx context.Context) error {
	names, err := r.names()
	if err != nil || len(names) == 0 {
		return err
	}
	lock, err := config.AcquireLock(ctx, filepath.Join(r.folder, "send.lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	c, err := r.open()
	if err != nil {
		return err
	}
	defer c.Close()
	if names, err = r.names(); err != nil { // another process may have sent some
		return err
	}
	for _, name := range names {
		path := filepath.Join(r.folder, name)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var report api.Connections
		if err == nil {
			err = json.Unmarshal(data, &report)
		}
		if err == nil {
			err = c.ReportConnections(ctx, report)
		}
		if err != nil && !client.Hopeless(err) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// open speaks as the person who started the box, whose login the box does not have;
// where nobody is logged in at the agent's authority, as the agent.
func (r *boxReport) open() (*client.Client, error) {
	paths, err := r.e.paths()
	if err != nil {
		return nil, err
	}
	options := r.e.options(context.Background(), paths)
	options.Passphrase = nil // nobody is asked in the middle of something else
	agent, err := r.agent.Load()
	if err != nil {
		return nil, err
	}
	person, err := r.person.Load()
	if err == nil && !person.Agent() && person.Authority == agent.Authority {
		return client.Open(r.person, options)
	}
	return client.Open(r.agent, options)
}
