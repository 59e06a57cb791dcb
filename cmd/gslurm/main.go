// Command gslurm plays sbatch, squeue, scancel, sinfo and sacct, by whose names
// it is called, for scripts and tools that call those.
package main

import (
	"os"

	"gbatch/internal/cli"
)

func main() { cli.Slurm(os.Args) }
