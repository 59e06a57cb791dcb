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

	"golang.org/x/term"

	"gbatch/internal/sim"
)

type simCmd struct {
	Trace       string    `help:"The log to replay; .gz is read directly." type:"existingfile" xor:"what" required:""`
	TraceFormat string    `enum:"swf,openb,philly,sacct," default:"" help:"swf (Parallel Workloads Archive), openb (Alibaba), philly (Microsoft) or sacct (what sacct -P prints)."`
	Order       string    `help:"File with the order in which the jobs of an openb or philly trace come." type:"existingfile"`
	From        time.Time `format:"2006-01-02" help:"philly: first day. Default: 2017-10-01."`
	Until       time.Time `format:"2006-01-02" help:"philly: day after the last. Default: 2017-12-01."`

	NodeList    string `help:"Replay on the nodes of this list of openb's." type:"existingfile"`
	Nodes       int    `help:"Replay on so many equal nodes..."`
	GPUsPerNode int    `name:"gpus-per-node" help:"... with so many GPUs each."`
	Procs       int    `help:"Replay on one pool of so many processors."`

	FromStore string   `help:"Replay a controller's own past: its directory, also while it runs, or a backup." placeholder:"PATH" type:"path" xor:"what" required:""`
	Config    string   `help:"With --from-store: the site's rules, a gctld.yaml. Default: that of the directory, if it is where gctld init or gctld dev writes it." type:"existingfile"`
	AddNodes  []string `help:"With --from-store: what if there were these too, as 2x8xh100." sep:"none"`
	Set       []string `help:"Change a rule, as half_life=14d or weights.small=500." sep:"none"`

	Policy    string  `enum:"fcfs,easy,easy-sjbf,conservative,gbatch" default:"gbatch" help:"fcfs, easy, easy-sjbf, conservative or gbatch."`
	Estimates string  `enum:"user,exact,predicted" default:"user" help:"Run times to reckon with: user (limits), exact or predicted."`
	Placement string  `enum:",random,bestfit,fgd,gbatch" default:"" help:"How a node is chosen: random, bestfit, fgd or gbatch. Default: gbatch for that policy, bestfit for the others."`
	Load      float64 `default:"1.3" help:"openb: GPUs requested, as a multiple of those there are."`
	Seed      uint64  `default:"1" help:"Seed of everything random."`
	Batch     bool    `help:"One round for all events of a second, not one after each."`

	JSON  bool   `help:"Print JSON."`
	SVG   string `name:"svg" help:"Write a picture of it to this file." type:"path"`
	Waits string `help:"Write what became of each job to this CSV file." type:"path"`
}

func (c *simCmd) Run() error {
	debug.SetGCPercent(400) // a replay is short, and memory is there
	began := time.Now()
	watch := sim.Watch{Nanos: func() int64 { return int64(time.Since(began)) }, Progress: progress()}
	var reports []sim.Report
	var curves []sim.Curve
	var err error
	if c.FromStore != "" {
		reports, curves, err = c.whatIf(watch)
	} else {
		reports, curves, err = c.replay(watch)
	}
	clearProgress()
	if err != nil {
		return err
	}
	if err := c.write(curves); err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if len(reports) == 1 {
			return e.Encode(reports[0])
		}
		return e.Encode(reports)
	}
	fmt.Print(sim.Text(reports...))
	return nil
}

// replay replays a trace.
func (c *simCmd) replay(watch sim.Watch) ([]sim.Report, []sim.Curve, error) {
	src := sim.Source{
		Format: c.TraceFormat, Span: sim.Span{From: c.From, Until: c.Until},
		Procs: c.Procs, Nodes: c.Nodes, PerNode: c.GPUsPerNode, Load: c.Load, Seed: c.Seed,
	}
	for _, f := range []struct {
		path string
		to   *io.Reader
	}{{c.Trace, &src.Trace}, {c.Order, &src.Order}, {c.NodeList, &src.List}} {
		if f.path == "" {
			continue
		}
		r, done, err := open(f.path)
		if err != nil {
			return nil, nil, err
		}
		defer done()
		*f.to = r
	}
	w, nodes, err := src.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Trace, err)
	}
	o := sim.Options{Policy: c.Policy, Estimates: c.Estimates, Placement: c.Placement, Seed: c.Seed, Batch: c.Batch, Set: c.Set}
	if c.TraceFormat == "sacct" {
		reports, curves, err := o.AgainstRecord(w, nodes, watch)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Trace, err)
		}
		return reports, curves, nil
	}
	cfg, res, err := o.Replay(w, nodes, watch)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Trace, err)
	}
	rep := sim.NewReport(cfg, res)
	rep.Policy, rep.Seed, rep.Notes = o.Name(), c.Seed, w.Notes
	return []sim.Report{rep}, []sim.Curve{{Name: o.Name(), Config: cfg, Result: res}}, nil
}

// write writes the files that were asked for; of several replays, the last.
func (c *simCmd) write(curves []sim.Curve) error {
	if c.SVG != "" {
		if err := os.WriteFile(c.SVG, []byte(sim.SVG(curves...)), 0o644); err != nil {
			return err
		}
	}
	if c.Waits == "" {
		return nil
	}
	f, err := os.Create(c.Waits)
	if err != nil {
		return err
	}
	last := curves[len(curves)-1]
	return errors.Join(sim.WriteWaits(f, last.Config, last.Result), f.Close())
}

// progress draws a bar, where standard error is a terminal.
func progress() func(done, all int) {
	if !terminal() {
		return nil
	}
	return func(done, all int) {
		const width = 40
		n := done * width / max(all, 1)
		fmt.Fprintf(os.Stderr, "\r[%s%s] %d of %d jobs", strings.Repeat("=", n), strings.Repeat(" ", width-n), done, all)
	}
}

func clearProgress() {
	if terminal() {
		fmt.Fprint(os.Stderr, "\r\033[K")
	}
}

func terminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

// whatIf replays a controller's own past as it was, under the same rules, and
// with what is to be changed.
func (c *simCmd) whatIf(watch sim.Watch) ([]sim.Report, []sim.Curve, error) {
	p := past{path: c.FromStore, config: c.Config}
	if err := p.find(); err != nil {
		return nil, nil, err
	}
	var records sim.History
	if err := p.read(records.Take); err != nil {
		return nil, nil, err
	}
	fmt.Fprintln(os.Stderr, p.whose())
	w, nodes := records.Workload()
	rules, err := p.site.Rules()
	if err != nil {
		return nil, nil, err
	}
	return sim.WhatIf(sim.Change{Workload: w, Nodes: nodes, Rules: rules, Add: c.AddNodes, Set: c.Set, Watch: watch})
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
