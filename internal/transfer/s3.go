package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 is where s3:// leads and who asks. Without keys the requests are not
// signed, which public buckets take.
type S3 struct {
	Endpoint  string // https://HOST[:PORT]; empty: Amazon's
	Region    string // empty: us-east-1, or what the bucket says at Amazon
	AccessKey string
	SecretKey string
	Token     string // of a session; empty: none
}

// amazon is what s3:// means where nobody says anything else.
const amazon = "s3.amazonaws.com"

// bucket is a place in S3.
type bucket struct {
	c         *Client
	core      *minio.Core
	transport way
	server    string // as https://HOST
	accessKey string // who asks; empty: nobody
	name      string
	key       string // of the object, or the beginning of several up to a slash
}

// bucket is that of a URI. Nothing is asked yet.
func (c *Client) bucket(at S3, uri string) (*bucket, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, fail(Invalid, "is no URI of the form s3://BUCKET/KEY")
	}
	host, secure := amazon, true
	if at.Endpoint != "" {
		e, err := url.Parse(at.Endpoint)
		if err != nil || e.Host == "" {
			return nil, fail(Invalid, "the S3 endpoint is no https://HOST[:PORT]")
		}
		if err := c.scheme(e.Scheme); err != nil {
			return nil, err
		}
		host, secure = e.Host, e.Scheme == "https"
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	region := at.Region
	if region == "" && host != amazon {
		region = "us-east-1"
	}
	b := &bucket{c: c, transport: c.transport(), server: scheme + host, accessKey: at.AccessKey, name: u.Host, key: strings.TrimPrefix(u.Path, "/")}
	b.core, err = minio.NewCore(host, &minio.Options{
		// Never what the machine has by itself: a role of the node is not the job's.
		Creds:  credentials.NewStaticV4(at.AccessKey, at.SecretKey, at.Token),
		Secure: secure, Transport: bounded{b.transport}, Region: region, MaxRetries: 1,
	})
	if err != nil {
		return nil, fail(Invalid, "the S3 endpoint cannot be used: %s", plain(err))
	}
	return b, nil
}

// S3Source is an object, or all objects below a prefix that ends in a slash.
func (c *Client) S3Source(at S3, uri string) (Source, error) { return c.bucket(at, uri) }

func (b *bucket) Close() { b.transport.CloseIdleConnections() }

func (b *bucket) List(ctx context.Context) ([]Object, error) {
	var list []Object
	err := b.c.retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		if b.key == "" || strings.HasSuffix(b.key, "/") {
			list, err = b.listPrefix(ctx)
		} else {
			list, err = b.stat(ctx)
		}
		return false, err
	})
	return list, err
}

func (b *bucket) stat(ctx context.Context) ([]Object, error) {
	ctx, cancel := context.WithTimeout(ctx, b.c.Stall)
	defer cancel()
	ctx, _ = withListing(ctx)
	st, err := b.core.StatObject(ctx, b.name, b.key, minio.StatObjectOptions{})
	if err != nil {
		return nil, s3Error(err)
	}
	return []Object{{Size: st.Size, Version: st.ETag}}, shortNames(st.ETag)
}

func (b *bucket) listPrefix(ctx context.Context) ([]Object, error) {
	late := fail(Unreachable, "the list of its objects did not come within %s", 10*b.c.Stall)
	ctx, cancel := context.WithTimeoutCause(ctx, 10*b.c.Stall, late)
	defer cancel()
	ctx, pages := withListing(ctx)
	var list []Object
	for o := range b.core.Client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.key, Recursive: true}) {
		if o.Err != nil {
			return nil, cmp.Or(context.Cause(ctx), s3Error(o.Err))
		}
		pages.objects++
		name := strings.TrimPrefix(o.Key, b.key)
		if name == "" || strings.HasSuffix(name, "/") {
			continue // programs mark empty directories so
		}
		if err := shortNames(o.Key, o.ETag); err != nil {
			return nil, err
		}
		if len(list) >= maxObjects {
			return nil, fail(TooLarge, "has more than %d objects", maxObjects)
		}
		list = append(list, Object{Name: name, Size: o.Size, Version: o.ETag})
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fail(NotFound, "there is no object with this prefix")
	}
	return list, nil
}

func (b *bucket) Open(ctx context.Context, o Object, from, to int64) (io.ReadCloser, error) {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(from, to-1); err != nil {
		return nil, fail(Invalid, "cannot be read from %d on", from)
	}
	if o.Version != "" {
		if err := opts.SetMatchETag(o.Version); err != nil {
			return nil, fail(Invalid, "has an ETag that cannot be used")
		}
	}
	body, _, _, err := b.core.GetObject(context.WithValue(ctx, contentKey{}, true), b.name, b.key+o.Name, opts)
	if err != nil {
		return nil, s3Error(err)
	}
	return part(body, to-from), nil
}

// s3Error says what an answer means for a transfer. What is not answered stays
// as it is.
func s3Error(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	r, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || r.Code == "" && r.StatusCode == 0 {
		return err
	}
	said := r.Code
	switch {
	case r.Code == "NoSuchBucket":
		return fail(NotFound, "there is no bucket of this name")
	case r.Code == "NoSuchKey" || r.StatusCode == 404:
		return fail(NotFound, "there is no such object")
	case r.Code == "InvalidAccessKeyId" || r.Code == "SignatureDoesNotMatch" || r.Code == "InvalidToken" || r.Code == "ExpiredToken":
		return fail(Denied, "the server does not take the keys (%s); check the job's secrets", said)
	case r.StatusCode == 401 || r.StatusCode == 403 || r.Code == "AccessDenied":
		return fail(Denied, "access was denied; check the job's secrets and the bucket's rights")
	case r.StatusCode == 412 || r.Code == "PreconditionFailed":
		return fail(Invalid, "was changed while it was being fetched")
	case r.StatusCode == 408 || r.StatusCode == 429 || r.StatusCode >= 500 || r.Code == "SlowDown" || r.Code == "RequestTimeout" || r.Code == "InternalError":
		return errors.New("the server answered " + said)
	}
	return fail(Invalid, "the server answered %s", said)
}
