// Package importer reads job files of every format that people have: it tells
// the format from the content and turns the file into a job.Submission. It
// knows nothing of sites, limits or users, and is pure like package job.
//
// Each foreign system has a package of its own below this one; what they share
// is package foreign. GPULab's two formats are package job's.
package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/ccluster"
	"gbatch/internal/job/importer/dstack"
	"gbatch/internal/job/importer/kubernetes"
	"gbatch/internal/job/importer/nvct"
	"gbatch/internal/job/importer/slurm"
	"gbatch/internal/job/importer/tao"
)

// Format is a kind of job file.
type Format string

// The formats, beside those of the other importers. All but Unknown can be detected, and are read by Parse.
const (
	Unknown  Format = ""
	GPULabV2 Format = "gpulab-v2" // the native form
	gpulabV1 Format = "gpulab-v1"
	Slurm    Format = slurm.Source
)

var formats = []Format{GPULabV2, gpulabV1, nvct.Source, ccluster.Source, tao.Source, dstack.Source, kubernetes.Source, Slurm}

// Options are what a file alone does not say. The zero value reads every file
// that needs nothing of its surroundings.
type Options struct {
	Format Format   // Unknown: detected from the content
	Args   []string // of a script, or of the run of a task of dstack
	Line   []string // options of sbatch, which win over a script's
	With   [][]byte // files beside a Kubernetes job, with what it refers to
	Image  string   // of formats whose files need not name one, as Slurm's; wins over one that is named

	// Of a script: its file's name and path as given, and the directory and machine
	// that it is submitted from. Empty: not known.
	FileName, File, Directory, Host string

	// Reservation finds one that a script, or an option of sbatch, names; nil: none.
	Reservation func(name string) (slurm.Reservation, error)
	Widest      func(partitions []string) int // the most cores of a node; see slurm.Options

	// Where the file was written: variables of its author, the time, and the
	// zone of dates without one (nil: UTC). A file that needs what is missing
	// here is refused with what to do.
	Env  func(name string) (value string, ok bool)
	Now  job.Instant
	Zone *time.Location
}

// Split gives a file of several jobs for each of them alone; nil: it is one job's,
// or has problems that [Parse] tells.
func Split(data []byte, format Format) [][]byte {
	if format == Unknown {
		format, _ = Detect(data)
	}
	if format == kubernetes.Source {
		return kubernetes.Split(data)
	}
	return nil
}

// Parse reads a job file. A document with problems gives document.Problems.
func Parse(data []byte, o Options) (job.Submission, error) {
	format := o.Format
	if format == Unknown {
		var err error
		if format, err = Detect(data); err != nil {
			return job.Submission{}, err
		}
	}
	if len(o.With) > 0 && format != kubernetes.Source {
		return job.Submission{}, fmt.Errorf("--with is for jobs of Kubernetes, and this is one of %s", format)
	}
	switch format {
	case GPULabV2:
		return job.Parse(data)
	case gpulabV1:
		return job.ParseV1(data)
	case nvct.Source:
		return nvct.Parse(data)
	case ccluster.Source:
		return ccluster.Parse(data)
	case tao.Source:
		return tao.Parse(data, o.Env)
	case dstack.Source:
		return dstack.Parse(data, dstack.Options{Image: o.Image, Env: o.Env, Args: o.Args})
	case kubernetes.Source:
		return kubernetes.Parse(data, o.With...)
	case Slurm:
		return slurm.Parse(data, o.slurm())
	}
	return job.Submission{}, fmt.Errorf("no format is called %q: use one of %s", format, join(formats))
}

// TakesArguments says whether a file's job can be given arguments: a script, and a task
// of dstack that names them.
func TakesArguments(data []byte, format Format) bool {
	if format == Unknown {
		format, _ = Detect(data)
	}
	return format == Slurm || format == dstack.Source && dstack.TakesArguments(data)
}

// slurm are the options of the reader of batch scripts.
func (o *Options) slurm() slurm.Options {
	return slurm.Options{Args: o.Args, Line: o.Line, Image: o.Image, FileName: o.FileName, File: o.File, Directory: o.Directory, Host: o.Host,
		Reservation: o.Reservation, Widest: o.Widest, Env: o.Env, Now: o.Now, Zone: o.Zone}
}

// Detect tells the format of a job file from its content. Anything that starts
// like JSON and is no format that we know is GPULabV2, so that the native
// reader explains what is wrong with it.
func Detect(data []byte) (Format, error) {
	text := strings.TrimSpace(strings.TrimPrefix(string(data[:min(len(data), document.MaxBytes)]), "\ufeff"))
	switch {
	case strings.HasPrefix(text, "{"):
		if f := detectKeys(topKeys(text)); f != Unknown {
			return f, nil
		}
		return GPULabV2, nil
	case strings.HasPrefix(text, "#!"):
		return Slurm, nil
	}
	if f := detectLines(text); f != Unknown {
		return f, nil
	}
	if text == "" || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "\"") {
		return GPULabV2, nil
	}
	return Unknown, document.Problems{{Message: "is in no format that is known here",
		Hint: "a job file is a JSON object with \"name\" and \"request\" (see docs/job-format.md)"}}
}

// detectKeys looks at the names of the top-level keys only.
func detectKeys(keys map[string]bool) Format {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !keys[name] })
	}
	letters := map[string]bool{}
	for k := range keys {
		letters[ccluster.Canonical(k)] = true
	}
	switch {
	case has("request"):
		return GPULabV2
	case has("jobDefinition"):
		return gpulabV1
	case has("gpuSpecification"):
		return nvct.Source
	case has("apiVersion", "kind"):
		return kubernetes.Source
	case has("backend_type"), has("image", "command") && (has("gpu_count") || has("num_gpu") || has("num_gpus") || has("inputs", "outputs")):
		return tao.Source
	case has("type", "commands"), has("type", "image"), has("type", "resources"):
		return dstack.Source
	case letters["image_url"] && (letters["hardware_instance_id"] || letters["completions"] || letters["backoff_limit"] || has("image_url")):
		return ccluster.Source
	}
	return Unknown
}

// topKeys returns the keys of a JSON object, as far as it can be read.
func topKeys(text string) map[string]bool {
	keys := map[string]bool{}
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return keys
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return keys
		}
		name, ok := key.(string)
		if !ok {
			return keys
		}
		keys[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return keys
		}
	}
	return keys
}

// detectLines looks for the YAML formats and the directives that Slurm reads.
func detectLines(text string) Format {
	keys := map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#SBATCH ") || strings.HasPrefix(line, "#PBS ") || strings.HasPrefix(line, "#BSUB ") {
			return Slurm
		}
		key, value, isKey := strings.Cut(strings.TrimRight(line, " \t\r\n"), ":")
		if !isKey || key == "" || strings.ContainsAny(key[:1], " \t#-") {
			continue
		}
		value, _, _ = strings.Cut(value, " #")
		if value = strings.Trim(strings.TrimSpace(value), `"'`); key == "type" && dstack.IsType(value) {
			return dstack.Source
		}
		keys[strings.Trim(key, `"'`)] = true
	}
	switch f := detectKeys(keys); f {
	case kubernetes.Source, ccluster.Source, tao.Source, nvct.Source, dstack.Source:
		return f
	}
	if !keys["apiVersion"] && !keys["kind"] && slices.ContainsFunc(dstack.Keys(), func(k string) bool { return keys[k] }) {
		return dstack.Source // a part of a task, whose reader says what it lacks
	}
	return Unknown
}

func join(formats []Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}
