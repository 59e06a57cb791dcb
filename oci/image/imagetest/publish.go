package imagetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gbatch/oci/ref"
)

// Push writes an image to a registry and returns its digest. The credentials
// may be nil.
func Push(r ref.Ref, img v1.Image, creds *ref.Credentials) (string, error) {
	target, opts, err := pushTarget(r, creds)
	if err == nil {
		err = remote.Write(target, img, opts...)
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", r.Familiar(), err)
	}
	return digestOf(img)
}

// PushIndex writes an image for several platforms, keyed by os/architecture.
func PushIndex(r ref.Ref, images map[string]v1.Image, creds *ref.Credentials) (string, error) {
	index, err := indexOf(images)
	if err != nil {
		return "", err
	}
	target, opts, err := pushTarget(r, creds)
	if err == nil {
		err = remote.WriteIndex(target, index, opts...)
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", r.Familiar(), err)
	}
	return digestOf(index)
}

func pushTarget(r ref.Ref, creds *ref.Credentials) (name.Reference, []remote.Option, error) {
	if r.Local() {
		return nil, nil, errors.New("not at a registry")
	}
	auth := authn.Anonymous
	if creds != nil {
		auth = &authn.Basic{Username: creds.Username, Password: creds.Password}
	}
	reg, err := name.NewRegistry(r.Registry)
	if err != nil {
		return nil, nil, err
	}
	return reg.Repo(r.Repository).Tag(r.Tag), []remote.Option{remote.WithAuth(auth)}, nil
}

// WriteLayout adds an image to a directory in OCI layout, which is made if it
// is not there, and returns its digest. An earlier image of that tag loses it.
func WriteLayout(dir string, img v1.Image, tag string) (string, error) {
	at, err := layout.FromPath(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(dir), 0o755); err == nil {
			at, err = layout.Write(dir, empty.Index)
		}
	}
	if err != nil {
		return "", fmt.Errorf("open layout %s: %w", dir, err)
	}
	tagged := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
	same := func(d v1.Descriptor) bool { return d.Annotations["org.opencontainers.image.ref.name"] == tag }
	if err := at.ReplaceImage(img, same, tagged); err != nil {
		return "", fmt.Errorf("write layout %s: %w", dir, err)
	}
	return digestOf(img)
}

// WriteDockerArchive writes an image as docker save does.
func WriteDockerArchive(file string, img v1.Image, tag string) error {
	t, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, t, img)
}

// indexOf makes one image of several, keyed by os/architecture.
func indexOf(images map[string]v1.Image) (v1.ImageIndex, error) {
	var parts []mutate.IndexAddendum
	for _, key := range slices.Sorted(maps.Keys(images)) {
		platform, err := v1.ParsePlatform(key)
		if err != nil {
			return nil, err
		}
		parts = append(parts, mutate.IndexAddendum{Add: images[key], Descriptor: v1.Descriptor{Platform: platform}})
	}
	return mutate.AppendManifests(empty.Index, parts...), nil
}

func digestOf(d interface{ Digest() (v1.Hash, error) }) (string, error) {
	h, err := d.Digest()
	return h.String(), err
}
