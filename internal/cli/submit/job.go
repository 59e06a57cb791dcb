package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// source is where a job comes from: a file, flags that win over it, or flags
// alone.
type source struct {
	file      string             // "-": standard input
	data      []byte             // what the file says, if it was read; nil: it was not
	wrap      string             // in place of the file: a shell command, which is a script
	format    importer.Format    // empty: detected
	with      []string           // files beside it
	overrides importer.Overrides // in place of the file's
	alone     bool               // the flags are the whole job
	again     string             // in place of the file: a job that was submitted before
	nvct      *nvct.Flags        // of a task of NVIDIA Cloud Tasks, with file unless it is empty
}

// ready reads the job's file and applies the flags, or makes a job of the flags
// alone.
func (s *source) ready(ctx context.Context, a *cli.App, secrets map[string]string) (j ready, err error) {
	switch {
	case s.nvct != nil:
		return s.readNVCT(a)
	case s.alone:
		j.name = "gsubmit"
		j.sub, err = s.overrides.Quick()
	case s.again != "":
		j.name = "job " + s.again
		j.sub, err = before(ctx, a, s.again)
	default:
		var data []byte
		if j.name, data, err = s.text(a); err != nil {
			return j, err
		}
		return s.fromFile(s.surroundings(ctx, a, secrets), j.name, data)
	}
	if err == nil {
		err = s.amend(&j, s.surroundings(ctx, a, secrets))
	}
	return j, usage(j.name, err)
}

// stdin says whether the job's file is standard input.
func (s *source) stdin() bool { return s.file == "-" && !s.alone && s.wrap == "" && s.again == "" }

// before is what a job was submitted as.
func before(ctx context.Context, a *cli.App, id string) (job.Submission, error) {
	d, err := a.Client.Job(ctx, id, client.JobOptions{})
	if err != nil {
		return job.Submission{}, err
	}
	if d.Spec == nil {
		return job.Submission{}, exit.Usagef("job %s is not yours to submit again: its document is not shown to you", id)
	}
	doc, err := json.Marshal(d.Spec)
	if err != nil {
		return job.Submission{}, err
	}
	return job.Parse(doc)
}

// surroundings are what a job's file alone does not say.
func (s *source) surroundings(ctx context.Context, a *cli.App, secrets map[string]string) importer.Options {
	here := importer.Options{
		Format: s.format, Image: s.overrides.Image, Reservation: a.Reservation(ctx), Widest: a.Widest(ctx),
		Env: s.environment(a, secrets), Now: job.Instant(a.Now().UnixMilli()), Zone: time.Local,
	}
	here.Directory, here.Host = a.Place()
	switch {
	case s.wrap != "":
		here.FileName = "wrap"
	case s.file != "-":
		here.FileName, here.File = filepath.Base(s.file), s.file
	}
	return here
}

// fromFile makes a job of a file. A script takes arguments, and options as
// sbatch has them.
func (s *source) fromFile(here importer.Options, name string, data []byte) (j ready, err error) {
	if s.stdin() && s.overrides.Image != "" && len(bytes.TrimSpace(data)) == 0 {
		return j, exit.Usagef("standard input is empty, so there is no job file: for the image's own command, write -- at the end")
	}
	script := isScript(data, here.Format)
	if here.Args = s.overrides.Command; len(here.Args) > 0 && !script && !importer.TakesArguments(data, here.Format) {
		return j, exit.Usagef("there is a job file, %s, and a command behind --: only a script or a task of dstack takes arguments there", s.file)
	}
	if s.overrides.Command = nil; script {
		here.Line = s.overrides.ForScript()
	}
	j.name = name
	if here.With, err = s.beside(); err != nil {
		return j, err
	}
	if j.doc, j.sub, err = prepare(data, here); err == nil && s.overrides.Any() {
		err = s.amend(&j, here)
	}
	return j, usage(name, err)
}

