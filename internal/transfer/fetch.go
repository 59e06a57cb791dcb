package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
)

// Fetch is one transfer to this machine.
type Fetch struct {
	URI    string // for messages
	Source Source
	// Dir takes the files, in ContentDir, and what the transfer needs to go on
	// after a break. It is made, and belongs to this transfer alone.
	Dir    string
	SHA256 string // of a single object, in hex; empty: not checked

	Objects []Object // what the source's List has told; nil: it is asked
	// MaxBytes bounds all of it; 0: nothing does.
	MaxBytes int64
	// Room is asked once, with the bytes that are still to come (-1: nobody
	// knows), before the first of them.
	Room func(bytes int64) error
	// Progress, if set, is called from several goroutines: bytes that are here,
	// and all, -1 if not known.
	Progress func(done, total int64)
}

// ContentDir is where below Fetch.Dir the files are. A single object is there
// under the name SingleName.
const (
	ContentDir = "content"
	SingleName = "file"

	manifestFile = "manifest.json" // what the source had when the transfer was begun
	sumsFile     = "sums"          // of the pieces that came
	partsDir     = "parts"         // objects of which not all is here
)

// Fetched is what Fetch brought.
type Fetched struct {
	Objects int
	Bytes   int64
	Single  bool
}

// List asks a source what it has; uri is for messages.
func List(ctx context.Context, uri string, s Source) ([]Object, error) {
	list, err := s.List(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return list, Name(uri, err)
}

// Fetch brings a source here. Called again with the same Dir it goes on with
// what it has, if that is still the same at the source.
func (c *Client) Fetch(ctx context.Context, f Fetch) (Fetched, error) {
	list := f.Objects
	if list == nil {
		var err error
		if list, err = List(ctx, f.URI, f.Source); err != nil {
			return Fetched{}, err
		}
	}
	x := &fetching{Fetch: f, c: c, single: isSingle(list)}
	err := x.run(ctx, list)
	if err != nil && ctx.Err() != nil {
		return Fetched{}, context.Cause(ctx)
	}
	return Fetched{Objects: len(list), Bytes: x.done.Load(), Single: x.single}, Name(f.URI, err)
}

// isSingle says whether a list is of one object that has no name of its own.
func isSingle(list []Object) bool { return len(list) == 1 && list[0].Name == "" }

// Forget has the next Fetch to a directory bring everything anew. The files that are there stay until then.
func Forget(dir string) error {
	err := os.Remove(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(dir, partsDir)))
}

// fetching is a transfer under way.
type fetching struct {
	Fetch
	c      *Client
	single bool
	root   *os.Root
	sums   *pieceSums
	total  int64
	done   atomic.Int64
}

func (x *fetching) run(ctx context.Context, list []Object) error {
	if err := os.MkdirAll(filepath.Join(x.Dir, ContentDir), 0o755); err != nil {
		return local(err)
	}
	if err := os.MkdirAll(filepath.Join(x.Dir, partsDir), 0o700); err != nil {
		return local(err)
	}
	root, err := os.OpenRoot(filepath.Join(x.Dir, ContentDir))
	if err != nil {
		return local(err)
	}
	defer root.Close()
	x.root = root
	if x.sums, err = openSums(filepath.Join(x.Dir, sumsFile)); err != nil {
		return local(err)
	}
	defer x.sums.file.Close()
	if x.single {
		list[0].Name = SingleName
	}
	seen := map[string]bool{}
	for _, o := range list {
		if err := checkName(o.Name); err != nil {
			return err
		}
		if seen[o.Name] {
			return fail(Invalid, "object %.100q is there twice", o.Name)
		}
		seen[o.Name] = true
	}
	if err := removeOthers(root, seen); err != nil {
		return local(err)
	}
	missing, err := x.missing(ctx, list)
	if err != nil {
		return err
	}
	if err := x.bringAll(ctx, missing); err != nil {
		return err
	}
	return local(os.RemoveAll(filepath.Join(x.Dir, partsDir)))
}

