package oci

import (
	"os"
	"runtime/debug"

	_ "github.com/opencontainers/cgroups/devices" // without it device rules are refused
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // joins namespaces in C, before Go starts

	"gbatch/oci/lease"
	"gbatch/oci/slack"
)

// shimEnv marks a process as a shim; its value is the marker's version. The
// argument alone would take "gnoded shim" away from users.
const shimEnv = "_GBATCH_SHIM"

// This program, or the small one that it carries (program.go), is executed
// again in two more roles, and both have to be taken
// before main or any flag is looked at: as a container's first process, which
// libcontainer starts with the fixed argument "init", and as a shim. The
// environment tells them from a user who types the same words.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch {
	case os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "":
		// It lives for milliseconds and then becomes the user's program.
		debug.SetGCPercent(-1)
		_ = slack.Usual()
		libcontainer.Init() // does not return
	case os.Args[1] == "shim" && os.Getenv(shimEnv) != "":
		// For who lists processes: else the name is the number of a file.
		_ = os.WriteFile("/proc/self/comm", []byte("gbatch-shim"), 0)
		// Not on the first thread: it is bound to this function, so that each
		// switch from it to another goroutine would be one between threads.
		code := make(chan int)
		go func() { code <- shimMain() }()
		os.Exit(<-code)
	case os.Args[1] == lease.Role && len(os.Args) == 6 && os.Getenv(shimEnv) != "":
		os.Exit(lease.Main(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
}
