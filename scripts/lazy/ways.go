package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/pkg/reference"
	"github.com/containerd/stargz-snapshotter/estargz"
	lazyfs "github.com/containerd/stargz-snapshotter/fs"
	"github.com/containerd/stargz-snapshotter/fs/config"
	"github.com/containerd/stargz-snapshotter/fs/source"

	"gbatch/oci/image"
	"gbatch/oci/ref"
)

// whole pulls the image as gnoded does, and reads.
func whole(l *layer, over link, needed []file) (time.Duration, error) {
	s := serve(l, over)
	defer s.Close()
	dir, err := os.MkdirTemp("", "whole-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	store, err := image.Open(image.Config{Dir: dir + "/store", Dial: new(net.Dialer).DialContext})
	if err != nil {
		return 0, err
	}
	defer store.Close()
	r, _, err := ref.Parse(strings.TrimPrefix(s.URL, "http://") + "/a/b:1")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	img, err := store.Pull(context.Background(), image.PullRequest{Ref: r})
	if err != nil {
		return 0, err
	}
	err = read(img.Layers[0], needed)
	return time.Since(began), err
}

// how a lazy file system is set up.
type how struct {
	behind bool // fetches all else meanwhile
	ahead  bool // fetches what the image says is needed first, at once
}

// lazy mounts the image's layer, and reads.
func lazy(l *layer, over link, needed []file, h how) (took time.Duration, err error) {
	s := serve(l, over)
	defer s.Close()
	dir, err := os.MkdirTemp("", "lazy-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	host := strings.TrimPrefix(s.URL, "http://")
	hosts := func(reference.Spec) ([]docker.RegistryHost, error) {
		return []docker.RegistryHost{{Client: &http.Client{Transport: http.DefaultTransport}, Host: host, Scheme: "http", Path: "/v2", Capabilities: docker.HostCapabilityPull | docker.HostCapabilityResolve}}, nil
	}
	began := time.Now()
	// Requests of 50 kB, as it makes them by itself, take several times as long.
	fs, err := lazyfs.NewFilesystem(dir+"/state", config.Config{
		NoPrefetch: !h.ahead, NoBackgroundFetch: !h.behind, NoPrometheus: true,
		BlobConfig: config.BlobConfig{ChunkSize: 1 << 20}, MaxConcurrency: 4,
	}, lazyfs.WithGetSources(source.FromDefaultLabels(hosts)))
	if err != nil {
		return 0, err
	}
	at := dir + "/mount"
	if err := os.Mkdir(at, 0o755); err != nil {
		return 0, err
	}
	const of = "containerd.io/snapshot/remote/stargz."
	if err := fs.Mount(context.Background(), at, map[string]string{of + "reference": host + "/a/b:1", of + "digest": l.digest.String(), of + "layers": l.digest.String(), estargz.TOCJSONDigestAnnotation: l.toc.String()}); err != nil {
		return 0, fmt.Errorf("mount: %w", err)
	}
	defer func() {
		if e := fs.Unmount(context.Background(), at); e != nil && err == nil {
			_ = syscall.Unmount(at, syscall.MNT_DETACH)
			err = e
		}
	}()
	err = read(at, needed)
	return time.Since(began), err
}

// read reads files and compares them.
func read(dir string, files []file) error {
	for _, f := range files {
		in, err := os.Open(filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		got, err := io.ReadAll(in)
		in.Close()
		if err == nil && !bytes.Equal(got, f.body) {
			err = fmt.Errorf("%s: other bytes", f.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
