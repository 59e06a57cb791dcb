package image

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/oci/image/bounds"
	"gbatch/oci/image/socket"
	"gbatch/oci/image/unpack"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// This file is what a worker does. A worker is this program, started again by
// the store as a process without rights: see sandbox.go. It speaks to
// registries and reads layers, and can do nothing that the store does not do
// for it: connect, open a local image, take more of the disk.

// workerEnv marks a process as a worker; the argument alone would take the
// word away from users of the program.
const (
	workerEnv = "_GBATCH_IMAGE_WORKER"
	workerArg = "image-worker"
	workerFD  = 3 // its control socket
)

// workDir is the store's directory for a worker, as the worker sees it.
const workDir = "/work"

// This program's other role has to be taken before main or any flag is looked at.
func init() {
	if len(os.Args) == 2 && os.Args[1] == workerArg && os.Getenv(workerEnv) != "" {
		os.Exit(workerMain())
	}
}

// worker is the state of the process: the image that it reads now.
type worker struct {
	control    *net.UnixConn
	transports map[string]*boundedTransport // by what they were made of

	mu     sync.Mutex
	last   known
	source source
	spec   session
	room   *bounds.Room
	asks   map[int]chan answer
	asked  int
}

type answer struct {
	packet
	file *os.File
}

// source is a place that an image can be read from: a registry with its
// mirrors, or a file. Errors are *PullError. Mirror says that it was one that
// answered, by the node's login.
type source interface {
	// resolve returns the digest of what the reference names now.
	resolve(context.Context) (digest v1.Hash, mirror bool, err error)
	// manifest returns a manifest or index, which matches the digest.
	manifest(context.Context, v1.Hash) ([]byte, error)
	// has says whether the place gives out a blob, without reading it.
	has(context.Context, v1.Descriptor) (has, mirror bool, err error)
	// blob opens a blob. Reading it to the end fails if it does not match.
	blob(context.Context, v1.Descriptor) (rc io.ReadCloser, mirror bool, err error)
}

