// Command guest runs containers on a machine that has one version of control
// groups alone, v1 or v2 by its argument, and prints what held. It is started
// by the init script of the virtual machine that its parent directory's test
// boots, with all of that machine for itself.
package main

import (
	"fmt"
	"os"

	"gbatch/cgroups"
	"gbatch/internal/vmtest"
)

const attempts = "/var/attempts" // the containers' directories

// mode is what the machine is to have.
var mode cgroups.Mode

func main() {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := startAndLeave(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	mode = cgroups.Mode(os.Args[1])
	r := vmtest.NewReport(os.Stdout)
	r.Check("base", settle)
	checkInside(r)
	checkOOM(r)
	checkLive(r)
	checkSweep(r)
	if !r.End() {
		os.Exit(1)
	}
}
