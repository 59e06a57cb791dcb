package transfer

import (
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
func (b *bucket) Put(ctx context.Context, w *Sending, f *os.File, o Object, j *Journal) error {
	key := b.key + o.Name
	if b.key != "" && !strings.HasSuffix(b.key, "/") && o.Name != "" {
		key = b.key + "/" + o.Name
	}
	if o.Size > b.c.chunk {
		return b.putLarge(ctx, w, f, o, key, j)
	}
	return w.request(ctx, func(ctx context.Context, count wrapper) error {
		body := count(io.NewSectionReader(f, 0, o.Size))
		if o.Size == 0 {
			body = http.NoBody // else its length counts as unknown
		}
		_, err := b.core.PutObject(ctx, b.name, key, body, o.Size, "", "", minio.PutObjectOptions{})
		return putError(err)
	})
}

func (b *bucket) putLarge(ctx context.Context, w *Sending, f *os.File, o Object, key string, j *Journal) error {
	size := max(b.c.chunk, (o.Size+maxParts-1)/maxParts)
	upload, there, err := b.resume(ctx, w, o, key, size, j)
	if err != nil {
		return err
	}
	n := int((o.Size + size - 1) / size)
	parts := make([]minio.CompletePart, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, b.c.Parallel))
	for i := range n {
		from := int64(i) * size
		length := min(size, o.Size-from)
		if tag := there[i+1]; tag != "" {
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: tag}
			w.tell(length)
			continue
		}
		group.Go(func() error {
			return w.request(gctx, func(ctx context.Context, count wrapper) error {
				body := count(io.NewSectionReader(f, from, length))
				p, err := b.core.PutObjectPart(ctx, b.name, key, upload, i+1, body, length, minio.PutObjectPartOptions{})
				parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: p.ETag}
				return putError(err)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return w.request(ctx, func(ctx context.Context, _ wrapper) error {
		_, err := b.core.CompleteMultipartUpload(ctx, b.name, key, upload, parts, minio.PutObjectOptions{})
		return putError(err)
	})
}

// resume finds what an earlier try has brought of a large file, or begins anew.
func (b *bucket) resume(ctx context.Context, w *Sending, o Object, key string, size int64, j *Journal) (upload string, there map[int]string, err error) {
	name := o.Name
	if w.Single {
		name = w.Names[0]
	}
	known := Object{Name: name, Version: o.Version}
	if upload = j.upload(known); upload != "" {
		there = map[int]string{}
		err = w.request(ctx, func(ctx context.Context, _ wrapper) error { return b.listParts(ctx, key, upload, size, o.Size, there) })
		if err == nil {
			return upload, there, nil
		}
		if ctx.Err() != nil {
			return "", nil, err
		}
		// The server has thrown it away: begin anew.
	}
	err = w.request(ctx, func(ctx context.Context, _ wrapper) error {
		upload, err = b.core.NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{})
		return putError(err)
	})
	if err != nil {
		return "", nil, err
	}
	return upload, nil, local(j.add(entry{Name: name, Version: o.Version, Upload: upload}))
}

func (b *bucket) listParts(ctx context.Context, key, upload string, size, all int64, there map[int]string) error {
	for marker := 0; ; {
		r, err := b.core.ListObjectParts(ctx, b.name, key, upload, marker, 1000)
		if err != nil {
			return putError(err)
		}
		for _, p := range r.ObjectParts {
			if p.Size == min(size, all-int64(p.PartNumber-1)*size) {
				there[p.PartNumber] = strings.Trim(p.ETag, `"`)
			}
		}
		if !r.IsTruncated || r.NextPartNumberMarker <= marker {
			return nil
		}
		marker = r.NextPartNumberMarker
	}
}

// putError is s3Error in words for writing.
func putError(err error) error {
	if err == nil {
		return nil
	}
	return s3Error(err)
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

func (s dirSink) Put(ctx context.Context, w *Sending, f *os.File, o Object, _ *Journal) error {
	name := o.Name
	if name == "" {
		name = s.single
	}
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
