package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// SubmitOptions are what gsubmit submits and what it does then.
type SubmitOptions struct {
	File    string // "-": standard input
	Format  string // importer.Format; empty: detected
	Project string
	Hold    bool
	DryRun  bool
	Convert bool // print the native document and submit nothing
	Wait    bool
	Follow  bool
	Secrets []string // NAME, NAME=VALUE or NAME@FILE

	Interactive bool   // start at once or fail, with the user's terminal
	Key         string // idempotency key; empty: a fresh one
	Dependency  string // as "afterok:12"; empty: the file's

	NVCT *nvct.Flags // a task of NVIDIA Cloud Tasks: the flags, and File unless it is empty

	Overrides importer.Overrides // in place of the file's; with a command: of a job without a file
}

// Submit checks a job file, hands it to the controller and does with the job
// what the options say.
func (a *App) Submit(ctx context.Context, o SubmitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	secrets, err := readSecrets(o.Secrets)
	if err != nil {
		return err
	}
	name, doc, sub, err := a.jobOf(o, secrets)
	if err != nil {
		return err
	}
	if o.Convert {
		a.noteSecrets(&sub)
		return a.convert(sub)
	}
	if doc, err = withSecrets(doc, &sub, secrets); err != nil {
		return &exitError{ExitUsage, fileError(name, err)}
	}
	req := &api.SubmitRequest{Job: doc, Project: o.Project, Hold: o.Hold, DryRun: o.DryRun, Interactive: o.Interactive, Dependency: o.Dependency}
	resp, err := a.Client.Submit(ctx, req, o.Key)
	if err != nil {
		return fileError(name, err)
	}
	resp.Notes = mergeNotes(sub.Notes, resp.Notes)
	if o.DryRun {
		return a.printDryRun(resp)
	}
	if err := a.printSubmitted(resp, sub.Spec.Name, o); err != nil {
		return err
	}
	id := strconv.FormatUint(uint64(resp.Number), 10)
	a.Client.Retry = client.Retry{} // what follows has its own patience
	switch {
	case o.Interactive:
		return a.interactiveJob(ctx, id)
	case o.Follow:
		return a.followJob(ctx, id)
	case o.Wait:
		return a.waitJob(ctx, id)
	}
	return nil
}

func (o SubmitOptions) check() error {
	switch {
	case !o.Interactive:
		return nil
	case o.File == "-" && !o.DryRun && len(o.Overrides.Command) == 0:
		return usageError("--interactive gives standard input to the job: name the job file")
	case o.Hold:
		return usageError("--interactive starts at once or fails: it cannot be combined with --hold")
	case o.Convert:
		return usageError("--interactive is not part of the document: write \"gbatch\": {\"terminal\": true} into it")
	}
	return nil
}

// readJobFile reads a job file whole, up to one byte more than a document may
// have, which the parser then explains.
func (a *App) readJobFile(file string) (name string, data []byte, err error) {
	in := a.In
	name = "standard input"
	switch {
	case file == "-" && a.Term.In:
		a.say("reading a job file from the terminal; end it with Ctrl-D")
	case file != "-":
		name = file
		f, err := os.Open(file)
		if err != nil {
			return name, nil, usageError("read job file: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err = io.ReadAll(io.LimitReader(in, document.MaxBytes+1))
	if err != nil {
		return name, nil, usageError("read job file %s: %w", name, err)
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

// fileError puts the file's name in front of each problem of a job.
func fileError(name string, err error) error {
	var lines []string
	if ps, ok := errors.AsType[job.Problems](err); ok {
		for _, p := range ps {
			lines = append(lines, p.String())
		}
	} else if e, ok := errors.AsType[*api.Error](err); ok && e.Code == api.CodeInvalidJob {
		for _, p := range e.Problems {
			lines = append(lines, job.Problem{Path: p.Path, Message: p.Message, Hint: p.Hint}.String())
		}
	}
	if len(lines) == 0 {
		return err
	}
	var b bytes.Buffer
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(name + ": " + l)
	}
	return &problemsError{text: b.String(), err: err}
}

// problemsError lists problems, one per line, each ready to print.
type problemsError struct {
	text string
	err  error
}

func (e *problemsError) Error() string { return e.text }
func (e *problemsError) Unwrap() error { return e.err }

func mergeNotes(local []job.Note, server []api.Note) []api.Note {
	var out []api.Note
	seen := map[api.Note]bool{}
	add := func(n api.Note) {
		if !seen[n] {
			out = append(out, n)
		}
		seen[n] = true
	}
	for _, n := range local {
		add(api.Note(n))
	}
	for _, n := range server {
		add(n)
	}
	return out
}

func (a *App) printNotes(notes []api.Note) {
	for _, n := range notes {
		if n.Path != "" {
			a.say("note: %s: %s", n.Path, n.Message)
		} else {
			a.say("note: %s", n.Message)
		}
	}
}

// printSubmitted tells the number: in a sentence to a person, alone to a
// program. With Follow standard output belongs to the job's log.
func (a *App) printSubmitted(r *api.SubmitResponse, name string, o SubmitOptions) error {
	if a.Output.JSON {
		return a.writeJSON(r)
	}
	a.printNotes(r.Notes)
	text := fmt.Sprintf("submitted job %d (%s)", r.Number, name)
	if r.Repeated {
		text = fmt.Sprintf("job %d (%s) had been submitted with this key already", r.Number, name)
	}
	if o.Hold {
		text += fmt.Sprintf(", on hold: release it with gcancel --release %d", r.Number)
	}
	var err error
	switch {
	case o.Follow, o.Interactive:
		a.say("%s", text)
	case a.Term.Out && !a.Output.IDs:
		_, err = fmt.Fprintln(a.Out, clean(text))
	default:
		_, err = fmt.Fprintln(a.Out, r.Number)
	}
	return err
}

func (a *App) printDryRun(r *api.SubmitResponse) error {
	if a.Output.JSON {
		return a.writeJSON(r)
	}
	a.printNotes(r.Notes)
	if r.Effective != nil {
		data, err := json.MarshalIndent(r.Effective, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the effective job: %w", err)
		}
		if _, err := fmt.Fprintln(a.Out, cleanLines(escapeJSON(string(data)))); err != nil {
			return err
		}
	}
	a.say("nothing was submitted (--dry-run); the job would be billed to project %s", r.Project)
	if e := r.Estimate; e != nil {
		a.say("%s", a.estimate(e))
	}
	return nil
}

func (a *App) estimate(e *api.Estimate) string {
	var text string
	switch {
	case e.Now:
		text = "it would start at once"
	case !e.At.IsZero():
		text = "it would start " + a.moment(e.At)
	case e.Text != "":
		return e.Text
	default:
		return "when it would start is not known"
	}
	if len(e.Nodes) > 0 {
		text += " on " + compressHosts(e.Nodes)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// convert prints the native document. A password cannot be in it.
func (a *App) convert(sub job.Submission) error {
	var notes []api.Note
	for _, n := range sub.Notes {
		notes = append(notes, api.Note(n))
	}
	a.printNotes(notes)
	if sub.Registry != nil {
		a.say("note: the registry's user and password are left out; put USER:PASSWORD@ in front of the image again")
	}
	data, err := json.MarshalIndent(sub.Spec, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the job: %w", err)
	}
	_, err = fmt.Fprintln(a.Out, escapeJSON(string(data)))
	return err
}
