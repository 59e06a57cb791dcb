package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// plan is all that must be known of an image before its layers.
type plan struct {
	digest   v1.Hash // of the index or manifest that the reference named
	manifest v1.Hash
	config   v1.Hash
	blobs    map[v1.Hash][]byte // these three
	layers   []layer            // lowest first, no duplicates
}

type layer struct {
	diffID v1.Hash // of the layer unpacked
	number int     // in the image, from 1, for messages
	desc   v1.Descriptor
}

// readPlan fetches and checks index, manifest and config.
func readPlan(ctx context.Context, src *origin, digest v1.Hash, platform string) (*plan, error) {
	p := &plan{digest: digest, manifest: digest, blobs: map[v1.Hash][]byte{}}
	raw, err := src.manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	p.blobs[digest] = raw
	if isIndex(raw) {
		if p.manifest, err = choosePlatform(raw, platform); err != nil {
			return nil, err
		}
		if raw, err = src.manifest(ctx, p.manifest); err != nil {
			return nil, err
		}
		p.blobs[p.manifest] = raw
	}
	m, err := parseManifest(raw)
	if err != nil {
		return nil, err
	}
	p.config = m.Config.Digest
	if p.digest.Algorithm != "sha256" || p.manifest.Algorithm != "sha256" || p.config.Algorithm != "sha256" {
		return nil, fail(Unsupported, "has a manifest or config with a digest that is not sha256")
	}
	rawConfig, err := src.config(ctx, m.Config)
	if err != nil {
		return nil, err
	}
	p.blobs[p.config] = rawConfig
	cfg, err := parseConfig(rawConfig, platform)
	if err != nil {
		return nil, err
	}
	if p.layers, err = pairLayers(m, cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// isIndex goes by content: media types in headers are wrong too often.
func isIndex(raw []byte) bool {
	var probe struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	return json.Unmarshal(raw, &probe) == nil && (probe.MediaType.IsIndex() || probe.MediaType == "" && probe.Manifests != nil)
}

func choosePlatform(raw []byte, platform string) (v1.Hash, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return v1.Hash{}, wrap(Corrupt, err, "its index cannot be read")
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return v1.Hash{}, wrap(Internal, err, "platform %s: %v", platform, err)
	}
	var has []string
	for _, d := range index.Manifests {
		if d.MediaType.IsIndex() || !d.MediaType.IsImage() && d.MediaType != "" {
			continue
		}
		if d.Platform == nil {
			if len(index.Manifests) == 1 {
				return d.Digest, nil
			}
			continue
		}
		if d.Platform.Satisfies(*want) {
			return d.Digest, nil
		}
		if d.Platform.OS != "unknown" { // build attestations
			has = append(has, d.Platform.String())
		}
	}
	slices.Sort(has)
	if len(has) == 0 {
		has = []string{"no platform at all"}
	}
	return v1.Hash{}, fail(Unsupported, "is not made for %s; it has %s", platform, strings.Join(slices.Compact(has), ", "))
}

func parseManifest(raw []byte) (*v1.Manifest, error) {
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, wrap(Corrupt, err, "its manifest cannot be read")
	}
	if m.SchemaVersion != 2 {
		return nil, fail(Unsupported, "has a manifest of schema %d; push it again with a current tool", m.SchemaVersion)
	}
	if !m.Config.MediaType.IsConfig() {
		return nil, fail(Unsupported, "is not a container image but %q", string(m.Config.MediaType))
	}
	for i, l := range m.Layers {
		if !l.MediaType.IsLayer() || !l.MediaType.IsDistributable() {
			return nil, fail(Unsupported, "has a layer %d of type %q", i+1, string(l.MediaType))
		}
	}
	return m, nil
}

func parseConfig(raw []byte, platform string) (*v1.ConfigFile, error) {
	cfg, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return nil, wrap(Corrupt, err, "its config cannot be read")
	}
	os, arch, _ := strings.Cut(platform, "/")
	arch, _, _ = strings.Cut(arch, "/")
	if cfg.OS != "" && cfg.OS != os || cfg.Architecture != "" && cfg.Architecture != arch {
		return nil, fail(Unsupported, "is made for %s/%s, this node is %s", cfg.OS, cfg.Architecture, platform)
	}
	return cfg, nil
}

// pairLayers joins the compressed layers of the manifest to the unpacked ones
// of the config. Of a layer that occurs twice only the upper counts: overlay
// refuses duplicates, and the lower adds nothing.
func pairLayers(m *v1.Manifest, cfg *v1.ConfigFile) ([]layer, error) {
	ids := cfg.RootFS.DiffIDs
	if len(ids) != len(m.Layers) {
		return nil, fail(Corrupt, "has %d layers in its manifest and %d in its config", len(m.Layers), len(ids))
	}
	var layers []layer
	for i, id := range ids {
		if id.Algorithm != "sha256" || m.Layers[i].Digest.Algorithm != "sha256" {
			return nil, fail(Unsupported, "has a layer %d with a digest that is not sha256", i+1)
		}
		if m.Layers[i].Size < 0 {
			return nil, fail(Corrupt, "has a layer %d of %d bytes in its manifest", i+1, m.Layers[i].Size)
		}
		if !slices.Contains(ids[i+1:], id) {
			layers = append(layers, layer{diffID: id, number: i + 1, desc: m.Layers[i]})
		}
	}
	if len(layers) == 0 {
		return nil, fail(Unsupported, "has no layers, so there is nothing to run")
	}
	if len(layers) > maxLayers {
		return nil, fail(Unsupported, "has %d layers where %d can be mounted; build it with fewer steps or squash it", len(layers), maxLayers)
	}
	return layers, nil
}

// readBlob reads what is as small as a config.
func readBlob(ctx context.Context, src source, d v1.Descriptor) (raw []byte, mirror bool, err error) {
	rc, mirror, err := src.blob(ctx, d)
	if err != nil {
		return nil, false, err
	}
	defer rc.Close()
	raw, err = io.ReadAll(io.LimitReader(rc, maxBlob+1))
	if err != nil {
		return nil, false, err
	}
	if len(raw) > maxBlob {
		return nil, false, fail(Unsupported, "has a config of more than %d bytes", maxBlob)
	}
	return raw, mirror, nil
}

// checkBytes says whether raw has that digest.
func checkBytes(raw []byte, want v1.Hash) error {
	got, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("digest is %s, want %s", got, want)
	}
	return nil
}
