package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"gbatch/internal/sim"
)

type simCmd struct {
	Trace        string  `help:"The log to replay; .gz is read directly." type:"existingfile"`
	TraceFormat  string  `enum:"swf,openb,philly," default:"" help:"swf, openb or philly."`
	Order        string  `help:"openb: file with the order in which the pods come." type:"existingfile"`
	NodeList     string  `help:"openb's list of nodes." type:"existingfile"`
	Nodes        int     `help:"Replay on so many equal nodes..."`
	GPUsPerNode  int     `name:"gpus-per-node" help:"... with so many GPUs each."`
	Procs        int     `help:"Replay on one pool of so many processors."`
	Policy       string  `enum:"fcfs,easy,easy-sjbf,conservative,gbatch" default:"gbatch" help:"fcfs, easy, easy-sjbf, conservative or gbatch."`
	Estimates    string  `enum:"user,exact,predicted" default:"user" help:"Run times that the plan reckons with."`
	Placement    string  `enum:"random,bestfit,fgd,gbatch" default:"gbatch" help:"How a node is chosen."`
	Reservations int     `help:"x"`
	Batch        bool    `help:"One round for all events of a moment instead of one after each event."`
	Seed         uint64  `default:"1" help:"Seed of everything random."`
	Load         float64 `default:"1.3" help:"openb: requested GPUs as a multiple of those there are."`
	JSON         bool    `help:"Print JSON."`
	Waits        string  `help:"Write what became of each job to this CSV file." type:"path"`
}

func (c *simCmd) Run() error {
	debug.SetGCPercent(400) // a replay is short, and memory is there
	src := sim.Source{Format: c.TraceFormat, Procs: c.Procs, Nodes: c.Nodes, PerNode: c.GPUsPerNode, Load: c.Load, Seed: c.Seed}
	for _, f := range []struct {
		path string
		to   *io.Reader
	}{{c.Trace, &src.Trace}, {c.Order, &src.Order}, {c.NodeList, &src.List}} {
		if f.path == "" {
			continue
		}
		r, done, err := open(f.path)
		if err != nil {
			return err
		}
		defer done()
		*f.to = r
	}
	w, nodes, err := src.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	began := time.Now()
	o := sim.Options{Policy: c.Policy, Estimates: c.Estimates, Placement: c.Placement, Seed: c.Seed, Batch: c.Batch, Reservations: c.Reservations}
	cfg, res, err := o.Replay(w, nodes, sim.Watch{Nanos: func() int64 { return int64(time.Since(began)) }})
	if err != nil {
		return err
	}
	if c.Waits != "" {
		f, err := os.Create(c.Waits)
		if err != nil {
			return err
		}
		if err := errors.Join(sim.WriteWaits(f, cfg, res), f.Close()); err != nil {
			return err
		}
	}
	rep := sim.NewReport(cfg, res)
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(rep)
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
