// Command commands is sbatch, squeue, scancel and others of Slurm's in the containers
// of batch scripts, by whose names it is called. It asks the controller by the node,
// which says whose job it is in: see internal/noded/launches.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gbatch/internal/cli/slurm"
	"gbatch/internal/launch"
)

func main() {
	name := filepath.Base(os.Args[0])
	info, err := launch.Load()
	switch {
	case err != nil || info.AsksAPI():
	case info.Commands:
		err = errors.New("the node of this job does not pass on what it asks: try again in a minute")
	default:
		err = fmt.Errorf("this site does not let jobs call %s (batch.commands of gctld.yaml): call it on the submitting machine, with --dependency for what shall follow this job", name)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
		os.Exit(1)
	}
	slurm.Inside(os.Args, launch.API, info.ID)
}
