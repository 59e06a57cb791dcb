package adm

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/slurmsite"
)

// ImportSlurm is gadm import slurm.
type ImportSlurm struct {
	Conf string   `placeholder:"FILE" type:"existingfile" help:"slurm.conf. Files that it includes are read from its folder."`
	Dump string   `placeholder:"FILE" type:"existingfile" help:"What sacctmgr dump CLUSTER file=FILE wrote: accounts, users, shares, limits."`
	From []string `name:"include-from" placeholder:"DIR" type:"existingdir" help:"Another folder that slurm.conf may include files from."`
	QOS  string   `name:"qos" placeholder:"FILE" type:"existingfile" help:"What sacctmgr -P show qos prints: a dump does not have it."`
}

// Run prints what a Slurm site's files are in gbatch's, and what has no meaning
// here. It changes nothing and asks no controller.
func (o *ImportSlurm) Run(a *cli.App) error {
	in := slurmsite.Input{Open: o.open}
	for _, f := range []struct {
		path string
		to   *slurmsite.File
	}{{o.Conf, &in.Conf}, {o.Dump, &in.Dump}, {o.QOS, &in.QOS}} {
		if f.path == "" {
			continue
		}
		file, err := os.Open(f.path) // it may be a pipe
		if err != nil {
			return err
		}
		text, err := readAll(file)
		if err != nil {
			return err
		}
		*f.to = slurmsite.File{Name: filepath.Base(f.path), Text: string(text)}
	}
	if o.Conf+o.Dump+o.QOS == "" {
		return exit.Usagef("name what to read: --conf slurm.conf, --dump FILE, --qos FILE")
	}
	r, err := slurmsite.Convert(in)
	if err != nil {
		return err
	}
	fmt.Fprint(a.Out, "# For gctld.yaml. Look at each line, then try it: gctld check-config FILE\n", human.CleanLines(r.Gctld))
	if r.Nodes != "" {
		fmt.Fprint(a.Out, "\n", human.CleanLines(r.Nodes))
	}
	if len(r.Notes) > 0 {
		fmt.Fprint(a.Out, "\n# What did not become a key, and why:\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(a.Out, "# %s\n", human.Clean(n.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(a.Out, "# and %d more\n", r.More)
	}
	return nil
}

// readAll reads a file as far as it is of use, and closes it.
func readAll(f *os.File) ([]byte, error) {
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, slurmsite.MaxText+1))
}

// open reads a file that slurm.conf includes. Whoever wrote slurm.conf may not be
// allowed what the caller is, and notes show what is read: so it is a file below
// its folder or one that the caller named, wherever links lead.
func (o *ImportSlurm) open(name string) ([]byte, error) {
	dirs := append([]string{filepath.Dir(o.Conf)}, o.From...)
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		below := name
		if filepath.IsAbs(name) {
			if below, err = filepath.Rel(dir, name); err != nil || !filepath.IsLocal(below) {
				continue
			}
		}
		text, err := readBelow(dir, below)
		if os.IsNotExist(err) {
			continue
		}
		return text, err
	}
	return nil, fmt.Errorf("%s is not in %s: name its folder by --include-from, if this file shall be read", strconv.Quote(name), strings.Join(dirs, " or "))
}

// readBelow reads a regular file; opening a pipe would wait for who writes it.
func readBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s is no file", strconv.Quote(name))
	}
	return readAll(file)
}
