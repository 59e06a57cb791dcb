package allocation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exec"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
)

// Sbcast copies a file of this machine into the containers of all ranks of a job.
func Sbcast(ctx context.Context, a *cli.App, args []string) error {
	c := slurm.Split(args, map[string]bool{"--jobid": true, "--force": false, "--compress": false, "--verbose": false, "--fanout": true, "--size": true, "--timeout": true},
		map[string]string{"-j": "--jobid", "-f": "--force", "-C": "--compress", "-v": "--verbose", "-F": "--fanout", "-s": "--size", "-t": "--timeout"})
	id, ok := c.Own["--jobid"]
	if !ok {
		id, _ = a.Env("SLURM_JOB_ID")
	}
	switch id, _, _ = strings.Cut(id, "."); {
	case len(c.Options) > 0:
		return exit.Usagef("option %s is not played here; inside of a job's script sbcast has -p too", c.Options[0])
	case len(c.Args) != 1:
		return exit.Usagef("need two file names: sbcast -j JOB FILE DESTINATION")
	case id == "":
		return exit.Usagef("need a job id to run this command: sbcast -j JOB, or within salloc")
	}
	f, err := os.Open(c.Script)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", c.Script)
	}
	dest := c.Args[0]
	if strings.HasSuffix(dest, "/") {
		dest = filepath.Join(dest, filepath.Base(c.Script))
	}
	line := []string{job.LaunchDir + "/sbcast"}
	if _, force := c.Own["--force"]; force {
		line = append(line, "-f")
	}
	to := *a
	to.In = f
	return (&exec.Exec{ID: id, Pipes: true, Args: slices.Concat(line, []string{"-", dest})}).Run(ctx, &to)
}