func workerMain() int {
	// For who lists processes.
	_ = os.WriteFile("/proc/self/comm", []byte("gbatch-image"), 0)
	// The system's certificates are read now, as the file system goes away.
	_, _ = x509.SystemCertPool()
	conn, err := socket.Conn(os.NewFile(workerFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := &worker{control: conn.(*net.UnixConn), transports: map[string]*boundedTransport{}, asks: map[int]chan answer{}}
	if err := socket.Send(w.control, packet{Ready: true}, nil); err != nil {
		return 1
	}
	for {
		var p packet
		file, err := socket.Receive(w.control, &p)
		if err != nil {
			return 0 // the store is done with this worker, or is gone
		}
		switch {
		case p.Call && file != nil:
			go w.serve(file) // ends with its call, at the latest with the process
		case p.Answer != 0:
			w.mu.Lock()
			to := w.asks[p.Answer]
			delete(w.asks, p.Answer)
			w.mu.Unlock()
			if to != nil {
				to <- answer{p, file}
			}
		}
	}
}

// serve answers one call. The store closes its side to break it off.
func (w *worker) serve(file *os.File) {
	conn, err := socket.Conn(file)
	if err != nil {
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var req request
	in := json.NewDecoder(conn)
	if err := in.Decode(&req); err != nil {
		return
	}
	go func() { // ends when either side closes the stream
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	out := json.NewEncoder(conn)
	r, err := w.do(ctx, req, func(n int64) { _ = out.Encode(reply{Bytes: n}) })
	r.Done, r.Error = true, wireErrorOf(err)
	_ = out.Encode(r)
}

func (w *worker) do(ctx context.Context, req request, seen func(int64)) (r reply, err error) {
	src, err := w.begin(req.Begin)
	if err != nil {
		return r, err
	}
	switch {
	case req.Resolve:
		var digest v1.Hash
		if digest, r.Mirror, err = src.resolve(ctx); err == nil {
			r.Digest = &digest
		}
	case req.Manifest != nil:
		r.Raw, err = src.manifest(ctx, *req.Manifest)
	case req.Blob != nil:
		r.Raw, r.Mirror, err = readBlob(ctx, src, *req.Blob)
	case req.Has != nil:
		r.Has, r.Mirror, err = src.has(ctx, *req.Has)
	case req.Layer != nil:
		return w.layer(ctx, src, *req.Layer, seen)
	}
	if err != nil {
		w.forget()
	}
	return r, err
}

// begin returns the source of the present session, or makes that of a new one.
func (w *worker) begin(s *session) (source, error) {
	if s == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.source == nil {
			return nil, fail(Internal, "no pull was begun")
		}
		return w.source, nil
	}
	var src source
	var err error
	if len(s.Hosts) == 0 {
		src, err = newLocalSource(s.Ref, w.open)
	} else {
		src, err = w.registrySource(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.source, w.spec, w.room = src, *s, &bounds.Room{Ask: w.askRoom}
	return src, err
}

// progressEvery is how many bytes pass between two words on progress.
const progressEvery = 256 << 10

// layer downloads and unpacks in one stream.
func (w *worker) layer(ctx context.Context, src source, order layerOrder, seen func(int64)) (r reply, err error) {
	rc, mirror, err := w.bytes(ctx, src, order)
	if err != nil {
		return r, err
	}
	defer rc.Close()
	keep, err := w.keep(order)
	if err != nil {
		return r, err
	}
	defer keep.Close()
	told := int64(0)
	in := &bounds.Counted{R: io.TeeReader(rc, keep), Max: order.Desc.Size, TooLong: fail(Corrupt, "it is longer than its manifest says"), Seen: func(n int64) {
		if n-told >= progressEvery {
			told = n
			seen(n)
		}
	}}
	to := unpack.Target{DiffID: order.DiffID, MaxBytes: w.spec.MaxBytes, MaxID: ownID - 1, Room: w.room.Take}
	if order.Dir != "" {
		to.Dir = filepath.Join(workDir, filepath.Base(order.Dir))
	}
	l, err := unpack.Layer(ctx, in, to)
	if err != nil {
		return r, classifyUnpack(err)
	}
	info := &unpacked{DiffID: order.DiffID, Size: l.Size, Entries: l.Entries, Implicit: l.Implicit}
	return reply{Bytes: in.N, Mirror: mirror, Layer: info, Opaque: l.Opaque, Kept: keep.All(order.Desc.Size)}, nil
}

// ask asks the store for something that a worker cannot do.
func (w *worker) ask(ctx context.Context, p packet) (answer, error) {
	back := make(chan answer, 1)
	w.mu.Lock()
	w.asked++
	p.Ask = w.asked
	w.asks[p.Ask] = back
	w.mu.Unlock()
	if err := socket.Send(w.control, p, nil); err != nil {
		return answer{}, err
	}
	select {
	case a := <-back:
		if a.Error != nil {
			return a, a.Error.err()
		}
		return a, nil
	case <-ctx.Done():
		go func() { // ends when the answer comes, which the store gives in any case
			if a := <-back; a.file != nil {
				a.file.Close()
			}
		}()
		return answer{}, context.Cause(ctx)
	}
}

// dial is for HTTP: the store connects, if it may.
func (w *worker) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	a, err := w.ask(ctx, packet{Dial: addr})
	if err != nil {
		return nil, err
	}
	if a.file == nil {
		return nil, errors.New("got no connection")
	}
	return socket.Conn(a.file)
}

// open opens a part of a local image; the name "" is the archive itself.
// The store answers at once, so the call that needs it need not be broken off.
func (w *worker) open(name string) (*os.File, error) {
	if name == "" {
		name = "."
	}
	a, err := w.ask(context.Background(), packet{Open: name})
	if err == nil && a.file == nil {
		err = errors.New("got no file")
	}
	return a.file, err
}

func (w *worker) askRoom(bytes, entries int64) (int64, int64, error) {
	a, err := w.ask(context.Background(), packet{Bytes: bytes, Entries: entries})
	return a.Bytes, a.Entries, err
}

// stall is how long nothing may come.
func (s *session) stall() time.Duration { return time.Duration(s.Stall) }
