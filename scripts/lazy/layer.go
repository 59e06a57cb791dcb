package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"path"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/opencontainers/go-digest"
)

// file is one of the image.
type file struct {
	name string
	body []byte
}

// makeFiles makes an image as those of Python with its libraries are: a tenth of the bytes in small
// files, the rest in libraries of up to 16 MiB. Half of each compresses.
func makeFiles(total int) (files []file) {
	r := rand.New(rand.NewPCG(1, 2))
	body := func(n int) []byte {
		b := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			if i/4096%2 == 0 {
				for j := i; j < min(i+4096, n); j++ {
					b[j] = byte(r.Uint32())
				}
			}
		}
		return b
	}
	for left, i := total/10, 0; left > 0; i++ {
		n := 1<<10 + r.IntN(31<<10)
		files = append(files, file{fmt.Sprintf("lib/p%d/m%d.py", i/40, i%40), body(n)})
		left -= n
	}
	for left, i := total-total/10, 0; left > 0; i++ {
		n := 1<<20 + r.IntN(15<<20)
		files = append(files, file{fmt.Sprintf("lib/p%d/n%d.so", i, i), body(n)})
		left -= n
	}
	return files
}

// workingSet are files of about that part of the bytes, of small and large ones alike, in an order of its own.
func workingSet(files []file, part float64) (needed []file) {
	r := rand.New(rand.NewPCG(3, 4))
	total := 0
	for _, f := range files {
		total += len(f.body)
	}
	read, small := 0, 0
	for _, i := range r.Perm(len(files)) {
		f := files[i]
		if len(f.body) < 1<<20 && float64(small) >= part*float64(total)/10 || float64(read) >= part*float64(total) {
			continue
		}
		needed = append(needed, f)
		read += len(f.body)
		if len(f.body) < 1<<20 {
			small += len(f.body)
		}
	}
	return needed
}

// layer is a packed one: a gzip that every registry and node reads, and eStargz.
type layer struct {
	blob              []byte
	digest, diff, toc digest.Digest
	manifest, config  []byte
}

// makeLayer packs files, those that come first in the order of use where there are such.
func makeLayer(files, first []file) (*layer, error) {
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	made := map[string]bool{}
	for _, f := range files {
		for _, dir := range []string{"lib/", path.Dir(f.name) + "/"} {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.body))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	options := []estargz.Option{estargz.WithCompressionLevel(gzip.BestSpeed)}
	if len(first) > 0 {
		var names []string
		for _, f := range first {
			names = append(names, f.name)
		}
		options = append(options, estargz.WithPrioritizedFiles(names))
	}
	packed, err := estargz.Build(io.NewSectionReader(bytes.NewReader(raw.Bytes()), 0, int64(raw.Len())), options...)
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	defer packed.Close()
	l := &layer{}
	if l.blob, err = io.ReadAll(packed); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	l.digest, l.diff, l.toc = digest.FromBytes(l.blob), packed.DiffID(), packed.TOCDigest()
	l.config = fmt.Appendf(nil, `{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[%q]}}`, l.diff)
	l.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":%q,"size":%d,"annotations":{%q:%q}}]}`,
		digest.FromBytes(l.config), len(l.config), l.digest, len(l.blob), estargz.TOCJSONDigestAnnotation, l.toc)
	return l, nil
}
