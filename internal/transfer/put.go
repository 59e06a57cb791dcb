package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// wrapper makes a reader count.
type wrapper = func(io.Reader) io.Reader

// S3Sink is an object, or a prefix if the URI ends in a slash.
func (c *Client) S3Sink(at S3, uri string) (Sink, error) { return c.open(at, uri) }

// maxParts is what S3 takes of one object, less some.
const maxParts = 9000

// Put stores a file. A large one goes in parts, of which those that are there
// already are left out.
func (b *bucket) Put(ctx context.Context, w *sending, f *os.File, o Object, j *journal) error {
	key := b.key + o.Name
	if b.key != "" && !strings.HasSuffix(b.key, "/") && o.Name != "" {
		key = b.key + "/" + o.Name
	}
	if o.Size > b.c.chunk {
		return (&upload{bucket: b, sending: w, journal: j, object: o, key: key, size: max(b.c.chunk, (o.Size+maxParts-1)/maxParts)}).run(ctx, f)
	}
	return w.request(ctx, func(ctx context.Context, count wrapper) error {
		body := count(io.NewSectionReader(f, 0, o.Size))
		if o.Size == 0 {
			body = http.NoBody // else its length counts as unknown
		}
		_, err := b.core.PutObject(ctx, b.name, key, body, o.Size, "", "", minio.PutObjectOptions{})
		return s3Error(err)
	})
}

// upload is a large file that goes in parts.
type upload struct {
	*bucket
	*sending
	*journal
	object Object
	key    string
	size   int64          // of a part
	id     string         // the server's name for what has come of it
	there  map[int]string // ETags of the parts that have come, by number
}

func (u *upload) run(ctx context.Context, f *os.File) error {
	if err := u.resume(ctx); err != nil {
		return err
	}
	n := int((u.object.Size + u.size - 1) / u.size)
	parts := make([]minio.CompletePart, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, u.sending.c.Parallel))
	for i := range n {
		from := int64(i) * u.size
		length := min(u.size, u.object.Size-from)
		if tag := u.there[i+1]; tag != "" {
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: tag}
			u.tell(length)
			continue
		}
		group.Go(func() error {
			return u.request(gctx, func(ctx context.Context, count wrapper) error {
				body := count(io.NewSectionReader(f, from, length))
				p, err := u.core.PutObjectPart(ctx, u.name, u.key, u.id, i+1, body, length, minio.PutObjectPartOptions{})
				parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: p.ETag}
				return s3Error(err)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return u.request(ctx, func(ctx context.Context, _ wrapper) error {
		_, err := u.core.CompleteMultipartUpload(ctx, u.name, u.key, u.id, parts, minio.PutObjectOptions{})
		return s3Error(err)
	})
}

// resume finds what an earlier try has brought, or begins anew.
func (u *upload) resume(ctx context.Context) error {
	name := u.object.Name
	if u.Single {
		name = u.Names[0]
	}
	known := Object{Name: name, Version: u.object.Version}
	if u.id = u.journal.upload(known); u.id != "" {
		u.there = map[int]string{}
		err := u.request(ctx, u.listParts)
		if err == nil || ctx.Err() != nil {
			return err
		}
		u.there = nil // the server has thrown it away: begin anew
	}
	err := u.request(ctx, func(ctx context.Context, _ wrapper) (err error) {
		u.id, err = u.core.NewMultipartUpload(ctx, u.name, u.key, minio.PutObjectOptions{})
		return s3Error(err)
	})
	if err != nil {
		return err
	}
	return local(u.add(entry{Name: name, Version: u.object.Version, Upload: u.id}))
}

func (u *upload) listParts(ctx context.Context, _ wrapper) error {
	for marker := 0; ; {
		r, err := u.core.ListObjectParts(ctx, u.name, u.key, u.id, marker, 1000)
		if err != nil {
			return s3Error(err)
		}
		for _, p := range r.ObjectParts {
			if p.Size == min(u.size, u.object.Size-int64(p.PartNumber-1)*u.size) {
				u.there[p.PartNumber] = strings.Trim(p.ETag, `"`)
			}
		}
		if !r.IsTruncated || r.NextPartNumberMarker <= marker {
			return nil
		}
		marker = r.NextPartNumberMarker
	}
}

// DirSink is a directory of this machine. Files get the owner that they had
// where they come from, and the group that the directory gives. single is the
// name of a file that goes alone. The sink does not close root.
func DirSink(root *os.Root, single string) Sink { return dirSink{root, single} }

type dirSink struct {
	root   *os.Root
	single string
}

func (s dirSink) Close() {}

func (s dirSink) Put(ctx context.Context, w *sending, f *os.File, o Object, _ *journal) error {
	name := cmp.Or(o.Name, s.single)
	if dir := filepath.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o775); err != nil && !errors.Is(err, fs.ErrExist) {
			return fileError(dir, err)
		}
	}
	return w.request(ctx, func(_ context.Context, count wrapper) error {
		temp := copyName(name)
		if err := s.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError(name, err)
		}
		out, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return fileError(name, err)
		}
		_, err = io.Copy(out, readUntil(ctx, count(io.NewSectionReader(f, 0, o.Size))))
		if err == nil {
			err = asSource(out, f)
		}
		if err == nil {
			err = out.Sync()
		}
		err = errors.Join(err, out.Close())
		if err == nil {
			err = s.root.Rename(temp, name)
		}
		if err == nil || ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		_ = s.root.Remove(temp) // the first error counts
		return fileError(name, err)
	})
}

// readUntil ends with a context.
func readUntil(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// asSource gives a copy the owner and mode of what it is a copy of.
func asSource(out, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	// A file server may keep this from root.
	if err := unix.Fchown(int(out.Fd()), int(owner.Uid), -1); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return out.Chmod(st.Mode().Perm())
}
