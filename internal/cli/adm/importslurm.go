package adm

import (
	"fmt"
	"os"
	"path/filepath"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/slurmsite"
)

// ImportSlurm is gadm import slurm.
type ImportSlurm struct {
	Conf string `placeholder:"FILE" type:"existingfile" help:"slurm.conf. Files that it includes are read from beside it."`
	Dump string `placeholder:"FILE" type:"existingfile" help:"What sacctmgr dump CLUSTER file=FILE wrote: accounts, users, shares, limits."`
	QOS  string `name:"qos" placeholder:"FILE" type:"existingfile" help:"What sacctmgr -P show qos prints: a dump does not have it."`
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
		text, err := os.ReadFile(f.path)
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
	return nil
}

// open reads a file that slurm.conf includes.
func (o *ImportSlurm) open(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(o.Conf), name)
	}
	return os.ReadFile(name)
}
