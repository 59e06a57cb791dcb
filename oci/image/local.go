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
	"path/filepath"
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

// localSource opens a local image. The file is opened below one of the
// allowed roots, and nothing that it links to outside of them is read.
func (s *Store) localSource(r ref.Ref) (source, io.Closer, error) {
	root, name, err := s.openRoot(r.Path)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	if r.Transport == ref.OCILayout {
		dir, err := root.OpenRoot(name)
		if err != nil {
			return nil, nil, localError(err)
		}
		return &layoutSource{ref: r, files: rootFiles{dir}}, dir, nil
	}
	f, err := openRegular(root, name)
	if err != nil {
		return nil, nil, localError(err)
	}
	index, err := indexTar(f)
	if err == nil && r.Transport == ref.DockerArchive {
		var src source
		if src, err = newDockerSource(r, index); err == nil {
			return src, f, nil
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, localError(err)
	}
	return &layoutSource{ref: r, files: index}, f, nil
}

func (s *Store) openRoot(path string) (*os.Root, string, error) {
	for _, dir := range s.config.LocalRoots {
		name, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", localError(err)
		}
		return root, name, nil
	}
	if len(s.config.LocalRoots) == 0 {
		return nil, "", fail(Denied, "this node takes no images from local files")
	}
	return nil, "", fail(Denied, "local images must lie below %s on this node", strings.Join(s.config.LocalRoots, " or "))
}

// openRegular opens a file without waiting for the other end of a FIFO.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail(BadReference, "%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func localError(err error) *PullError {
	e := classifyLocal(err)
	if e.Kind == Internal && errors.Is(err, fs.ErrPermission) {
		e.Kind = Denied
	}
	if e.Kind == Internal && strings.Contains(err.Error(), "escapes") {
		e.Kind, e.Detail = Denied, "the path leads out of the directories that local images may lie in"
	}
	return e
}

type rootFiles struct{ dir *os.Root }

func (r rootFiles) open(name string) (io.ReadCloser, int64, error) {
	f, err := openRegular(r.dir, name)
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

func (l *layoutSource) resolve(context.Context) (v1.Hash, string, error) {
	if l.ref.Digest != "" {
		digest, err := v1.NewHash(l.ref.Digest)
		return digest, anyone, err
	}
	raw, err := readFile(l.files, "index.json")
	if err != nil {
		return v1.Hash{}, "", localError(err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return v1.Hash{}, "", wrap(Corrupt, err, "its index.json cannot be read")
	}
	digest, err := l.choose(index.Manifests)
	return digest, anyone, err
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

func (l *layoutSource) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	rc, _, err := l.files.open(blobName(d.Digest))
	if err != nil {
		return nil, localError(err)
	}
	return newVerifier(rc, d.Digest), nil
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
