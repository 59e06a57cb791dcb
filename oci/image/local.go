package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"gbatch/oci/ref"
)

// files opens the parts of a local image by their name in it: a directory in
// OCI layout, or an archive.
type files interface {
	open(name string) (io.ReadCloser, int64, error)
}

// newLocalSource reads a local image, of which open opens files: the parts of a
// directory by name, or the archive by none.
func newLocalSource(r ref.Ref, open func(string) (*os.File, error)) (source, error) {
	if r.Transport == ref.OCILayout {
		return &layoutSource{ref: r, files: dirFiles{open}}, nil
	}
	f, err := open("")
	if err != nil {
		return nil, localError(err)
	}
	index, err := indexTar(f) // f is open as long as the index is in use
	if err != nil {
		f.Close()
		return nil, localError(err)
	}
	if r.Transport != ref.DockerArchive {
		return &layoutSource{ref: r, files: index}, nil
	}
	src, err := newDockerSource(index)
	if err != nil {
		return nil, localError(err)
	}
	return src, nil
}

func localError(err error) *PullError {
	e := classifyLocal(err)
	if e.Kind == Internal && errors.Is(err, fs.ErrPermission) {
		e.Kind = Denied
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok && e.Kind == Internal && slices.Contains(misnamed, errno) {
		e.Kind, e.Detail = BadReference, errno.Error()
	}
	if e.Kind == Internal && strings.Contains(err.Error(), "escapes") {
		e.Kind, e.Detail = Denied, "the path leads out of the directories that local images may lie in"
	}
	return e
}

// misnamed are errors of a path that leads to something else than an image.
var misnamed = []unix.Errno{unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL}

type dirFiles struct {
	openFile func(string) (*os.File, error)
}

func (d dirFiles) open(name string) (io.ReadCloser, int64, error) {
	f, err := d.openFile(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// layoutSource reads an OCI image layout.
type layoutSource struct {
	ref   ref.Ref
	files files
}

// refName is the annotation by which layouts carry tags.
const refName = "org.opencontainers.image.ref.name"

func (l *layoutSource) resolve(context.Context) (v1.Hash, bool, error) {
	if l.ref.Digest != "" {
		digest, err := v1.NewHash(l.ref.Digest)
		return digest, false, err
	}
	raw, err := readFile(l.files, "index.json")
	if err != nil {
		return v1.Hash{}, false, localError(err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return v1.Hash{}, false, wrap(Corrupt, err, "its index.json cannot be read")
	}
	digest, err := l.choose(index.Manifests)
	return digest, false, err
}

func (l *layoutSource) choose(manifests []v1.Descriptor) (v1.Hash, error) {
	if l.ref.Tag == "" && len(manifests) == 1 {
		return manifests[0].Digest, nil
	}
	want := l.ref.Tag
	if want == "" {
		want = "latest"
	}
	var has []string
	for _, d := range manifests {
		// Some tools write the whole name where others write the tag.
		tag := d.Annotations[refName]
		if tag == want || strings.HasSuffix(tag, ":"+want) {
			return d.Digest, nil
		}
		if tag != "" {
			has = append(has, tag)
		}
	}
	if len(has) == 0 {
		has = []string{"no tags"}
	}
	return v1.Hash{}, fail(NotFound, "no tag %s in it; it has %s", want, strings.Join(has, ", "))
}

func (l *layoutSource) manifest(_ context.Context, digest v1.Hash) ([]byte, error) {
	raw, err := readFile(l.files, blobName(digest))
	if err != nil {
		return nil, localError(err)
	}
	if err := checkBytes(raw, digest); err != nil {
		return nil, wrap(Corrupt, err, "its manifest does not match its digest")
	}
	return raw, nil
}

// has is no: that a file has the right name proves nothing, so it is read.
func (l *layoutSource) has(context.Context, v1.Descriptor) (bool, bool, error) {
	return false, false, nil
}

func (l *layoutSource) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, bool, error) {
	rc, _, err := l.files.open(blobName(d.Digest))
	if err != nil {
		return nil, false, localError(err)
	}
	return newVerifier(rc, d.Digest), false, nil
}

func blobName(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

func readFile(f files, name string) ([]byte, error) {
	rc, size, err := f.open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s in the image: %w", name, err)
	}
	defer rc.Close()
	if size > maxBlob {
		return nil, fail(Unsupported, "has a %s of more than %d bytes", name, maxBlob)
	}
	return io.ReadAll(io.LimitReader(rc, maxBlob))
}

// verifier fails at the end of a stream that does not have the digest.
type verifier struct {
	io.ReadCloser
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	want v1.Hash
}

func newVerifier(rc io.ReadCloser, want v1.Hash) io.ReadCloser {
	return &verifier{ReadCloser: rc, hash: sha256.New(), want: want}
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.want.Hex {
			return n, fail(Corrupt, "its bytes have digest sha256:%s, not %s", got, v.want)
		}
	}
	return n, err
}

// decodeJSON is for small files of an image.
func decodeJSON(f files, name string, into any) error {
	raw, err := readFile(f, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return wrap(Corrupt, err, "its %s cannot be read", name)
	}
	return nil
}
