package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
)

type backupCmd struct {
	Config         string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file, which says where the controller listens." type:"path"`
	WithoutSecrets bool   `name:"without-secrets-key" help:"Leave out the key of registry passwords and jobs' secrets. Keep secrets.key elsewhere, or they are lost."`
	Force          bool   `help:"Replace the file if it is there."`
	File           string `arg:"" type:"path" help:"File to write."`
}

func (c *backupCmd) Run() error {
	cfg, err := site.Read(c.Config)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Force {
		return fmt.Errorf("%s is there already: name another file, or replace it by --force", c.File)
	}
	info, size, err := c.write(cfg)
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(c.temporary())))
	}
	fmt.Printf("%s: %d MiB, as of %s\n", c.File, (size+1<<20-1)>>20, info.Time.Local().Format(time.RFC3339))
	if info.Vault {
		fmt.Fprintln(os.Stderr, "It holds the controller's keys, and with them registry passwords and secrets of jobs: keep it as you would keep root's key.")
	} else {
		fmt.Fprintf(os.Stderr, "It holds the controller's keys but not that of secrets, %s/secrets.key: without that file, registry passwords and secrets of jobs are lost.\n", cfg.Dir)
	}
	if trees := filepath.Join(cfg.Dir, site.TreesDir); holds(trees) {
		fmt.Fprintf(os.Stderr, "Directories that users sent along with jobs are not in it: copy %s, too, or jobs that wait for theirs fail after a restore.\n", trees)
	}
	return nil
}

// holds says whether a directory has something in it.
func holds(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

func (c *backupCmd) temporary() string { return c.File + ".tmp" }

// write writes the file whole or not at all, and reads it again before it counts.
func (c *backupCmd) write(cfg site.Config) (info backup.Info, size int64, err error) {
	f, err := os.OpenFile(c.temporary(), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return info, 0, err
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil {
		return info, 0, err
	}
	api := &client.Client{Address: "unix://" + cfg.SocketPath()}
	defer api.Close()
	from, err := api.Backup(context.Background(), !c.WithoutSecrets)
	if err != nil {
		return info, 0, err
	}
	defer from.Close()
	if size, err = io.Copy(f, from); err != nil {
		return info, 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return info, 0, err
	}
	if info, err = backup.Read(f, nil); err != nil {
		return info, 0, fmt.Errorf("read %s again: %w", c.File, err)
	}
	if err := f.Sync(); err != nil {
		return info, 0, err
	}
	return info, size, os.Rename(c.temporary(), c.File)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type restoreCmd struct {
	Config      string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file, which says where the directory is." type:"path"`
	SecretsKey  string `type:"path" placeholder:"FILE" help:"The key of secrets, for a backup that was made without it."`
	DropSecrets bool   `help:"Go on without the key of secrets: jobs that wait with secrets or a registry password fail."`
	KeepQueued  bool   `help:"Let jobs that waited start by themselves, although they may have run after the backup. Else they are put on hold."`
	Skip        uint64 `placeholder:"N" help:"Leave out so many job numbers; more than jobs were submitted since. Default: 100000."`
	File        string `arg:"" type:"existingfile" help:"Backup."`
}

func (c *restoreCmd) Run() error {
	cfg, err := site.Read(c.Config)
	if err != nil {
		return err
	}
	info, err := backup.Restore(cfg, backup.Options{File: c.File, VaultKey: c.SecretsKey, DropSecrets: c.DropSecrets, Queue: c.KeepQueued, Skip: c.Skip})
	if err != nil {
		return err
	}
	fmt.Printf("%s is as it was at %s. Start gctld; then:\n", cfg.Dir, info.Time.Local().Format(time.RFC3339))
	fmt.Println("  - nodes come back by themselves, and end what was started after the backup before they get new jobs;")
	if c.KeepQueued {
		fmt.Println("  - jobs that waited start again by themselves, also those that ran meanwhile;")
	} else {
		fmt.Println("  - jobs that waited are on hold, since they may have run: look, then gcancel --release ID... or gcancel ID...;")
	}
	fmt.Println("  - machines that joined after the backup join again: gadm node-token create; tokens made since do not work any more.")
	return nil
}

type acceptCmd struct {
	Config string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file, which says where the directory is." type:"path"`
	What   string `arg:"" help:"What is lost: as 8000-6473, or the name of a key file."`
}

func (c *acceptCmd) Run() error {
	cfg, err := site.Read(c.Config)
	if err == nil {
		err = backup.AcceptLoss(cfg, c.What)
	}
	if err != nil {
		return err
	}
	fmt.Println("The next start of gctld goes on with what is there. Jobs that waited may be on hold: look, then gcancel --release ID... or gcancel ID...")
	return nil
}
