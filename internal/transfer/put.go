package transfer

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// wrapper makes a reader count.
type wrapper = func(io.Reader) io.Reader

// S3Sink is an object, or a prefix if the URI ends in a slash.
func (c *Client) S3Sink(at S3, uri string) (Sink, error) { return c.bucket(at, uri) }

// maxParts is what S3 takes of one object, less some.
const maxParts = 9000

// Put stores a file. A large one goes in parts, of which those that are there
// already are left out.
func (b *bucket) Put(ctx context.Context, w *sending, f *os.File, o Object, j *journal) error {
	key := b.key + o.Name
	if b.key != "" && !strings.HasSuffix(b.key, "/") && o.Name != "" {
		key = b.key + "/" + o.Name
	}
	if o.Size > b.c.pieceSize {
		return (&upload{bucket: b, sending: w, journal: j, object: o, key: key, size: max(b.c.pieceSize, (o.Size+maxParts-1)/maxParts)}).run(ctx, f)
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
	n := u.parts()
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
				if err == nil {
					err = shortNames(p.ETag)
				}
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

// parts is how many it goes in.
func (u *upload) parts() int { return int((u.object.Size + u.size - 1) / u.size) }

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
		if u.id, err = u.core.NewMultipartUpload(ctx, u.name, u.key, minio.PutObjectOptions{}); err == nil {
			err = shortNames(u.id)
		}
		return s3Error(err)
	})
	if err != nil {
		return err
	}
	return local(u.add(entry{Name: name, Version: u.object.Version, Upload: u.id}))
}

// listParts asks for no more than the object has, however many the server lists.
func (u *upload) listParts(ctx context.Context, _ wrapper) error {
	for marker, n := 0, u.parts(); ; {
		r, err := u.core.ListObjectParts(ctx, u.name, u.key, u.id, marker, 1000)
		if err != nil {
			return s3Error(err)
		}
		for _, p := range r.ObjectParts {
			if p.PartNumber < 1 || p.PartNumber > n || len(p.ETag) > maxCalled {
				continue
			}
			if p.Size == min(u.size, u.object.Size-int64(p.PartNumber-1)*u.size) {
				u.there[p.PartNumber] = strings.Trim(p.ETag, `"`)
			}
		}
		if !r.IsTruncated || r.NextPartNumberMarker <= marker || r.NextPartNumberMarker >= n {
			return nil
		}
		marker = r.NextPartNumberMarker
	}
}
