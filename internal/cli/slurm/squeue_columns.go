package slurm

import (
	"math"
	"slices"
	"strings"
	"time"

	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

type column = table.Column[row]

// col is a column by its letters and its names in the long form, of which the
// first is its own.
func col(letters, names, title string, cell cellOf) column {
	key, also, _ := strings.Cut(names, " ")
	return column{Key: key, Also: also, Letters: letters, Title: title,
		Cell: func(v *table.View, b []byte, r *row) []byte { return append(b, cell(v, r)...) }}
}

// asked is a column about what a job's document says.
func asked(letters, names, title string, cell cellOf) column {
	c := col(letters, names, title, cell)
	c.Asked = true
	return c
}

// ordered is a column that is not ordered by its text.
func ordered(c column, order func(v *table.View, r *row) int64) column {
	c.Order = order
	return c
}

// timed is a column that is ordered by a moment, however that is written; what has
// none is the last.
func timed(c column, of func(r *row) time.Time) column {
	return ordered(c, func(_ *table.View, r *row) int64 {
		if t := of(r); !t.IsZero() {
			return t.Unix()
		}
		return math.MaxInt64
	})
}

// stateOrder is Slurm's order of states.
var stateOrder = []string{"PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE", "OUT_OF_MEMORY", "CONFIGURING", "COMPLETING"}

func byNumber(_ *table.View, r *row) int64 { return int64(r.Number) }
func byState(v *table.View, r *row) int64  { return int64(slices.Index(stateOrder, rowState(v, r))) }

// fixed are columns that say the same of all jobs here, in Slurm's words for nothing.
func fixed(text string, titles ...string) (out table.Set[row]) {
	for _, t := range titles {
		name, title, _ := strings.Cut(t, " ")
		out = append(out, col("", name, title, always(text)))
	}
	return out
}

// squeueColumns are squeue's, by Slurm's letters and long names.
var squeueColumns = slices.Concat(table.Set[row]{
	col("a", "account", "ACCOUNT", rowAccount),
	ordered(col("A", "jobid", "JOBID", rowNumber), byNumber),
	ordered(col("i", "jobarrayid", "JOBID", rowID), byNumber),
	ordered(col("F", "arrayjobid", "ARRAY_JOB_ID", rowArray), byNumber),
	col("K", "arraytaskid", "ARRAY_TASK_ID", rowIndex),
	col("B", "batchhost", "EXEC_HOST", rowFirstNode),
	col("", "batchflag", "BATCH_FLAG", always("1")),
	ordered(col("c", "mincpus", "MIN_CPUS", rowCPUsPerNode), func(_ *table.View, r *row) int64 { return int64(r.CPUs) }),
	ordered(col("C", "numcpus", "CPUS", rowCPUs), func(_ *table.View, r *row) int64 { return int64(r.CPUs) }),
	col("", "cluster", "CLUSTER", always(clusterName)),
	asked("k", "comment", "COMMENT", rowComment),
	asked("o", "command", "COMMAND", rowCommand),
	asked("", "container", "CONTAINER", rowImage),
	col("O", "contiguous", "CONTIGUOUS", always("0")),
	asked("", "cpus-per-task", "CPUS_PER_TASK", rowCPUsPerTask),
	col("d", "mintmpdisk", "MIN_TMP_DISK", always("0")),
	timed(asked("", "deadline", "DEADLINE", rowDeadline), (*row).deadline),
	ordered(col("D", "numnodes", "NODES", rowNumNodes), func(_ *table.View, r *row) int64 { return int64(max(len(r.Nodes), r.NumNodes)) }),
	timed(col("e", "endtime", "END_TIME", rowEnd), func(r *row) time.Time { return jobs.EndOf(&r.Job) }),
	col("E", "dependency", "DEPENDENCY", rowDependency),
	col("", "exit_code", "EXIT_CODE", func(_ *table.View, r *row) string { return exitStatus(&r.Job) }),
	asked("f", "feature", "FEATURES", rowFeatures),
	col("g", "groupname", "GROUP", rowGroup),
	col("G", "groupid", "GROUP", rowGID),
	asked("h", "oversubscribe", "OVER_SUBSCRIBE", rowOverSubscr),
	col("H", "sockets socketspernode", "SOCKETS_PER_NODE", always("*")),
	col("I", "cores corespersocket", "CORES_PER_SOCKET", always("*")),
	col("J", "threads threadspercore", "THREADS_PER_CORE", always("*")),
	col("j", "name", "NAME", rowName),
	ordered(col("l", "timelimit", "TIME_LIMIT", rowLimit), func(_ *table.View, r *row) int64 { return r.LimitS }),
	col("L", "timeleft", "TIME_LEFT", rowLeft),
	ordered(col("M", "timeused", "TIME", rowRan), func(v *table.View, r *row) int64 { return v.Now.Unix() - r.Started.Unix() }),
	ordered(col("m", "minmemory", "MIN_MEMORY", rowMem), func(_ *table.View, r *row) int64 { return r.memPerNode() }),
	asked("", "mintime", "MIN_TIME", rowMinTime),
	asked("n", "reqnodes", "REQ_NODES", ofSpec("", requiredNodes)),
	col("N", "nodelist", "NODELIST", rowNodes),
	asked("", "numtasks", "TASKS", rowTasks),
	col("P", "partition", "PARTITION", rowPartition),
	ordered(col("p", "priority", "PRIORITY", rowPriorityShare), func(_ *table.View, r *row) int64 { return r.priority() }),
	ordered(col("Q", "prioritylong", "PRIORITY", rowPriority), func(_ *table.View, r *row) int64 { return r.priority() }),
	col("q", "qos", "QOS", rowQOS),
	col("r", "reason", "REASON", rowReason),
	col("R", "reasonlist", "NODELIST(REASON)", rowNodesOrReason),
	asked("", "requeue", "REQUEUE", rowRequeue),
	asked("v", "reservation", "RESERVATION", rowReservation),
	timed(col("S", "starttime", "START_TIME", rowStart), func(r *row) time.Time { return jobs.SlurmStartOf(&r.Job) }),
	timed(asked("", "eligibletime", "ELIGIBLE_TIME", rowEligible), (*row).eligible),
	ordered(col("t", "statecompact", "ST", rowStateShort), byState),
	ordered(col("T", "state", "STATE", rowState), byState),
	asked("", "stdout", "STDOUT", rowStdOut), asked("", "stderr", "STDERR", rowStdErr), asked("", "stdin", "STDIN", rowStdIn),
	timed(col("V", "submittime", "SUBMIT_TIME", rowSubmit), func(r *row) time.Time { return r.Submitted }),
	col("", "tres tres-alloc", "TRES_ALLOC", rowTRES),
	col("b", "tres-per-node gres", "TRES_PER_NODE", rowGres),
	col("u", "username", "USER", rowUser),
	col("U", "userid", "UID", rowUID),
	col("w", "wckey", "WCKEY", always(none)),
	col("W", "licenses", "LICENSES", rowLicenses),
	asked("x", "excnodes", "EXC_NODES", ofSpec("", excludedNodes)),
	col("X", "corespec", "CORE_SPEC", always("N/A")),
	col("y", "nice", "NICE", rowNice),
	col("Y", "schednodes", "SCHEDNODES", always(none)),
	col("z", "sct", "S:C:T", always("*:*:*")),
	asked("Z", "workdir", "WORK_DIR", rowWorkDir),
	timed(asked("", "accruetime", "ACCRUE_TIME", rowEligible), (*row).eligible),
	asked("", "allocnodes", "ALLOC_NODES", rowSubmitHost),
	col("", "maxnodes", "MAX_NODES", rowNumNodes),
	asked("", "ntpernode", "NTASKS_PER_NODE", rowTasksPerNode),
	ordered(col("", "pendingtime", "PENDING_TIME", func(v *table.View, r *row) string { return seconds(planned(v, r)) }), func(v *table.View, r *row) int64 { return int64(planned(v, r)) }),
	asked("", "restartcnt", "RESTART_COUNT", rowRestarts),
}, fixed(none, "admin_comment ADMIN_COMMENT", "system_comment SYSTEM_COMMENT", "burstbuffer BURST_BUFFER", "burstbufferstate BURST_BUFFER_STATE", "clusterfeature CLUSTER_FEATURES", "mcslabel MCSLABEL", "network NETWORK", "prefer PREFER"),
	fixed("0", "allocsid ALLOC_SID", "associd ASSOC_ID", "boardspernode BOARDS_PER_NODE", "derivedec DERIVED_EC", "maxcpus MAX_CPUS", "ntperboard NTASKS_PER_BOARD", "reboot REBOOT", "reqswitch REQ_SWITCH", "sperboard SOCKETS_PER_BOARD"),
	fixed("N/A", "cpus-per-tres CPUS_PER_TRES", "mem-per-tres MEM_PER_TRES", "tres-bind TRES_BIND", "tres-freq TRES_FREQ", "tres-per-job TRES_PER_JOB", "tres-per-socket TRES_PER_SOCKET", "tres-per-task TRES_PER_TASK",
		"hetjobid HET_JOB_ID", "hetjobidset HET_JOB_ID_SET", "hetjoboffset HET_JOB_OFFSET", "lastschedeval LAST_SCHED_EVAL", "ntpercore NTASKS_PER_CORE", "ntpersocket NTASKS_PER_SOCKET", "preempttime PREEMPT_TIME", "resizetime RESIZE_TIME"),
	fixed("NA", "origin ORIGIN", "originraw ORIGIN_RAW", "siblingsactive ACTIVE_SIBLINGS", "siblingsactiveraw ACTIVE_SIBLINGS_RAW", "siblingsviable VIABLE_SIBLINGS", "siblingsviableraw VIABLE_SIBLINGS_RAW"),
	fixed("0:00", "delayboot DELAY_BOOT"), fixed("NotSet", "profile PROFILE"))
