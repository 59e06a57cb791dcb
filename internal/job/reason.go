package job

// Reason is why a job or an attempt ended as it did, in one word for programs.
type Reason string

// The reasons. None goes with FINISHED and with jobs that have not ended.
const (
	None              Reason = ""
	ExitCode          Reason = "EXIT_CODE"
	OOM               Reason = "OOM"
	Signal            Reason = "SIGNAL"
	MaxRuntime        Reason = "MAX_RUNTIME"
	MaxQueued         Reason = "MAX_QUEUED"
	NotAfter          Reason = "NOT_AFTER"
	InteractiveNoRoom Reason = "INTERACTIVE_NO_ROOM"
	ImagePull         Reason = "IMAGE_PULL"
	BadSpec           Reason = "BAD_SPEC"
	PortInUse         Reason = "PORT_IN_USE"
	Mount             Reason = "MOUNT"
	GPUError          Reason = "GPU_ERROR"
	NodeFail          Reason = "NODE_FAIL"
	BackoffLimit      Reason = "BACKOFF_LIMIT"
	FailedIndexes     Reason = "FAILED_INDEXES"
	Utilization       Reason = "UTILIZATION"
	ByUser            Reason = "USER"
	ByAdmin           Reason = "ADMIN"
	Preempted         Reason = "PREEMPTED"
	Server            Reason = "SERVER"
	DependencyFailed  Reason = "DEPENDENCY" // what it waited for can no longer happen, so that it did not run
	InputFailed       Reason = "INPUT"      // data could not be brought to the node
	OutputFailed      Reason = "OUTPUT"     // the program succeeded and its results could not be saved
	Progress          Reason = "PROGRESS"   // the program ended well before it said that it was done
	Disk              Reason = "DISK"       // it wrote more to the node's disk than it may
	Prolog            Reason = "PROLOG"     // the site's program before it failed, which drains the node
)

// reasons lists all but None.
var reasons = []Reason{
	ExitCode, OOM, Signal, MaxRuntime, MaxQueued, NotAfter, InteractiveNoRoom, ImagePull, BadSpec, PortInUse, Mount, GPUError, NodeFail,
	BackoffLimit, FailedIndexes, Utilization, ByUser, ByAdmin, Preempted, Server, DependencyFailed, InputFailed, OutputFailed, Progress, Disk, Prolog,
}

// Class says whose fault an ending was: the program's (or its request's), or
// the infrastructure's. Infrastructure faults never use up a user's retries.
type Class string

// The classes.
const (
	Program Class = "PROGRAM"
	Infra   Class = "INFRA"
)

// Class of a reason; empty for reasons that are nobody's fault.
func (r Reason) Class() Class {
	switch r {
	case None, ByUser, ByAdmin, Preempted, DependencyFailed:
		return ""
	case NodeFail, GPUError, Server, Prolog:
		return Infra
	}
	return Program
}
