package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"gbatch/oci/image/unpack"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tarIndex gives access to the files of a tar by name, without unpacking it.
type tarIndex struct {
	file    *os.File
	entries map[string]tarEntry
}

type tarEntry struct {
	offset, size int64
	link         string // name of another entry
}

// maxArchiveEntries is far above what image archives hold.
const maxArchiveEntries = 100_000

func indexTar(f *os.File) (*tarIndex, error) {
	var magic [4]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 4 && unpack.Compressed(magic[:]) {
		return nil, fail(Unsupported, "is a compressed archive; unpack it to a plain .tar")
	}
	t := &tarIndex{file: f, entries: map[string]tarEntry{}}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, wrap(Corrupt, err, "is not a readable tar archive")
		}
		if len(t.entries) == maxArchiveEntries {
			return nil, fail(Unsupported, "is an archive of more than %d files", maxArchiveEntries)
		}
		name := path.Clean("/" + h.Name)[1:]
		switch h.Typeflag {
		case tar.TypeReg:
			// The reader stands at the first byte of the file.
			offset, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			t.entries[name] = tarEntry{offset: offset, size: h.Size}
		case tar.TypeSymlink:
			t.entries[name] = tarEntry{link: path.Join("/", path.Dir(name), h.Linkname)[1:]}
		case tar.TypeLink:
			t.entries[name] = tarEntry{link: path.Clean("/" + h.Linkname)[1:]}
		}
	}
}

func (t *tarIndex) open(name string) (io.ReadCloser, int64, error) {
	name = path.Clean("/" + name)[1:]
	e, ok := t.entries[name]
	for range 8 { // links to links
		if !ok || e.link == "" {
			break
		}
		e, ok = t.entries[e.link]
	}
	if !ok || e.link != "" {
		return nil, 0, fmt.Errorf("%s in the archive: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.file, e.offset, e.size)), e.size, nil
}

// dockerSource reads what docker save writes. Such an archive has no manifest
// in today's sense, so one is made, always the same for the same image, with
// the layers as they are unpacked. Its digest pins the image.
type dockerSource struct {
	files  *tarIndex
	digest v1.Hash
	raw    []byte
	names  map[v1.Hash]string // file of each layer and of the config
	config v1.Hash
}

func newDockerSource(files *tarIndex) (*dockerSource, error) {
	var list []struct {
		Config string
		Layers []string
	}
	if err := decodeJSON(files, "manifest.json", &list); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail(Unsupported, "is no docker archive: it has no manifest.json")
		}
		return nil, err
	}
	if len(list) != 1 {
		return nil, fail(Unsupported, "holds %d images where one is expected; save one per file", len(list))
	}
	rawConfig, err := readFile(files, list[0].Config)
	if err != nil {
		return nil, err
	}
	cfg, err := v1.ParseConfigFile(bytes.NewReader(rawConfig))
	if err != nil {
		return nil, wrap(Corrupt, err, "its config cannot be read")
	}
	if len(cfg.RootFS.DiffIDs) != len(list[0].Layers) {
		return nil, fail(Corrupt, "has %d layers in its manifest and %d in its config", len(list[0].Layers), len(cfg.RootFS.DiffIDs))
	}
	src := &dockerSource{files: files, names: map[v1.Hash]string{}}
	if src.config, _, err = v1.SHA256(bytes.NewReader(rawConfig)); err != nil {
		return nil, err
	}
	src.names[src.config] = list[0].Config
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: src.config, Size: int64(len(rawConfig))}}
	for i, id := range cfg.RootFS.DiffIDs {
		name := list[0].Layers[i]
		_, size, err := files.open(name)
		if err != nil {
			return nil, err
		}
		src.names[id] = name
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.OCIUncompressedLayer, Digest: id, Size: size})
	}
	if src.raw, err = json.Marshal(m); err != nil {
		return nil, err
	}
	src.digest, _, err = v1.SHA256(bytes.NewReader(src.raw))
	return src, err
}

func (d *dockerSource) resolve(context.Context) (v1.Hash, bool, error) {
	return d.digest, false, nil
}

// has is no, as for a layout.
func (d *dockerSource) has(context.Context, v1.Descriptor) (bool, bool, error) {
	return false, false, nil
}

func (d *dockerSource) manifest(_ context.Context, digest v1.Hash) ([]byte, error) {
	if digest != d.digest {
		return nil, fail(NotFound, "the archive does not hold %s any more", digest)
	}
	return d.raw, nil
}

// blob needs no verifier: unpacking checks the diffID, and the config was
// hashed when the manifest was made.
func (d *dockerSource) blob(_ context.Context, desc v1.Descriptor) (io.ReadCloser, bool, error) {
	name, ok := d.names[desc.Digest]
	if !ok {
		return nil, false, fail(Corrupt, "%s is not in the archive", desc.Digest)
	}
	rc, _, err := d.files.open(name)
	if err != nil {
		return nil, false, localError(err)
	}
	return rc, false, nil
}
