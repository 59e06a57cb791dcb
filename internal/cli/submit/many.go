package submit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/document"
	"gbatch/internal/job/importer"
)

// groupBytes is how much of documents goes out in one request, if it is not one
// document: less than the controller takes, in whatever way they are written.
const groupBytes = 256 << 10

// batch is a run that submits several jobs: the keys of its jobs are its own key
// with their place.
type batch struct {
	key  string
	sent int
	said repeats
}

// sendMany hands jobs to the controller, as many in one request as it takes, and
// tells the numbers of those that it has taken. A job that is refused keeps no other
// one out.
func (o *flags) sendMany(ctx context.Context, a *cli.App, b *batch, jobs []ready) (numbers []string, failed error) {
	for len(jobs) > 0 {
		n, size := 1, len(jobs[0].doc)
		for n < min(len(jobs), api.MaxSubmissions) && size+len(jobs[n].doc) <= groupBytes {
			size += len(jobs[n].doc)
			n++
		}
		group := make([]api.KeyedSubmission, n)
		for i, j := range jobs[:n] {
			b.sent++
			group[i] = api.KeyedSubmission{SubmitRequest: o.request(j), Key: b.key + "." + strconv.Itoa(b.sent)}
		}
		results, err := client.SubmitMany(ctx, a.Client, group)
		for i, r := range results {
			switch {
			case r.Error != nil:
				b.said.wrong(a, jobs[i].name, namedError(jobs[i].name, r.Error))
				failed = &exit.Error{Code: exit.Code(r.Error)}
			case r.Submitted != nil:
				numbers = append(numbers, strconv.FormatUint(uint64(r.Submitted.Number), 10))
				if err := o.submittedOf(a, b, jobs[i], r.Submitted); err != nil {
					return numbers, err
				}
			}
		}
		if err != nil {
			return numbers, b.broken(err, jobs)
		}
		jobs = jobs[n:]
	}
	return numbers, failed
}

// submittedOf tells of one of several jobs that the controller has taken. To a person
// each note is told once.
func (o *flags) submittedOf(a *cli.App, b *batch, j ready, resp *api.SubmitResponse) error {
	if !a.Output.JSON {
		resp.Notes, j.sub.Notes = b.said.news(mergeNotes(j.sub.Notes, resp.Notes)), nil
	}
	return o.submitted(a, j, resp)
}

// namedError says of which job an error is.
func namedError(name string, e *api.Error) error {
	if err := cli.FileError(name, e); err != error(e) {
		return err
	}
	return fmt.Errorf("%s: %w", name, e)
}

// broken is the error of a request, after which nothing more is sent.
func (b *batch) broken(err error, rest []ready) error {
	if _, answered := errors.AsType[*api.Error](err); answered && !client.IsUnavailable(err) {
		return notSent(err, rest[min(1, len(rest)):])
	}
	return fmt.Errorf("%w\nwhether %s and what follows it were submitted is not known. The same command with --idempotency-key %s submits what was not", err, rest[0].name, b.key)
}

// submitLines submits the jobs of files that have one in each line, as they are
// read.
func (o *Submit) submitLines(ctx context.Context, a *cli.App, all []*source) error {
	switch {
	case o.Wrap != "" || o.Again != "" || len(o.Command) > 0 || all[0].alone:
		return exit.Usagef("--ndjson reads jobs from files: give it without --wrap, --again and a command")
	case o.Interactive || o.Follow || o.Convert || o.DryRun:
		return exit.Usagef("--ndjson is for many jobs, and --interactive, --follow, --convert and --dry-run are for one: give that job in a file of its own")
	}
	if err := o.check(all); err != nil {
		return err
	}
	all[0].warn(a)
	secrets, err := o.secrets(a, all[0])
	if err != nil {
		return err
	}
	l := lines{flags: &o.flags, app: a, secrets: secrets, batch: batch{key: cmp.Or(o.IdempotencyKey, rand.Text())}}
	for _, src := range all {
		if err = l.file(ctx, src); err != nil {
			break
		}
	}
	l.said.end(a)
	if err != nil {
		return err
	}
	return o.then(ctx, a, l.numbers, l.failed)
}

// lines submits jobs, of which each is a line.
type lines struct {
	*flags
	batch

	app     *cli.App
	secrets map[string]string
	ready   []ready // and not sent yet
	bytes   int     // of their documents
	numbers []string
	failed  error // the last refusal
}

// line is a job, and where it stands.
type line struct {
	at   string // as jobs.ndjson:3
	text []byte
}

func (l *lines) file(ctx context.Context, src *source) error {
	in, name := l.app.In, standardInput
	switch {
	case src.file == "-" && l.app.Term.In:
		l.app.Say("reading jobs from the terminal, one in a line; end them with Ctrl-D")
	case src.file != "-":
		f, err := os.Open(src.file)
		if err != nil {
			return exit.Usagef("read jobs: %w", err)
		}
		defer f.Close()
		in, name = f, src.file
	}
	here := src.surroundings(ctx, l.app, l.secrets)
	for r, n := bufio.NewReaderSize(in, document.MaxBytes+1), 1; ; n++ {
		text, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("a job has at most %d bytes", document.MaxBytes)
			}
			return both(l.flush(ctx), exit.Usagef("read line %d of %s: %w", n, name, err))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := l.add(ctx, src, here, line{fmt.Sprintf("%s:%d", name, n), bytes.Clone(text)}); err != nil {
				return err
			}
		}
		if err == io.EOF || len(l.ready) == api.MaxSubmissions || l.bytes >= groupBytes || r.Buffered() == 0 {
			if err := l.flush(ctx); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// add checks one line, and tells what is wrong with it.
func (l *lines) add(ctx context.Context, src *source, here importer.Options, text line) error {
	j, err := src.fromFile(here, text.at, text.text)
	if err == nil {
		err = j.complete(ctx, l.app, l.flags, completing{src.file, l.secrets})
	}
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Usage {
		l.said.wrong(l.app, text.at, err)
		l.failed = &exit.Error{Code: e.Code}
		return nil
	}
	if err != nil {
		return both(l.flush(ctx), err)
	}
	l.ready, l.bytes = append(l.ready, j), l.bytes+len(j.doc)
	return nil
}

// flush sends what is ready.
func (l *lines) flush(ctx context.Context) error {
	numbers, err := l.sendMany(ctx, l.app, &l.batch, l.ready)
	l.ready, l.bytes = l.ready[:0], 0
	if l.Wait {
		l.numbers = append(l.numbers, numbers...)
	}
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Err == nil { // told already
		l.failed, err = err, nil
	}
	return err
}
