package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/atomicfile"
	"gbatch/oci/ref"
)

// record is an image in the store; its file is named by its digest. It is
// replaced, never changed, so a pointer can be read without the lock.
type record struct {
	Digest v1.Hash   `json:"digest"`
	Config v1.Hash   `json:"config"`
	Blobs  []v1.Hash `json:"blobs"`
	Layers []string  `json:"layers"` // directories, lowest first
	// Platform is that of the layers; the same index may lead to others.
	Platform string   `json:"platform"`
	Size     int64    `json:"size"`
	Boot     string   `json:"boot"`   // in which it was pulled
	Synced   bool     `json:"synced"` // its layers are on disk; see synced.go
	Refs     []string `json:"refs"`   // names it was pulled by, newest last, at most maxRememberRefs
	Grants   []string `json:"grants"` // "name identity": who may use it under which name, at most maxGrants; see proof.go

	lastUse time.Time // the file's modification time
}

func (s *Store) loadImages() error {
	entries, err := os.ReadDir(s.layout.Images)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(s.layout.Images, e.Name())
		rec := &record{}
		info, err := e.Info()
		if err == nil {
			err = atomicfile.ReadJSON(name, rec)
		}
		if err != nil || s.layout.Record(rec.Digest.String()) != name || !s.trusted(rec) {
			// Left by a crash, or damaged: the image is pulled again.
			if err := os.Remove(name); err != nil {
				return err
			}
			continue
		}
		rec.lastUse = info.ModTime()
		s.images[rec.Digest.String()] = rec
	}
	return nil
}

// usedLayersLocked are the layers of all images.
func (s *Store) usedLayersLocked() map[string]bool {
	used := map[string]bool{}
	for _, rec := range s.images {
		for _, id := range rec.Layers {
			used[id] = true
		}
	}
	return used
}

// saveImage writes the blobs of a plan and then the record that needs them.
func (s *Store) saveImage(p *plan, layers []string, r ref.Ref, identity string) error {
	rec := &record{Digest: p.digest, Config: p.config, Layers: layers, Platform: s.config.Platform, Boot: s.boot}
	for h, raw := range p.blobs {
		rec.Blobs = append(rec.Blobs, h)
		if err := writeFile(s.layout.Blob(h.Hex), raw); err != nil {
			return classifyLocal(err)
		}
	}
	slices.SortFunc(rec.Blobs, func(a, b v1.Hash) int { return strings.Compare(a.Hex, b.Hex) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range layers {
		rec.Size += s.layers[id].Size
	}
	if old := s.images[p.digest.String()]; old != nil {
		rec.Refs, rec.Grants = old.Refs, old.Grants
	}
	return s.useLocked(rec, r, identity, true)
}

// useLocked notes that an image is used now, under that name by that
// identity. The record is written again only if this is new, or must be.
func (s *Store) useLocked(rec *record, r ref.Ref, identity string, must bool) error {
	now := s.config.Now()
	name, permit := r.WithDigest("").Familiar(), grant(r, identity)
	next := *rec
	next.lastUse = now
	if must || !slices.Contains(rec.Refs, name) || !slices.Contains(rec.Grants, permit) {
		next.Refs = append(slices.DeleteFunc(slices.Clone(rec.Refs), func(s string) bool { return s == name }), name)
		next.Refs = next.Refs[max(0, len(next.Refs)-maxRememberRefs):]
		next.Grants = remember(next.Grants, permit)
		if err := s.writeRecordLocked(&next); err != nil {
			return classifyLocal(err)
		}
	} else if err := os.Chtimes(s.layout.Record(rec.Digest.String()), now, now); err != nil {
		return classifyLocal(err)
	}
	s.images[rec.Digest.String()] = &next
	return nil
}

func (s *Store) writeRecordLocked(rec *record) error {
	file := s.layout.Record(rec.Digest.String())
	if err := writeJSON(file, rec); err != nil {
		return err
	}
	return os.Chtimes(file, rec.lastUse, rec.lastUse)
}

// image returns an image if all of it is there and undamaged.
func (s *Store) image(digest string) (*record, *Image) {
	s.mu.Lock()
	rec := s.images[digest]
	s.mu.Unlock()
	if rec == nil {
		return nil, nil
	}
	cfg, err := s.checkRecord(rec)
	if err != nil {
		return rec, nil
	}
	img := &Image{Digest: digest, Config: configOf(cfg.Config), Size: rec.Size}
	for _, id := range rec.Layers {
		img.Layers = append(img.Layers, s.layout.Files(id))
	}
	return rec, img
}

func (s *Store) checkRecord(rec *record) (*v1.ConfigFile, error) {
	if _, err := os.Lstat(s.layout.Record(rec.Digest.String())); err != nil {
		return nil, err
	}
	if rec.Platform != s.config.Platform {
		return nil, fmt.Errorf("it was pulled for %s", rec.Platform)
	}
	var config []byte
	for _, h := range rec.Blobs {
		raw, err := os.ReadFile(s.layout.Blob(h.Hex))
		if err == nil {
			err = checkBytes(raw, h)
		}
		if err != nil {
			return nil, fmt.Errorf("blob %s: %w", h, err)
		}
		if h == rec.Config {
			config = raw
		}
	}
	for _, id := range rec.Layers {
		if _, ok := s.layerIntact(id); !ok {
			return nil, fmt.Errorf("layer %s is missing", id)
		}
	}
	if config == nil {
		return nil, errors.New("no config")
	}
	return v1.ParseConfigFile(bytes.NewReader(config))
}
