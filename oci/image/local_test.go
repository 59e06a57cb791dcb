package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
)

// localImages writes an image in each local form.
func localImages(t *testing.T, img v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, tag := range []string{"v1", "latest"} {
		if _, err := imagetest.WriteLayout(filepath.Join(root, "layout"), img, tag); err != nil {
			t.Fatal(err)
		}
	}
	if err := imagetest.WriteDockerArchive(filepath.Join(root, "docker.tar"), img, "some/name:1"); err != nil {
		t.Fatal(err)
	}
	tarDir(t, filepath.Join(root, "layout"), filepath.Join(root, "oci.tar"))
	return root
}

func tarDir(t *testing.T, dir, to string) {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	write(t, filepath.Dir(to), filepath.Base(to), out.String())
}

func TestLocalImages(t *testing.T) {
	img := small(t, "x")
	digest, _ := img.Digest()
	root := localImages(t, img)
	for _, name := range []string{"oci:R/layout", "oci:R/layout:v1", "oci-archive:R/oci.tar:v1", "oci-archive:R/oci.tar", "docker-archive:R/docker.tar"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := open(t, Config{LocalRoots: []string{"/nowhere", root}})
			r := parse(t, strings.Replace(name, "R", root, 1))
			got := pull(t, s, r, nil)
			if body, _ := os.ReadFile(got.Layers[1] + "/etc/seed"); string(body) != "x" || got.Config.User != "u:g" {
				t.Errorf("layer holds %q, config %+v", body, got.Config)
			}
			if !strings.HasPrefix(name, "docker") && got.Digest != digest.String() {
				t.Errorf("got %s, want %s", got.Digest, digest)
			}
			if again, err := s.Resolve(t.Context(), r, nil); err != nil || again != got.Digest {
				t.Errorf("Resolve = %s, %v; want %s", again, err, got.Digest)
			}
			// Pinned, it needs the file no more.
			moved := strings.TrimSuffix(filepath.Join(root, filepath.Base(r.Path)), "/")
			if err := os.Rename(moved, moved+".away"); err != nil {
				t.Fatal(err)
			}
			defer os.Rename(moved+".away", moved)
			pull(t, s, got.Ref, nil)
			_, err := s.Pull(t.Context(), PullRequest{Ref: r})
			wantError(t, err, NotFound, "no such file on the node")
		})
	}
}

func TestLocalImagesRefused(t *testing.T) {
	root := localImages(t, small(t, "x"))
	outside := localImages(t, small(t, "y"))
	if err := os.Symlink(outside+"/layout", root+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/oci.tar", root+"/link.tar"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(root+"/fifo.tar", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, root, "garbage.tar", strings.Repeat("garbage", 500))
	write(t, root, "plain.tar", string(tarOf([]entry{file("x", "")})))
	write(t, root, "two.tar", string(tarOf([]entry{file("manifest.json", `[{},{}]`)})))
	write(t, root, "loop.tar", string(tarOf([]entry{{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "manifest.json", Linkname: "manifest.json"}}})))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	raw, _ := os.Open(root + "/oci.tar")
	io.Copy(z, raw)
	raw.Close()
	z.Close()
	write(t, root, "oci.tar.gz", packed.String())

	cases := map[string]struct {
		name string
		kind Kind
		part string
	}{
		"outside":       {"oci:" + outside + "/layout", Denied, "must lie below " + root},
		"link":          {"oci:R/link", Denied, "leads out of the directories"},
		"link_file":     {"oci-archive:R/link.tar", Denied, "leads out of the directories"},
		"missing":       {"oci:R/none", NotFound, "no such file on the node"},
		"fifo":          {"oci-archive:R/fifo.tar", BadReference, "not a regular file"},
		"garbage":       {"oci-archive:R/garbage.tar", Corrupt, "not a readable tar"},
		"no_layout":     {"oci-archive:R/plain.tar", NotFound, "no such file"},
		"no_docker":     {"docker-archive:R/plain.tar", Unsupported, "no manifest.json"},
		"loop":          {"docker-archive:R/loop.tar", Unsupported, "no manifest.json"},
		"two_images":    {"docker-archive:R/two.tar", Unsupported, "holds 2 images"},
		"compressed":    {"oci-archive:R/oci.tar.gz", Unsupported, "compressed archive; unpack it"},
		"no_tag":        {"oci:R/layout:none", NotFound, "no tag none in it; it has v1, latest"},
		"file_as_dir":   {"oci:R/oci.tar", BadReference, "not a directory"},
		"dir_as_file":   {"oci-archive:R/layout", BadReference, "not a regular file"},
		"wrong_archive": {"oci-archive:R/docker.tar:x", NotFound, "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, Config{LocalRoots: []string{root}}).Pull(t.Context(), PullRequest{Ref: parse(t, strings.Replace(tc.name, "R", root, 1))})
			wantError(t, err, tc.kind, tc.part)
		})
	}
	_, err := open(t, Config{}).Pull(t.Context(), PullRequest{Ref: parse(t, "oci:"+root+"/layout")})
	wantError(t, err, Denied, "takes no images from local files")
}

func TestDamagedLocalLayer(t *testing.T) {
	img := small(t, "x")
	root := localImages(t, img)
	layers, _ := img.Layers()
	digest, _ := layers[1].Digest()
	name := filepath.Join(root, "layout/blobs/sha256", digest.Hex)
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[4]++ // the time in the gzip header: unpacks well, but is not what was promised
	write(t, filepath.Dir(name), digest.Hex, string(raw))
	s := open(t, Config{LocalRoots: []string{root}})
	_, err = s.Pull(t.Context(), PullRequest{Ref: parse(t, "oci:"+root+"/layout")})
	wantError(t, err, Corrupt, "layer 2 is corrupt: its bytes have digest sha256:")
	waitFor(t, func() bool { return len(names(t, s.layout.Tmp)) == 0 })
}
