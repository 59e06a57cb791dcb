package image

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"

	"gbatch/oci/image/share"
)

// A worker has neither network nor files. What another node sends reaches it by a pipe, and
// what is kept for others goes into a file that the store made: both are lent for one layer.

// lent is what a worker is lent for one layer.
type lent struct {
	kept *share.Layer  // to be written; nil: the bytes are not kept
	body io.ReadCloser // to be read instead of the registry, and closed; nil: the registry
	seen func(int64)
}

// lend lets the worker take what is lent, under names that go with its order, until done is called.
func (o *origin) lend(order *layerOrder, f lent) (done func(), err error) {
	names := map[string]*os.File{}
	at := order.Desc.Digest.String() + " " + strconv.FormatInt(o.s.lends.Add(1), 10)
	if f.kept != nil {
		order.Keep = "keep " + at
		names[order.Keep] = f.kept.File()
	}
	var pipe *os.File
	if f.body != nil {
		r, w, err := os.Pipe()
		if err != nil {
			f.body.Close()
			return nil, classifyLocal(err)
		}
		pipe, order.From = r, "from "+at
		names[order.From] = r
		o.s.work.Go(func() { // ends when all was sent, the node stalls, or nobody reads any more
			_, _ = io.Copy(w, f.body)
			w.Close()
			f.body.Close()
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lent == nil {
		o.lent = map[string]*os.File{}
	}
	for name, file := range names {
		o.lent[name] = file
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for name := range names {
			delete(o.lent, name)
		}
		if pipe != nil {
			pipe.Close()
		}
	}, nil
}

// take gives what is lent under a name, once.
func (o *origin) take(name string, give func(*os.File)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.lent[name]
	if f == nil {
		return errors.New("nothing is lent under that name")
	}
	delete(o.lent, name)
	give(f)
	return nil
}

// taken is what the store lends this worker.
func (w *worker) taken(ctx context.Context, name string) (*os.File, error) {
	a, err := w.ask(ctx, packet{Take: name})
	if err == nil && a.file == nil {
		err = errors.New("got no file")
	}
	return a.file, err
}

// bytes opens the compressed bytes of a layer. Reading them to the end fails if they do not match.
func (w *worker) bytes(ctx context.Context, src source, order layerOrder) (rc io.ReadCloser, mirror bool, err error) {
	if order.From == "" {
		return src.blob(ctx, order.Desc)
	}
	f, err := w.taken(ctx, order.From)
	if err != nil {
		return nil, false, err
	}
	return share.Verify(f, order.Desc, func(text string) error { return fail(Corrupt, "%s", text) }), false, nil
}

// keep is where the bytes of a layer are kept for other nodes.
func (w *worker) keep(order layerOrder) (*share.Copy, error) {
	if order.Keep == "" {
		return &share.Copy{}, nil
	}
	f, err := w.taken(context.Background(), order.Keep) // is answered at once
	return &share.Copy{File: f}, err
}
