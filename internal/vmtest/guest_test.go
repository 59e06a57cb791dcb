package vmtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gbatch/cgroups"
)

const attempts = "/var/attempts" // the containers' directories

// mode is what the machine is to have.
var mode cgroups.Mode

// TestMain is the tests on the host. In the guest, whose init script gives the
// version of control groups as the argument, it is the checks that are made there.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "start":
		if err := startAndLeave(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) == 2 && !strings.HasPrefix(os.Args[1], "-"):
		mode = cgroups.Mode(os.Args[1])
		r := &report{w: os.Stdout}
		r.check("base", enterGroup)
		checkInside(r)
		checkOOM(r)
		checkLive(r)
		checkSweep(r)
		checkAppArmor(r)
		if !r.end() {
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}