// beside reads the files that go with the job's.
func (s *source) beside() (all [][]byte, err error) {
	for _, name := range s.with {
		f, err := os.Open(name)
		if err != nil {
			return nil, exit.Usagef("--with: %v", err)
		}
		b, err := io.ReadAll(io.LimitReader(f, document.MaxBytes+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, exit.Usagef("--with: %v", err)
		}
		all = append(all, b)
	}
	return all, nil
}

// amend applies the flags.
func (s *source) amend(j *ready, here importer.Options) (err error) {
	if j.sub, err = s.overrides.Apply(j.sub, here); err == nil {
		j.doc, err = j.sub.Document()
	}
	return err
}

func usage(name string, err error) error {
	if err == nil {
		return nil
	}
	return &exit.Error{Code: exit.Usage, Err: cli.FileError(name, err)}
}

// text is the job's file, or the script that a command is.
func (s *source) text(a *cli.App) (name string, data []byte, err error) {
	if s.wrap != "" {
		return "gsubmit", []byte("#!/bin/sh\n" + s.wrap + "\n"), nil
	}
	if s.data != nil {
		name = s.file
		if s.file == "-" {
			name = standardInput
		}
		return name, s.data, nil
	}
	return readJobFile(a, s.file)
}

// split gives each job of a file a source of its own. What cannot be read is told
// of later, with the problems of the other files.
func split(a *cli.App, all []*source) (list []*source) {
	for _, s := range all {
		var jobs [][]byte
		if s.nvct == nil && !s.alone && s.again == "" && s.wrap == "" {
			if _, data, err := s.text(a); err == nil {
				s.data = data // standard input cannot be read again
				jobs = importer.Split(data, s.format)
			}
		}
		if jobs == nil {
			list = append(list, s)
		}
		for _, one := range jobs {
			of := *s
			of.data = one
			list = append(list, &of)
		}
	}
	return list
}

// environment is where a file's variables without a value come from: what flags
// say of them, else the process.
func (s *source) environment(a *cli.App, secrets map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := secrets[name]; ok {
			return value, true
		}
		for _, text := range s.overrides.Env {
			if n, value, given := strings.Cut(text, "="); given && n == name {
				return value, true
			}
		}
		return a.Env(name)
	}
}

// isScript says whether a job file is a batch script.
func isScript(data []byte, format importer.Format) bool {
	if format == importer.Unknown {
		format, _ = importer.Detect(data) // what it is not is told by the reader
	}
	return format == importer.Slurm
}

const standardInput = "standard input"

// readJobFile reads a job file whole, up to one byte more than a document may
// have, which the parser then explains.
func readJobFile(a *cli.App, file string) (name string, data []byte, err error) {
	in := a.In
	name = standardInput
	switch {
	case file == "-" && a.Term.In:
		a.Say("reading a job file from the terminal; end it with Ctrl-D")
	case file != "-":
		name = file
		f, err := os.Open(file)
		if err != nil {
			return name, nil, exit.Usagef("read job file: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err = io.ReadAll(io.LimitReader(in, document.MaxBytes+1))
	if err != nil {
		return name, nil, exit.Usagef("read job file %s: %w", name, err)
	}
	return name, data, nil
}

// prepare checks a job file here, so that its author hears of all faults at
// once, and gives the document to send: the native one as it is, and of other
// formats its native form with the registry's credentials put back in.
func prepare(data []byte, o importer.Options) (json.RawMessage, job.Submission, error) {
	format := o.Format
	if format == importer.Unknown {
		var err error
		if format, err = importer.Detect(data); err != nil {
			return nil, job.Submission{}, err
		}
	}
	o.Format = format
	sub, err := importer.Parse(data, o)
	if err != nil {
		return nil, sub, err
	}
	if format == importer.GPULabV2 {
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), sub, nil
	}
	doc, err := sub.Document()
	if err != nil {
		return nil, sub, fmt.Errorf("encode the job: %w", err)
	}
	return doc, sub, nil
}
