// Command program is what gnoded mounts into the containers of batch scripts, and
// executes in containers for clients that reach into them: see
// internal/noded/inside. It is one file for all that is called there, and static,
// so that it works in every image.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gbatch/internal/launch"
	"gbatch/internal/launch/rank"
	"gbatch/internal/launch/sbcast"
	"gbatch/internal/launch/scontrol"
	"gbatch/internal/launch/srun"
	"gbatch/internal/launch/tool"
	"gbatch/oci/keeper"
)

// init keeps a keeper on its process's first thread, which is what "process 1" means to who
// changes its priority: programs inherit what the thread has that begins them, so the keeper must
// see that change. Go may go on with main on another thread after a system call.
func init() {
	if len(os.Args) > 1 && (os.Args[1] == keeper.Arg || os.Args[1] == keeper.ArgInit) {
		runtime.LockOSThread()
	}
}

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "srun":
		os.Exit(srun.Main(os.Args[1:]))
	case "sattach":
		os.Exit(srun.Attach(os.Args[1:]))
	case "sbcast":
		os.Exit(sbcast.Main(os.Args[1:]))
	case "scontrol":
		os.Exit(scontrol.Main(os.Args[1:]))
	default:
		if len(os.Args) > 1 {
			switch os.Args[1] {
			case keeper.Arg:
				exit(keeper.Main())
			case keeper.ArgInit:
				exit(keeper.Init())
			}
			if code, known := tool.Main(os.Args[1], os.Args[2:]); known {
				os.Exit(code)
			}
		}
		exit(takeTasks(os.Args[1:]))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gbatch-rank:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// takeTasks serves srun: as the container's first process, or beside a script,
// when srun itself begins it.
func takeTasks(args []string) error {
	mode := strings.Join(args, " ")
	if strings.HasPrefix(mode, launch.ModePut+" ") {
		return sbcast.Put(args[1:])
	}
	info, err := launch.Load()
	if err != nil {
		return err
	}
	switch mode {
	case launch.ModeHold:
		return rank.Hold(info)
	case "", launch.ModeAllocation:
		return rank.First(info)
	}
	if len(args) > 0 && args[0] == launch.ModeInside {
		return rank.Inside(info, args[1:])
	}
	return rank.Beside(info)
}