// removeOthers removes what an earlier try brought and is none of these files.
func removeOthers(root *os.Root, files map[string]bool) error {
	dirs := map[string]bool{".": true}
	for name := range files {
		for d := path.Dir(name); !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && dirs[name] || !e.IsDir() && files[name]:
			return nil
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// missing says what is not here yet, or not as it came, and asks for room for it.
func (x *fetching) missing(ctx context.Context, list []Object) ([]Object, error) {
	before := map[string]Object{}
	manifest := filepath.Join(x.Dir, manifestFile)
	if b, err := os.ReadFile(manifest); err == nil {
		var old []Object
		_ = json.Unmarshal(b, &old) // a damaged one is none
		for _, o := range old {
			before[o.Name] = o
		}
	}
	here := make([]bool, len(list))
	var group errgroup.Group
	group.SetLimit(max(1, x.c.Parallel))
	for i, o := range list {
		if st, err := x.root.Lstat(o.Name); err == nil && o.Version != "" && before[o.Name] == o && st.Mode().IsRegular() && st.Size() == o.Size {
			group.Go(func() error { here[i] = x.intact(ctx, o); return nil })
		}
	}
	_ = group.Wait()
	if ctx.Err() != nil { // what was not looked at is not to go
		return nil, context.Cause(ctx)
	}
	var out []Object
	var need int64
	for i, o := range list {
		if x.total >= 0 {
			x.total += o.Size
		}
		if o.Size < 0 {
			x.total, need = -1, -1
		}
		if here[i] {
			x.done.Add(o.Size)
			continue
		}
		if _, err := x.root.Lstat(o.Name); err == nil {
			if err := x.root.RemoveAll(o.Name); err != nil {
				return nil, local(err)
			}
		}
		out = append(out, o)
		if need >= 0 {
			need += o.Size
		}
	}
	b, err := json.Marshal(list)
	if err == nil {
		err = atomicfile.Write(manifest, b)
	}
	if err != nil {
		return nil, local(err)
	}
	if x.MaxBytes > 0 && x.total > x.MaxBytes {
		return nil, x.tooLarge()
	}
	if x.Room != nil && len(out) > 0 {
		return out, x.Room(need)
	}
	return out, nil
}

// bringAll works on several pieces at once: on files, and on parts of large ones.
func (x *fetching) bringAll(ctx context.Context, list []Object) error {
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, x.c.Parallel))
	for _, o := range list {
		if ctx.Err() != nil {
			break
		}
		p, err := x.makeFile(o)
		if err != nil {
			_ = group.Wait()
			return err
		}
		for i := range p.pieces {
			group.Go(func() error { return named(o, x.single, x.bring(ctx, p, i)) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(outer)
}

// named says which object of several an error is about.
func named(o Object, single bool, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || single || e.URI != "" {
		return err
	}
	return &Error{Kind: e.Kind, Text: fmt.Sprintf("object %q: %s", o.Name, e.Text), err: err}
}

// bring fetches one piece that did not come before a break, and finishes the object with the last one.
func (x *fetching) bring(ctx context.Context, p *partial, i int) error {
	from, to := p.interval(i)
	f, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		return local(err)
	}
	defer f.Close()
	if x.has(p, f, i) {
		x.done.Add(to - from)
		return x.arrived(p)
	}
	c := &coming{partial: p, file: f, sum: newSum(), at: from, to: to}
	err = x.c.retry(ctx, func(ctx context.Context) (bool, error) {
		if p.FromStart && c.at > 0 { // from its beginning again
			x.done.Add(-c.at)
			c.at = 0
			c.sum.Reset()
		}
		began := c.at
		err := x.read(ctx, c)
		return c.at > began && !p.FromStart, err
	})
	if err != nil {
		return err
	}
	if p.Size < 0 {
		if err := f.Truncate(c.at); err != nil {
			return local(err)
		}
	}
	if err := x.sums.note(p.piece(i), c.sum.Sum32()); err != nil {
		return local(err)
	}
	return x.arrived(p)
}

// arrived counts a piece that is here.
func (x *fetching) arrived(p *partial) error {
	if p.left.Add(-1) > 0 {
		return nil
	}
	return x.finish(p)
}

// coming is a piece that is fetched.
type coming struct {
	*partial
	file   *os.File
	sum    hash.Hash32
	at, to int64 // the next byte, and where it ends, -1 if that is not known
}

// read makes one try to get the bytes that are still to come of a piece.
func (x *fetching) read(ctx context.Context, c *coming) error {
	ctx, counted, stop := x.c.watch(ctx, func(n int) { x.tell(int64(n)) })
	defer stop()
	src := c.Object
	if x.single {
		src.Name = ""
	}
	body, err := x.Source.Open(ctx, src, c.at, c.to)
	if err != nil {
		return because(ctx, err)
	}
	defer body.Close()
	in := counted(body)
	if c.to < 0 && x.MaxBytes > 0 {
		in = io.LimitReader(in, x.MaxBytes+1)
	}
	n, err := io.Copy(diskWriter{io.MultiWriter(io.NewOffsetWriter(c.file, c.at), c.sum)}, in)
	c.at += n
	switch {
	case c.to < 0 && x.MaxBytes > 0 && c.at > x.MaxBytes:
		return x.tooLarge()
	case err != nil:
		return because(ctx, err)
	case c.to >= 0 && c.at < c.to:
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (x *fetching) tooLarge() error {
	return fail(TooLarge, "has more than the %d MiB that are left of what this site lets a job bring", x.MaxBytes>>20)
}

// diskWriter tells errors of the disk from those of the network.
type diskWriter struct{ io.Writer }

func (w diskWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	return n, local(err)
}

func (x *fetching) tell(n int64) {
	done := x.done.Add(n)
	if x.Progress != nil {
		x.Progress(done, x.total)
	}
}

// finish puts a whole object to its place.
func (x *fetching) finish(p *partial) error {
	if x.SHA256 != "" && x.single {
		if err := x.checkSum(p.path); err != nil {
			return errors.Join(err, os.Remove(filepath.Join(x.Dir, sumsFile)))
		}
	}
	if dir := filepath.Dir(p.Name); dir != "." {
		if err := x.root.MkdirAll(dir, 0o755); err != nil {
			if errors.Is(err, fs.ErrExist) || isNotDir(err) {
				return fail(Invalid, "is both a file and a directory")
			}
			return local(err)
		}
	}
	if err := os.Chmod(p.path, 0o644); err != nil {
		return local(err)
	}
	// Nobody but us writes below the content directory, and names are local.
	if err := os.Rename(p.path, filepath.Join(x.Dir, ContentDir, p.Name)); err != nil {
		if isNotDir(err) {
			return fail(Invalid, "is both a file and a directory")
		}
		return local(err)
	}
	return nil
}

func (x *fetching) checkSum(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return local(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return local(err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != x.SHA256 {
		return fail(Invalid, "has the SHA-256 %s, and %s was expected", got, x.SHA256)
	}
	return nil
}

// isNotDir says that a file is where a directory is needed, or the reverse.
func isNotDir(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY)
}
