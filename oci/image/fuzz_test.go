package image

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/oci/image/unpack"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// FuzzUnpack feeds any bytes: nothing outside of the layer changes, and what
// is refused is refused as the layer's fault.
func FuzzUnpack(f *testing.F) {
	for _, l := range hostileLayers() {
		raw := l.raw
		if raw == nil {
			raw = tarOf(l.entries)
		}
		if len(raw) < 1<<14 {
			f.Add(raw)
		}
	}
	needRoot(f)
	outside := f.TempDir()
	root := filepath.Join(outside, "store", "fs")
	write(f, filepath.Dir(root), "beside", "untouched")
	write(f, outside, "sentinel", "untouched")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
		write(t, root, "own", "")
		before := snapshot(t, outside, root)
		err := unpackAll(t, root, raw)
		if diff := before.changes(snapshot(t, outside, root)); diff != "" {
			t.Errorf("changed outside of the layer: %s", diff)
		}
		if err != nil {
			e := classifyLocal(err)
			if e.Kind != Corrupt && e.Kind != Unsupported && e.Kind != Internal {
				t.Fatalf("kind %s: %v", e.Kind, err)
			}
			if strings.Contains(e.Detail, root) {
				t.Errorf("sentence %q", e.Detail)
			}
		}
		checkNoDevices(t, root)
	})
}

// FuzzDecompress reads any bytes as a layer is read, and never more than it may.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add(gzipOf([]byte("x")))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x01, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := unpack.Layer(t.Context(), bytes.NewReader(raw), unpack.Target{DiffID: v1.Hash{Algorithm: "sha256", Hex: noBlob[7:]}, MaxBytes: 1 << 20})
		if e := classifyLocal(classifyUnpack(err)); e.Fault() == FaultNode || e.Kind == NotFound {
			t.Errorf("%s: %v", e.Kind, err)
		}
	})
}

// FuzzManifest reads any bytes as an index, a manifest and a config.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestWith(someConfig, someLayer)))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"` + noBlob + `","platform":{"os":"linux","architecture":"amd64"}}]}`))
	f.Add([]byte(`{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":["` + noBlob + `"]},"config":{"Env":["A=b"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		isIndex(raw)
		_, errs := choosePlatform(raw, "linux/amd64")
		m, err := parseManifest(raw)
		cfg, err2 := parseConfig(raw, "linux/amd64")
		for _, err := range []error{errs, err, err2} {
			if err != nil && classifyLocal(err).Fault() == FaultNode {
				t.Errorf("the node's fault: %v", err)
			}
		}
		if err != nil || err2 != nil {
			return
		}
		configOf(cfg.Config)
		layers, err := pairLayers(m, cfg)
		for _, l := range layers {
			if l.desc.Size < 0 || len(l.diffID.Hex) != 64 || strings.ContainsAny(l.diffID.Hex, "/.") {
				t.Errorf("layer %+v", l)
			}
		}
	})
}

// FuzzArchive reads any bytes as an archive of an image.
func FuzzArchive(f *testing.F) {
	f.Add(tarOf([]entry{file("manifest.json", `[{"Config":"c","Layers":["l"]}]`), file("c", `{"rootfs":{"diff_ids":["`+noBlob+`"]}}`), file("l", "x")}))
	f.Add(tarOf([]entry{file("index.json", `{"manifests":[{"digest":"`+noBlob+`"}]}`)}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		write(t, dir, "a.tar", string(raw))
		a, err := os.Open(filepath.Join(dir, "a.tar"))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		index, err := indexTar(a)
		if err != nil {
			return
		}
		if src, err := newDockerSource(index); err == nil {
			_, _, _ = src.resolve(t.Context())
			_, _, _ = readBlob(t.Context(), src, v1.Descriptor{Digest: src.config})
		}
		layout := &layoutSource{files: index}
		_, _, _ = layout.resolve(t.Context())
	})
}

// FuzzReply reads any bytes as what a worker says, were it taken over: no
// directory that it names leads out of a layer.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"done":true,"layer":{"diffID":"` + noBlob + `","implicit":["/a","/a/../b","../x","/"]},"opaque":["a","../b","/c"]}`))
	f.Add([]byte(`{"error":{"kind":"internal","errno":28}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r reply
		if json.Unmarshal(raw, &r) != nil {
			return
		}
		if r.Error != nil {
			_ = r.Error.err()
		}
		if checkLayer(r.Layer, r.Opaque) != nil {
			return
		}
		for _, dir := range append(r.Layer.Implicit, r.Opaque...) {
			if at := filepath.Join("/layer/fs", dir); !strings.HasPrefix(at, "/layer/fs") || strings.Contains(dir, "..") && filepath.Clean("/"+dir) != "/"+strings.TrimPrefix(dir, "/") {
				t.Errorf("%q leads elsewhere", dir)
			}
		}
	})
}
