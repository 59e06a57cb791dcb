package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"gbatch/oci/atomicfile"
	"gbatch/oci/image/layout"
)

// privateImage is pulled by alice from a registry that lets mallory read what
// lies below mallory/ only.
func privateImage(t *testing.T, s *Store) (f *fakeRegistry, img v1.Image, digest string) {
	t.Helper()
	f = newRegistry(t)
	img = small(t, "alice's")
	r, digest := f.push(t, "team/b:1", img)
	f.private()
	pull(t, s, r, login("alice"))
	f.reset()
	return f, img, digest
}

// A registry that says that it has an image is believed only of what it served.
func TestAnotherRegistrysDigestIsNotBelieved(t *testing.T) {
	s := open(t, Config{Retries: -1})
	_, _, digest := privateImage(t, s)
	hostile := newRegistry(t)
	hostile.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			w.Header().Set("Content-Length", "1000")
			return true
		}
		return false
	})
	for _, name := range []string{"x/y:1", "x/y@" + digest} {
		if img, err := s.Pull(t.Context(), PullRequest{Ref: hostile.ref(t, name)}); err == nil {
			t.Errorf("%s gave %v", name, img.Layers)
		}
	}
}

// madeUp pushes, under a name, a manifest of an attacker's own: its layers are
// what desc makes of those of an image, and its config names the image's.
func madeUp(t *testing.T, f *fakeRegistry, name string, img v1.Image, desc func(v1.Descriptor) v1.Descriptor) {
	t.Helper()
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = append(bytes.TrimSuffix(bytes.TrimSpace(config), []byte("}")), []byte(`,"author":"mallory"}`)...)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m = m.DeepCopy()
	m.Config.Digest, m.Config.Size, _ = v1.SHA256(bytes.NewReader(config))
	for i := range m.Layers {
		m.Layers[i] = desc(m.Layers[i])
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	repository, tag, _ := strings.Cut(name, ":")
	sum, _, _ := v1.SHA256(bytes.NewReader(raw))
	f.extra(t, map[string][]byte{
		"/v2/" + repository + "/manifests/" + tag:                    raw,
		"/v2/" + repository + "/manifests/" + sum.String():           raw,
		"/v2/" + repository + "/blobs/" + m.Config.Digest.String():   config,
		"/v2/" + repository + "/blobs/" + ownBlob(t).Digest.String(): ownBytes,
	})
}

var ownBytes = gzipOf(tarOf([]entry{file("own", "of mallory")}))

func ownBlob(t *testing.T) v1.Descriptor {
	h, n, err := v1.SHA256(bytes.NewReader(ownBytes))
	if err != nil {
		t.Fatal(err)
	}
	return v1.Descriptor{MediaType: types.DockerLayer, Digest: h, Size: n}
}

// extra serves documents beside what is in the registry. A HEAD for any blob
// is answered well, as a hostile registry would.
func (f *fakeRegistry) extra(t *testing.T, docs map[string][]byte) {
	f.mu.Lock()
	before := f.fault
	f.mu.Unlock()
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if body, ok := docs[r.URL.Path]; ok {
			h, _, _ := v1.SHA256(bytes.NewReader(body))
			w.Header().Set("Docker-Content-Digest", h.String())
			w.Header().Set("Content-Type", string(types.DockerManifestSchema2))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
			return true
		}
		return before != nil && before(w, r)
	})
}

// A manifest that names another's layers gives them to nobody: neither from a
// registry that claims to have them, nor from the very registry that has.
func TestMadeUpManifestsGiveNothing(t *testing.T) {
	same := func(d v1.Descriptor) v1.Descriptor { return d }
	cases := map[string]func(t *testing.T, f *fakeRegistry, img v1.Image) (host *fakeRegistry, name string){
		"claims to have the blobs": func(t *testing.T, _ *fakeRegistry, img v1.Image) (*fakeRegistry, string) {
			hostile := newRegistry(t)
			hostile.setFault(func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/")
			})
			madeUp(t, hostile, "x/y:1", img, same)
			return hostile, "x/y:1"
		},
		"sends other bytes for the blobs": func(t *testing.T, _ *fakeRegistry, img v1.Image) (*fakeRegistry, string) {
			hostile := newRegistry(t)
			madeUp(t, hostile, "x/y:1", img, func(v1.Descriptor) v1.Descriptor { return ownBlob(t) })
			return hostile, "x/y:1"
		},
		"own blobs at the same registry": func(t *testing.T, f *fakeRegistry, img v1.Image) (*fakeRegistry, string) {
			madeUp(t, f, "mallory/y:1", img, func(v1.Descriptor) v1.Descriptor { return ownBlob(t) })
			return f, "mallory/y:1"
		},
		"foreign blobs at the same registry": func(t *testing.T, f *fakeRegistry, img v1.Image) (*fakeRegistry, string) {
			madeUp(t, f, "mallory/y:1", img, same)
			// As registries do, whose blobs belong to a repository.
			before := f.fault
			f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
				if before(w, r) {
					return true
				}
				w.WriteHeader(http.StatusNotFound)
				return true
			})
			return f, "mallory/y:1"
		},
	}
	for name, attack := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := open(t, Config{Retries: -1})
			f, img, _ := privateImage(t, s)
			host, name := attack(t, f, img)
			got, err := s.Pull(t.Context(), PullRequest{Ref: host.ref(t, name), Credentials: login("mallory")})
			if err == nil {
				t.Fatalf("got %v", got.Layers)
			}
			if e := err.(*PullError); e.Fault() == FaultNode {
				t.Errorf("the node's fault: %v", e)
			}
		})
	}
}

