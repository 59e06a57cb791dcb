// Package imagetest builds small container images in code, without network
// and other tools, and puts them where a node can pull them from. It is for
// tests and for trying things out. Equal options give equal bytes.
package imagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is an entry of a layer.
type File struct {
	Name string // without leading slash; directories may end in one
	Mode int64  // permissions with set-id bits; 0: 0755 for directories, else 0644
	Body []byte
	Link string // target: makes a symlink
	Dir  bool
	UID  int
	GID  int
}

// Options of Build.
type Options struct {
	// Busybox puts a root file system with busybox and its applets below the
	// layers; see Busybox.
	Busybox bool
	Layers  [][]File // lowest first, after Busybox
	Zstd    bool     // compress layers by zstd instead of gzip
	Config  v1.Config
	// Platform is os/architecture. Default: linux and this machine's.
	Platform string
}

// Build makes an image.
func Build(o Options) (v1.Image, error) {
	layers := slices.Clone(o.Layers)
	if o.Busybox {
		base, err := Busybox()
		if err != nil {
			return nil, err
		}
		layers = append([][]File{base}, layers...)
		if o.Config.Cmd == nil && o.Config.Entrypoint == nil {
			o.Config.Cmd = []string{"/bin/sh"}
		}
		if o.Config.Env == nil {
			o.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		}
	}
	var made []v1.Layer
	for i, files := range layers {
		raw, err := tarOf(files)
		if err != nil {
			return nil, fmt.Errorf("build layer %d: %w", i+1, err)
		}
		l, err := Layer(raw, o.Zstd)
		if err != nil {
			return nil, fmt.Errorf("build layer %d: %w", i+1, err)
		}
		made = append(made, l)
	}
	img, err := mutate.AppendLayers(empty.Image, made...)
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	return WithConfig(img, o.Config, o.Platform)
}

// WithConfig returns the image with that config and platform.
func WithConfig(img v1.Image, config v1.Config, platform string) (v1.Image, error) {
	if platform == "" {
		platform = "linux/" + runtime.GOARCH
	}
	old, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg := old.DeepCopy()
	cfg.OS, cfg.Architecture, _ = strings.Cut(platform, "/")
	cfg.Config = config
	cfg.Created = v1.Time{Time: epoch}
	return mutate.ConfigFile(img, cfg)
}

// Layer makes a layer of any bytes, which should be a tar.
func Layer(raw []byte, useZstd bool) (v1.Layer, error) {
	opts := []tarball.LayerOption{tarball.WithCompressionLevel(gzip.BestSpeed)}
	if useZstd {
		opts = []tarball.LayerOption{tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd)}
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}, opts...)
}

// epoch is the time of all files, so that equal input gives equal bytes.
var epoch = time.Unix(1_000_000_000, 0).UTC()

// tarOf writes the files in the given order. Missing parent directories are not
// added.
func tarOf(files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: f.Mode, Uid: f.UID, Gid: f.GID, Size: int64(len(f.Body)), ModTime: epoch}
		switch {
		case f.Link != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
		case f.Dir || strings.HasSuffix(f.Name, "/"):
			h.Typeflag, h.Size = tar.TypeDir, 0
			if h.Mode == 0 {
				h.Mode = 0o755
			}
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Name, err)
		}
		if h.Size > 0 {
			if _, err := w.Write(f.Body); err != nil {
				return nil, fmt.Errorf("write %s: %w", f.Name, err)
			}
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
