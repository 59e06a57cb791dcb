package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/transfer"
)

// Due are the outputs that are saved after such an end, by their place in the
// document.
func Due(all []job.Output, ok bool) map[int]job.Output {
	due := map[int]job.Output{}
	for i, o := range all {
		if o.When == job.WhenAlways || (o.When == job.WhenFailure) == !ok {
			due[i] = o
		}
	}
	return due
}

// Send saves the outputs that are due one after the other; ok says that the
// program succeeded. Errors are sentences for the user.
func (d *Data) Send(ctx context.Context, r Rank, due map[int]job.Output, ok bool) error {
	t := &transfers{d, r}
	left := &allowance{d.cfg.MaxOutput, d.cfg.MaxOutput}
	var show showing
	show.init(t.Progress, "output", len(due))
	var failed []string
	for i := range t.Order.Spec.Gbatch.Outputs {
		o, is := due[i]
		if !is {
			continue
		}
		uri := t.expandURI(o.URI)
		err := t.send(ctx, saving{i, o, uri, left, show.part(show.here)})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var missing *nothingToSave
		if errors.As(err, &missing) && !(ok && o.When == "") {
			t.Log.Info("nothing to save", "output", i, "why", missing.text)
			err = nil
		}
		if err != nil {
			failed = append(failed, t.outputText(uri, err))
		}
		show.one()
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}

// outputText is an error for the user: what is wrong inside the node is for its log.
func (t *transfers) outputText(uri string, err error) string {
	var failed *transfer.Error
	var missing *nothingToSave
	switch {
	case errors.As(err, &failed) && (failed.Kind != transfer.Local || failed.Unwrap() == nil):
		return "output " + failed.Error()
	case errors.As(err, &missing):
		return "output " + uri + ": " + missing.text
	}
	t.Log.Error("save output", "uri", uri, "error", err)
	return "output " + uri + ": the node could not read it; its administrator finds the reason in the node's log"
}

// nothingToSave says that an output has no files.
type nothingToSave struct{ text string }

func (e *nothingToSave) Error() string { return e.text }

// allowance is what the site lets a rank save, and what is left of it.
type allowance struct{ most, left config.Size }

func (a *allowance) take(bytes int64) error {
	if bytes > int64(a.left) {
		return transfer.At(transfer.TooLarge, "", fmt.Sprintf("has %s; with the job's other outputs that is more than %s, this node's limit (data.maxOutput)",
			config.FormatBytes(bytes), a.most))
	}
	a.left -= config.Size(bytes)
	return nil
}

// saving is one output under way.
type saving struct {
	i int // its place in the document
	job.Output
	uri      string
	left     *allowance
	progress func(done, total int64)
}

// send saves one output.
func (t *transfers) send(ctx context.Context, o saving) error {
	from, name, err := t.outputDir(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &nothingToSave{fmt.Sprintf("the program left no %s", o.Path)}
	}
	if err != nil {
		return err
	}
	defer from.Root.Close()
	s := transfer.Send{URI: o.uri, From: from, Names: []string{name}, Progress: o.progress, Room: o.left.take,
		Journal: filepath.Join(t.Dir, "output-"+strconv.Itoa(o.i)), Single: name != "" && !strings.HasSuffix(o.uri, "/")}
	if name == "" {
		if s.Names, err = from.Walk(ctx, o.Pattern); err != nil {
			return transfer.Name(o.uri, err)
		}
	}
	if len(s.Names) == 0 {
		what := "no file"
		if o.Pattern != "" {
			what = "no file that fits " + o.Pattern
		}
		return &nothingToSave{fmt.Sprintf("the program left %s in %s", what, o.Path)}
	}
	sink, closeSink, err := t.sink(o.uri, s.Single)
	if err != nil {
		return err
	}
	defer closeSink()
	s.Sink = sink
	return t.Client.Send(ctx, s)
}

// sink is where an output goes to.
func (t *transfers) sink(uri string, single bool) (transfer.Sink, func(), error) {
	if strings.HasPrefix(uri, "file:") {
		dir := uri
		if !single && !strings.HasSuffix(dir, "/") {
			dir += "/"
		}
		at, name, err := t.fileDir(dir, true)
		if err != nil {
			return nil, nil, err
		}
		return transfer.DirSink(at, name), func() { at.Root.Close() }, nil
	}
	at, err := t.s3()
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	sink, err := t.Client.S3Sink(at, uri)
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	return sink, sink.Close, nil
}
