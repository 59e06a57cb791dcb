package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gbatch/internal/client"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// past is where the records of a controller come from: its directory, whether it
// runs or not, or a backup.
type past struct {
	path   string
	config string      // the site's file; empty: none was given, or found
	site   site.Config // what it says
}

// siteFile is the configuration that gctld reads if it is told no other.
const siteFile = "/etc/gbatch/gctld.yaml"

// find reads the configuration that belongs to the records: the one that was given,
// or that of the controller whose directory it is.
func (p *past) find() (err error) {
	if p.config != "" {
		p.site, err = site.Read(p.config)
		return err
	}
	p.site = site.Default()
	for _, file := range []string{filepath.Join(p.path, "gctld.yaml"), filepath.Join(p.path, "..", "gctld.yaml"), filepath.Join(p.path, "../..", "gctld.yaml"), siteFile} {
		if c, err := site.Read(file); err == nil && p.of(c) {
			p.config, p.site = filepath.Clean(file), c
			return nil
		}
	}
	return nil
}

// of says whether the records are in the directory of a configuration.
func (p *past) of(c site.Config) bool {
	dir, err := os.Stat(filepath.Join(c.Dir, site.StoreDir))
	have, err2 := os.Stat(p.dir())
	return err == nil && err2 == nil && os.SameFile(dir, have)
}

// dir is the store's directory: the path is it, or has it inside.
func (p *past) dir() string {
	for _, inner := range []string{site.StoreDir, filepath.Join("ctld", site.StoreDir)} {
		if dir := filepath.Join(p.path, inner); isDir(dir) {
			return dir
		}
	}
	return p.path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// whose says by whose rules the past is replayed.
func (p *past) whose() string {
	if p.config == "" {
		return "The rules are those of a site that sets none: name the site's gctld.yaml by --config."
	}
	return "The rules are those of " + p.config + "."
}

// read gives what is known of nodes and jobs.
func (p *past) read(take func(state.Record) error) error {
	if info, err := os.Stat(p.path); err != nil {
		return err
	} else if !info.IsDir() {
		f, err := os.Open(p.path)
		if err != nil {
			return err
		}
		defer f.Close()
		return p.unpacked(f, take)
	}
	err := store.ReadPast(store.Config{Dir: p.dir()}, take)
	if !errors.Is(err, store.ErrInUse) {
		return err
	}
	if !p.of(p.site) {
		return fmt.Errorf("%w: say by --config which gctld.yaml is its, and it is asked for a copy; or give a backup", err)
	}
	// Nothing was read yet. The controller gives its records as they are at one moment.
	api := &client.Client{Address: "unix://" + p.site.SocketPath()}
	defer api.Close()
	from, err := api.Backup(context.Background(), false)
	if err != nil {
		return fmt.Errorf("ask the controller, which has its store open, for a copy: %w", err)
	}
	defer from.Close()
	return p.unpacked(from, take)
}

// unpacked reads a backup by way of a directory of its own.
func (p *past) unpacked(from io.Reader, take func(state.Record) error) error {
	dir, err := os.MkdirTemp("", "gbatch-past-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := backup.UnpackStore(from, dir); err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	return store.ReadPast(store.Config{Dir: dir}, take)
}