// Those who may have a layer are not kept waiting: at the registry that served
// it a question is enough; another registry has to show the bytes, once.
func TestLayersAreSharedWithProof(t *testing.T) {
	s := open(t, Config{})
	f, img, digest := privateImage(t, s)
	f.setFault(nil)
	again, _ := f.push(t, "other/b:1", img)
	other := newRegistry(t)
	elsewhere, _ := other.push(t, "a/b:1", img)
	elsewhere2, _ := other.push(t, "a/c:1", img)
	f.private()

	pull(t, s, again, login("bob"))
	if f.count("HEAD", "/blobs/") != 2 || f.count("GET", "/blobs/") != 1 {
		t.Errorf("of bob: %v", f.seen)
	}
	f.reset()
	pull(t, s, again.WithDigest(digest), login("bob"))
	if len(f.seen) != 0 {
		t.Errorf("of bob again: %v", f.seen)
	}
	pull(t, s, elsewhere, login("carol"))
	if n := other.count("GET", "/blobs/"); n != 3 {
		t.Errorf("carol downloaded %d blobs, want 3: %v", n, other.seen)
	}
	other.reset()
	pull(t, s, elsewhere2, login("carol"))
	if other.count("GET", "/blobs/") != 1 || other.count("HEAD", "/blobs/") != 0 {
		t.Errorf("of carol again: %v", other.seen)
	}
	if n := len(names(t, s.layout.Layers)); n != 2 {
		t.Errorf("%d layers in the store", n)
	}
	// What was proven is known after a restart, and no password is kept.
	s.Close()
	s = open(t, Config{Dir: s.config.Dir})
	other.Close()
	pull(t, s, elsewhere.WithDigest(digest), login("carol"))
	for _, dir := range names(t, s.layout.Layers) {
		var info unpacked
		if err := atomicfile.ReadJSON(filepath.Join(s.layout.Layers, dir, layout.MarkerName), &info); err != nil || len(info.Granted) != 3 || strings.Contains(fmt.Sprint(info), "carolcarol") {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// What a file on the node claims is no better than what a registry claims.
func TestLocalFilesProveLayersToo(t *testing.T) {
	root := t.TempDir()
	s := open(t, Config{LocalRoots: []string{root}})
	_, img, digest := privateImage(t, s)
	raw, _ := img.RawManifest()
	hash, _ := v1.NewHash(digest)
	config, _ := img.RawConfigFile()
	name, _ := img.ConfigName()
	write(t, filepath.Join(root, "fake"), "index.json", fmt.Sprintf(`{"manifests":[{"digest":%q,"size":%d}]}`, digest, len(raw)))
	for _, have := range []string{"nothing", "manifest and config"} {
		r := parse(t, "oci:"+root+"/fake")
		if have != "nothing" {
			write(t, filepath.Join(root, "fake/blobs/sha256"), hash.Hex, string(raw))
			write(t, filepath.Join(root, "fake/blobs/sha256"), name.Hex, string(config))
		}
		_, err := s.Pull(t.Context(), PullRequest{Ref: r})
		wantError(t, err, NotFound, "no such file on the node")
		_, err = s.Pull(t.Context(), PullRequest{Ref: r.WithDigest(digest)})
		wantError(t, err, NotFound, "no such file on the node")
	}
}

// Rights are bounded, and the oldest go first.
func TestRememberedRightsAreBounded(t *testing.T) {
	var list []string
	for i := range maxGrants + 10 {
		list = remember(remember(list, fmt.Sprint(i)), fmt.Sprint(i))
	}
	if len(list) != maxGrants || list[0] != "10" {
		t.Errorf("%d rights, the first %s", len(list), list[0])
	}
}
