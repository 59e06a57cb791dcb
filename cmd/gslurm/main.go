// Command gslurm plays sbatch, squeue, scancel, sinfo and sacct, by whose names
// it is called, for scripts and tools that call those.
package main

import (
	"os"

	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/slurm"
)

func main() { slurm.Main(os.Args) }
