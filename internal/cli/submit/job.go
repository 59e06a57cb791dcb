package submit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// source is where a job comes from: a file, flags that win over it, or flags
// alone.
type source struct {
	file      string             // "-": standard input
	format    importer.Format    // empty: detected
	overrides importer.Overrides // in place of the file's; with a command: of a job without a file
	nvct      *nvct.Flags        // of a task of NVIDIA Cloud Tasks, with file unless it is empty
}

// read reads the job's file and applies the flags, or makes a job of the flags
// alone. The name is for problems.
func (s *source) read(a *cli.App, secrets map[string]string) (name string, doc json.RawMessage, sub job.Submission, err error) {
	here := importer.Options{
		Format: s.format, Image: s.overrides.Image,
		Env: s.environment(a, secrets), Now: job.Instant(a.Now().UnixMilli()), Zone: time.Local,
	}
	here.Directory, here.Host = a.Place()
	if s.file != "-" {
		here.FileName = filepath.Base(s.file)
	}
	switch {
	case s.nvct != nil:
		return s.readNVCT(a)
	case len(s.overrides.Command) > 0 && s.file == "-":
		name = "gsubmit"
		sub, err = s.overrides.Quick()
	default:
		var data []byte
		if name, data, err = readJobFile(a, s.file); err != nil {
			return name, nil, sub, err
		}
		if here.Args = s.overrides.Command; len(here.Args) > 0 && !takesArgs(data, here.Format) {
			return name, nil, sub, exit.Usagef("there is a job file, %s, and a command behind --: only a script takes arguments there", s.file)
		}
		s.overrides.Command = nil
		doc, sub, err = prepare(data, here)
	}
	if err == nil && s.overrides.Any() {
		if sub, err = s.overrides.Apply(sub, here); err == nil {
			doc, err = sub.Document()
		}
	}
	if err != nil {
		return name, nil, sub, &exit.Error{Code: exit.Usage, Err: cli.FileError(name, err)}
	}
	return name, doc, sub, nil
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

// takesArgs says whether a job file is a script, whose arguments may follow.
func takesArgs(data []byte, format importer.Format) bool {
	if format == importer.Unknown {
		format, _ = importer.Detect(data) // what it is not is told by the reader
	}
	return format == importer.Slurm
}

// readJobFile reads a job file whole, up to one byte more than a document may
// have, which the parser then explains.
func readJobFile(a *cli.App, file string) (name string, data []byte, err error) {
	in := a.In
	name = "standard input"
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
