package noded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/storage"
	"gbatch/internal/transfer"
	"gbatch/oci"
)

// save sends the outputs that are due, and puts into out what went wrong. It
// returns false if the daemon goes first.
func (r *rank) save(out *node.Exit) bool {
	due := r.dueOutputs(out)
	if len(due) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeoutCause(r.a.ctx, time.Duration(r.a.data.cfg.Timeout), fmt.Errorf("not done within %s, the node's limit", r.a.data.cfg.Timeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- r.sendAll(ctx, due, out.OK()) }() // ends with ctx; awaited below
	kill := time.NewTimer(0)
	kill.Stop()
	for {
		if s := r.stopNow(); s != nil && s.Reason != job.MaxRuntime && s.Reason != job.Utilization {
			kill.Reset(max(0, time.Until(s.kill)))
		}
		select {
		case err := <-done:
			if r.a.ctx.Err() != nil {
				return false
			}
			r.blameOutput(out, err)
			return true
		case <-kill.C:
			stop(errStopped)
		case <-r.wake:
		}
	}
}

// dueOutputs are those that are saved after such an end, by their place in the
// document.
func (r *rank) dueOutputs(out *node.Exit) map[int]job.Output {
	due := map[int]job.Output{}
	for i, o := range r.order.Spec.Gbatch.Outputs {
		if o.When == job.WhenAlways || (o.When == job.WhenFailure) == !out.OK() {
			due[i] = o
		}
	}
	return due
}

// blameOutput says in a rank's end that outputs were not saved. A program that
// failed by itself keeps its reason.
func (r *rank) blameOutput(out *node.Exit, err error) {
	stop := r.stopNow()
	switch {
	case err == nil:
	case errors.Is(err, errStopped) && stop != nil && out.OK():
		out.Code, out.Reason = 125, stop.Reason
		out.Message = stop.Text + "; the program had succeeded (exit code 0), and its outputs were being saved"
	case errors.Is(err, errStopped):
		out.Message += "; its outputs were not all saved"
	case out.OK():
		out.Code, out.Reason = 125, job.OutputFailed
		out.Message = "the program succeeded (exit code 0), but not all of its outputs were saved: " + err.Error()
	default:
		out.Message += "; not saved: " + err.Error()
	}
	if err != nil {
		r.log.Warn("outputs not saved", "error", err)
	}
}

// sendAll saves outputs one after the other. Errors are sentences for the user.
func (r *rank) sendAll(ctx context.Context, due map[int]job.Output, ok bool) error {
	if err := r.awaitSecrets(ctx); err != nil {
		return err
	}
	var show showing
	show.init(r, "output", len(due))
	var failed []string
	for i := range r.order.Spec.Gbatch.Outputs {
		o, is := due[i]
		if !is {
			continue
		}
		uri := r.expandURI(o.URI)
		err := r.send(ctx, i, o, uri, show.part(show.here))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var missing *nothingToSave
		if errors.As(err, &missing) && !(ok && o.When == "") {
			r.log.Info("nothing to save", "output", i, "why", missing.text)
			err = nil
		}
		if err != nil {
			failed = append(failed, r.outputText(uri, err))
		}
		show.one()
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}

// outputText is an error for the user: what is wrong inside the node is for its log.
func (r *rank) outputText(uri string, err error) string {
	var t *transfer.Error
	var missing *nothingToSave
	switch {
	case errors.As(err, &t) && (t.Kind != transfer.Local || t.Unwrap() == nil):
		return "output " + t.Error()
	case errors.As(err, &missing):
		return "output " + uri + ": " + missing.text
	}
	r.log.Error("save output", "uri", uri, "error", err)
	return "output " + uri + ": the node could not read it; its administrator finds the reason in the node's log"
}

// awaitSecrets waits for the keys of S3 if a restart lost them.
func (r *rank) awaitSecrets(ctx context.Context) error {
	if !r.wantsSecrets() {
		return nil
	}
	select {
	case <-r.hasSecrets:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nothingToSave says that an output has no files.
type nothingToSave struct{ text string }

func (e *nothingToSave) Error() string { return e.text }

// send saves one output.
func (r *rank) send(ctx context.Context, i int, o job.Output, uri string, progress func(int64, int64)) error {
	root, name, err := r.outputRoot(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &nothingToSave{fmt.Sprintf("the program left no %s", o.Path)}
	}
	if err != nil {
		return err
	}
	defer root.Close()
	s := transfer.Send{URI: uri, Root: root, Dir: ".", Names: []string{name}, Progress: progress,
		Journal: filepath.Join(r.dir, "output-"+strconv.Itoa(i)), Single: name != "" && !strings.HasSuffix(uri, "/")}
	if name == "" {
		if s.Names, err = transfer.Walk(ctx, root, ".", o.Pattern); err != nil {
			return transfer.Name(uri, err)
		}
	}
	if len(s.Names) == 0 {
		what := "no file"
		if o.Pattern != "" {
			what = "no file that fits " + o.Pattern
		}
		return &nothingToSave{fmt.Sprintf("the program left %s in %s", what, o.Path)}
	}
	sink, closeSink, err := r.sink(uri, s.Single)
	if err != nil {
		return err
	}
	defer closeSink()
	s.Sink = sink
	return r.a.data.client.Send(ctx, s)
}

// sink is where an output goes to.
func (r *rank) sink(uri string, single bool) (transfer.Sink, func(), error) {
	if strings.HasPrefix(uri, "file:") {
		dir := uri
		if !single && !strings.HasSuffix(dir, "/") {
			dir += "/"
		}
		root, name, err := r.fileRoot(dir, true)
		if err != nil {
			return nil, nil, err
		}
		return transfer.DirSink(root, name), func() { root.Close() }, nil
	}
	at, err := r.s3()
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	sink, err := r.a.data.client.S3Sink(at, uri)
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	return sink, sink.Close, nil
}

// outputRoot opens the directory of a path in a container that has ended, and
// the name of the file if the path is one. Links that the program made lead
// nowhere but within what it could write.
func (r *rank) outputRoot(p string) (root *os.Root, name string, err error) {
	top, rest, err := r.outputTop(path.Clean(p))
	if err != nil {
		return nil, "", err
	}
	defer top.Close()
	open := func(p string) (*os.File, error) { return pathrs.OpenatInRoot(top, p) }
	h, err := open(rest)
	if err != nil {
		return nil, "", err
	}
	defer h.Close()
	st, err := h.Stat()
	switch {
	case err != nil:
		return nil, "", err
	case st.IsDir():
		root, err = storage.RootOf(h)
		return root, "", err
	case !st.Mode().IsRegular():
		return nil, "", &nothingToSave{fmt.Sprintf("%s is neither a directory nor a plain file", p)}
	}
	dir, err := open(path.Dir(rest))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	root, err = storage.RootOf(dir)
	return root, path.Base(rest), err
}

// outputTop opens what of a container is outermost on the way to a path: a
// mount, or what it wrote itself. The rest of the path is relative to that.
func (r *rank) outputTop(p string) (*os.File, string, error) {
	best, rest := -1, ""
	storage := r.order.Spec.Request.Docker.Storage
	inputs := r.order.Spec.Gbatch.Inputs
	length := -1
	consider := func(i int, target string) {
		target = path.Clean(target)
		if below, ok := below(p, target); ok && len(target) > length {
			best, rest, length = i, below, len(target)
		}
	}
	for i, m := range storage {
		consider(i, m.ContainerPath)
	}
	for i, in := range inputs {
		consider(len(storage)+i, in.Path)
	}
	switch {
	case best < 0:
		dir, err := oci.Written(r.box())
		if err != nil {
			return nil, "", err
		}
		f, err := os.Open(dir)
		return f, p, err
	case best >= len(storage):
		f, err := r.openInput(best-len(storage), &rest)
		return f, rest, err
	case storage[best].HostPath == job.TmpfsHostPath:
		return nil, "", &nothingToSave{fmt.Sprintf("%s was on a tmpfs, which is gone", p)}
	}
	who, err := r.tenant()
	if err != nil {
		return nil, "", err
	}
	src, err := r.a.storage.Open(storage[best], who)
	if err != nil {
		return nil, "", err
	}
	if src.Dir {
		return src.Handle, rest, nil
	}
	src.Close() // a single file was mounted: look at it from its directory
	at := storage[best]
	at.HostPath, rest = path.Dir(at.HostPath), path.Base(at.HostPath)
	src, err = r.a.storage.Open(at, who)
	return src.Handle, rest, err
}

// openInput opens an input that the program may have changed.
func (r *rank) openInput(i int, rest *string) (*os.File, error) {
	if r.order.Spec.Gbatch.Inputs[i].Cache {
		return nil, &nothingToSave{"the path lies in an input from the cache, which cannot be written to"}
	}
	dir := filepath.Join(r.a.data.rankDir(r.id), strconv.Itoa(i), transfer.ContentDir)
	if *rest == "." && !strings.HasSuffix(r.order.Spec.Gbatch.Inputs[i].URI, "/") {
		*rest = transfer.SingleName
	}
	return os.Open(dir)
}

// below says where a path lies below a directory; "." is the directory.
func below(p, dir string) (string, bool) {
	if p == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}
