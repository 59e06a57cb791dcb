package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// doc is a job document, short to write. Zero values are left out or mean 1.
type doc struct {
	name       string
	image      string // default: the shared one
	command    any
	env        map[string]string
	storage    []any
	ports      []any
	cpus, gb   int
	gpus       float64
	resources  map[string]any // further ones
	scheduling map[string]any
	gbatch     map[string]any
	owner      string
}

// sh is a command for the image's shell.
func sh(script string) []string { return []string{"sh", "-c", script} }

// idle is a program that ends when it is asked to.
var idle = sh("trap 'exit 1' TERM; sleep 1000 & wait")

func (d doc) json() string {
	if d.image == "" {
		d.image = image
	}
	if d.name == "" {
		d.name = "test"
	}
	resources := map[string]any{"gpus": d.gpus, "cpus": max(d.cpus, 1), "cpuMemoryGb": max(d.gb, 1)}
	for k, v := range d.resources {
		resources[k] = v
	}
	docker := map[string]any{"image": d.image}
	if d.command != nil {
		docker["command"] = d.command
	}
	if d.env != nil {
		docker["environment"] = d.env
	}
	if d.storage != nil {
		docker["storage"] = d.storage
	}
	if d.ports != nil {
		docker["portMappings"] = d.ports
	}
	request := map[string]any{"resources": resources, "docker": docker}
	if d.scheduling != nil {
		request["scheduling"] = d.scheduling
	}
	out := map[string]any{"name": d.name, "request": request}
	if d.gbatch != nil {
		out["gbatch"] = d.gbatch
	}
	if d.owner != "" {
		out["owner"] = map[string]any{"projectUrn": d.owner}
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

var fileMu sync.Mutex // guards site.files

// write puts a job file into the site's directory.
func (s *site) write(content string) string {
	s.t.Helper()
	fileMu.Lock()
	s.files++
	path := filepath.Join(s.dir, fmt.Sprintf("job%d.json", s.files))
	fileMu.Unlock()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// submit submits a job that has to be accepted and returns its number.
func (s *site) submit(d doc) string {
	s.t.Helper()
	return strings.TrimSpace(s.must("gsubmit", s.write(d.json())))
}

// job is all that the controller knows of a job.
func (s *site) job(id string) *api.JobDetail {
	s.t.Helper()
	d, err := s.api.Job(s.t.Context(), id, client.JobOptions{})
	if err != nil {
		s.t.Fatalf("look at job %s: %v", id, err)
	}
	return d
}

// wait waits for a job's end.
func (s *site) wait(id string) *api.JobDetail {
	s.t.Helper()
	return s.waitState(id, "it has ended", job.State.Final)
}

// waitRunning waits until a job's program runs.
func (s *site) waitRunning(id string) *api.JobDetail {
	s.t.Helper()
	return s.waitState(id, "it runs", func(st job.State) bool { return st == job.Running })
}

func (s *site) waitState(id, what string, ok func(job.State) bool) *api.JobDetail {
	s.t.Helper()
	var last *api.JobDetail
	var err error
	good := poll(patience, func() bool {
		var d *api.JobDetail
		if d, err = s.api.Job(s.t.Context(), id, client.JobOptions{}); err == nil {
			last = d
		}
		return err == nil && ok(d.State)
	})
	if !good {
		s.t.Fatalf("job %s: waited %v in vain until %s; last error %v, last seen:\n%s", id, patience, what, err, describe(last))
	}
	return last
}

// describe says what a reader of a failed test wants to know of a job.
func describe(d *api.JobDetail) string {
	if d == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %d %s", d.Number, d.State)
	if d.ExitCode != nil {
		fmt.Fprintf(&b, " exit code %d", *d.ExitCode)
	}
	fmt.Fprintf(&b, " %s %s %v\n", d.Reason, d.ReasonText, d.Nodes)
	for _, e := range d.Events {
		fmt.Fprintf(&b, "  %s %s %s\n", e.Time.Format(time.StampMilli), e.State, e.Message)
	}
	return b.String()
}

// ended is the part of a job's end that tests compare.
type ended struct {
	State  job.State
	Reason job.Reason
	Code   int // -1: none
}

func endOf(d *api.JobDetail) ended {
	e := ended{d.State, job.Reason(d.Reason), -1}
	if d.ExitCode != nil {
		e.Code = *d.ExitCode
	}
	return e
}

var finished = ended{job.Finished, job.None, 0}
