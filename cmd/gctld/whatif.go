package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/ctld/site"
	"gbatch/internal/sim"
	"gbatch/internal/store"
)

// whatIf replays a controller's own past as it was, under the same rules, and
// with what is to be changed.
func (c *simCmd) whatIf(watch sim.Watch) ([]sim.Report, []sim.Curve, error) {
	dir := c.FromStore
	for _, inner := range []string{"store", "ctld/store"} {
		if p := filepath.Join(c.FromStore, inner); isDir(p) {
			dir = p
		}
	}
	var past sim.History
	if err := store.ReadPast(store.Config{Dir: dir}, past.Take); err != nil {
		return nil, nil, err
	}
	w, nodes := past.Workload()
	conf := site.Default()
	if c.Config != "" {
		var err error
		if conf, err = site.Read(c.Config); err != nil {
			return nil, nil, err
		}
	}
	rules, err := conf.Rules()
	if err != nil {
		return nil, nil, err
	}
	return sim.WhatIf(sim.Change{Workload: w, Nodes: nodes, Rules: rules, Add: c.AddNodes, Set: c.Set, Watch: watch})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// open opens a file and unpacks it if need be.
func open(path string) (io.Reader, func(), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open trace: %w", err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return f, func() { f.Close() }, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return z, func() { z.Close(); f.Close() }, nil
}
