package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gbatch/internal/sim"
)

type simCmd struct {
	Trace       string  `help:"The log to replay; .gz is read directly." type:"existingfile"`
	TraceFormat string  `enum:"swf,openb,philly," default:"" help:"swf, openb or philly."`
	Policy      string  `enum:"fcfs,easy,easy-sjbf,conservative,gbatch" default:"gbatch" help:"fcfs, easy, easy-sjbf, conservative or gbatch."`
	Estimates   string  `enum:"user,exact,predicted" default:"user" help:"Run times that the plan reckons with."`
	Placement   string  `enum:"random,bestfit,fgd,gbatch" default:"gbatch" help:"How a node is chosen."`
	Procs       int     `help:"One pool of so many processors."`
	Batch       bool    `help:"One round for all events of a moment instead of one after each event."`
	Seed        uint64  `default:"1" help:"Seed of everything random."`
	Load        float64 `default:"1.3" help:"openb: requested GPUs as a multiple of those there are."`
	JSON        bool    `help:"Print JSON."`
}

func (c *simCmd) Run() error {
	r, done, err := open(c.Trace)
	if err != nil {
		return err
	}
	defer done()
	w, err := sim.ReadSWF(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	began := time.Now()
	o := sim.Options{Policy: c.Policy, Estimates: c.Estimates, Placement: c.Placement, Seed: c.Seed, Batch: c.Batch}
	cfg, res, err := o.Replay(w, sim.Pool(w.Procs), sim.Watch{Nanos: func() int64 { return int64(time.Since(began)) }})
	if err != nil {
		return err
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
		return nil, nil, errors.New("open trace: " + err.Error())
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
