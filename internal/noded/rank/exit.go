package rank

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/launches"
	"gbatch/internal/noded/reason"
	"gbatch/oci/failure"
	"gbatch/oci/image"
	"gbatch/oci/lease"
	"gbatch/oci/result"
)

// limits are what a rank may be told that it ran into.
type limits struct {
	mem  int64
	pids int
	disk string // that it had filled what it may write; "": it had not
	run  time.Duration

	script bool   // the container has a batch script, which goes on when one process is ended for memory
	steps  uint64 // processes of its steps that were
}

func (r *Rank) limits() limits {
	l := limits{mem: r.order.Allocation.MemBytes, pids: r.node.Config.PidsMax, disk: r.node.Disk.Full(r.order.at), run: r.order.limit()}
	if l.script = r.endsOne() && r.order.Spec.Script(r.order.id.Rank) != ""; l.script {
		l.steps = launches.Killed(r.order.dir)
	}
	return l
}

// fenced is a container's exit with what its shim may not know: that the guard of leases
// ended it, while the shim stood still.
func fenced(dir string, e result.Exit) result.Exit {
	if e.Signal == int(unix.SIGKILL) {
		_, err := os.Stat(filepath.Join(dir, lease.FileOver))
		e.LeaseOver = e.LeaseOver || err == nil
	}
	return e
}

// exitOf says how a container ended in the controller's words. stop is the
// stop that was under way, if one was.
func exitOf(e result.Exit, stop *stopRecord, l limits) *node.Exit {
	out := &node.Exit{
		Code:       e.Code,
		Signal:     e.Signal,
		StartedMS:  unixMS(e.Started),
		EndedMS:    unixMS(e.Finished),
		WallMS:     e.WallMS,
		PeakMem:    int64(e.PeakBytes),
		CPUSeconds: float64(e.CPUNanos) / 1e9,
		Silent:     e.Silent(),
	}
	if out.EndedMS == 0 {
		out.EndedMS, out.WallMS = time.Now().UnixMilli(), lease.WallMS()
	}
	out.Reason, out.Message = reasonOf(e, stop, l)
	if e.Part != "" && stop == nil && e.Failure == nil && out.Message != "" {
		where := "before"
		if e.Beside {
			where = "beside"
		}
		out.Message = e.Part + ", which runs " + where + " the job: " + out.Message
	}
	return out
}

// lastWord is exitOf of a rank that runs, as s says of it.
func lastWord(e result.Exit, stop *stopRecord, l limits, s node.RankStatus) *node.Exit {
	out := exitOf(e, stop, l)
	if e.Lost {
		return began(out, s)
	}
	return out
}

// What is said of a container of which it is not known how it ended.
const (
	lostText    = "the node lost track of the container; how its program ended is not known"
	restartText = "the machine restarted; how the program ended is not known"
)

func reasonOf(e result.Exit, stop *stopRecord, l limits) (job.Reason, string) {
	switch {
	case e.LeaseOver && stop == nil:
		return job.NodeFail, "lost contact with the controller for longer than its lease; ended, so that it cannot run twice"
	case e.Lost:
		return job.NodeFail, lostText
	case stop != nil:
		return stop.Reason, stop.Text
	case e.LimitOver:
		return job.MaxRuntime, limitText(l.run)
	case l.outOfMemory(e) && e.Failure == nil:
		return job.OOM, fmt.Sprintf("out of memory: killed at %s of %s", config.FormatBytes(min(int64(e.PeakBytes), l.mem)), config.FormatBytes(l.mem))
	case e.Failure != nil:
		return failureReason(e.Failure), e.Failure.Message
	case e.Signal != 0:
		return job.Signal, "ended by signal " + unix.SignalName(unix.Signal(e.Signal)) + l.hint(e)
	case e.Code != 0:
		return job.ExitCode, fmt.Sprintf("exit code %d", e.Code) + l.hint(e)
	}
	return job.None, ""
}

// outOfMemory says whether the job's program was ended by the memory limit, or something
// that it had begun itself.
func (l limits) outOfMemory(e result.Exit) bool {
	if l.script {
		return e.OOMKills > l.steps
	}
	return e.OOMKilled
}

// hint is what may be behind a program's own failure.
func (l limits) hint(e result.Exit) string {
	if l.disk != "" {
		return "; " + l.disk
	}
	if l.steps > 0 {
		return fmt.Sprintf("; of its steps the memory limit ended %d processes, see gqueue show", l.steps)
	}
	if e.PidsDenied == 0 {
		return ""
	}
	return fmt.Sprintf("; it was refused new processes at the node's limit of %d processes and threads", l.pids)
}

// failureReason tells the job's mistakes from the node's.
func failureReason(f *failure.Failure) job.Reason {
	switch f.Kind {
	case failure.CommandNotFound, failure.CommandNotRunable, failure.WorkDirMissing, failure.UserUnknown, failure.ImageUnusable, failure.HookFailed:
		return job.BadSpec
	case failure.MountFailed:
		return job.Mount
	case failure.MemoryTooSmall:
		return job.OOM
	}
	return job.Server
}

// failedExit is the end of a rank whose start failed or was broken off before
// there was a container.
func failedExit(err error, stop *stopRecord) *node.Exit {
	out := &node.Exit{Code: 125, EndedMS: time.Now().UnixMilli(), WallMS: lease.WallMS()}
	out.Reason, out.Message = startReason(err)
	if pull, ok := errors.AsType[*image.PullError](err); ok {
		out.Later = pull.Temporary && pull.Fault() == image.FaultRegistry
	}
	if stop != nil {
		out.Code, out.Signal = 128+int(unix.SIGKILL), int(unix.SIGKILL)
		out.Reason, out.Message, out.Later = stop.Reason, stop.Text, false
	}
	return out
}

// lostExit is the end of a rank whose container has ended, and of which the node cannot read how, as s says of it when it
// began. One that never began is no failure of its program's.
func lostExit(err error, stop *stopRecord, s node.RankStatus) *node.Exit {
	out := failedExit(err, stop)
	if stop == nil && s.StartedMS > 0 {
		out.Code, out.Signal, out.Reason, out.Message = 128+int(unix.SIGKILL), int(unix.SIGKILL), job.NodeFail, "how the program ended is not known: the node's record of it is gone or cannot be read"
	}
	return began(out, s)
}

// began has an end that its shim did not tell be of a program that began when s says so. Both are by one clock then: the mark
// that it began is by the clock of then, which may have been set since.
func began(out *node.Exit, s node.RankStatus) *node.Exit {
	if s.OnClock(out.WallMS); s.StartedMS > 0 {
		out.StartedMS = s.StartedMS
	}
	return out
}

func startReason(err error) (job.Reason, string) {
	var pull *image.PullError
	var known *reason.Error
	var failure *failure.Failure
	whose := ""
	if of, ok := errors.AsType[*programError](err); ok {
		whose = of.name + ": "
	}
	switch {
	case errors.As(err, &pull) && pull.Fault() == image.FaultNode:
		return job.Server, whose + pull.Error()
	case errors.As(err, &pull):
		return job.ImagePull, whose + pull.Error()
	case errors.As(err, &known):
		return known.Reason, whose + known.Text
	case errors.As(err, &failure):
		return failureReason(failure), whose + failure.Message
	}
	// The cause is in the node's log; it may name what is not the user's.
	return job.Server, "the node could not start the container; its administrator finds the reason in the node's log"
}

func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
