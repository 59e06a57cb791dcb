// Package archive keeps files of the controller's as objects in a bucket of S3
// that the site's administrator names. It knows nothing of what they are.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Place is where objects are kept, and who asks.
type Place struct {
	URI      string // s3://BUCKET or s3://BUCKET/PREFIX
	Endpoint string // https://HOST[:PORT]; empty: Amazon's
	Region   string // empty: what the endpoint says
	KeyFile  string // its first two words are the access key and the secret one
}

// amazon is what s3:// means where nobody says anything else.
const amazon = "s3.amazonaws.com"

// Check says what is wrong with a place.
func (p Place) Check() error {
	_, _, err := p.parse()
	return err
}

func (p Place) parse() (at *url.URL, endpoint *url.URL, err error) {
	if at, err = url.Parse(p.URI); err != nil || at.Scheme != "s3" || at.Host == "" || at.RawQuery != "" || at.Fragment != "" {
		return nil, nil, errors.New("want s3://BUCKET/PREFIX")
	}
	endpoint = &url.URL{Scheme: "https", Host: amazon}
	if p.Endpoint != "" {
		if endpoint, err = url.Parse(p.Endpoint); err != nil || endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" {
			return nil, nil, errors.New("the endpoint is no https://HOST[:PORT]")
		}
	}
	return at, endpoint, nil
}

// Bucket is a place that is in use.
type Bucket struct {
	client       *minio.Client
	name, prefix string
}

// requestTime bounds the wait for an answer to begin.
const requestTime = 30 * time.Second

// New checks where the bucket is. Nothing is asked of it yet.
func New(p Place) (*Bucket, error) {
	at, endpoint, err := p.parse()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = requestTime
	c, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.New(&keys{file: p.KeyFile}), Secure: endpoint.Scheme == "https", Region: p.Region, Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{client: c, name: at.Host, prefix: strings.Trim(at.Path, "/")}, nil
}

// Put makes or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, body *io.SectionReader) error {
	_, err := b.client.PutObject(ctx, b.name, path.Join(b.prefix, name), body, body.Size(), minio.PutObjectOptions{ContentType: "application/gzip"})
	return err
}

// Get opens an object; nil without an error: there is none.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, path.Join(b.prefix, name), minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	if _, err = o.Stat(); err == nil {
		return o, nil
	}
	o.Close()
	if r := minio.ToErrorResponse(err); r.Code == "NoSuchKey" {
		return nil, nil
	}
	return nil, err
}

// keys reads them anew for each request, so that they can be changed at any time.
type keys struct{ file string }

func (k *keys) IsExpired() bool { return true }

func (k *keys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

func (k *keys) Retrieve() (credentials.Value, error) {
	st, err := os.Stat(k.file)
	if err != nil {
		return credentials.Value{}, fmt.Errorf("read keys: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return credentials.Value{}, fmt.Errorf("read keys: %s can be read by others than its owner: chmod 600 %s", k.file, k.file)
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return credentials.Value{}, fmt.Errorf("read keys: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) != 2 {
		return credentials.Value{}, fmt.Errorf("read keys: %s has %d words, want two: the access key and the secret key", k.file, len(words))
	}
	return credentials.Value{AccessKeyID: words[0], SecretAccessKey: words[1], SignerType: credentials.SignatureV4}, nil
}
