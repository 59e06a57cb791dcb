package slurm

import (
	"cmp"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// row is a job as all of these commands look at it. What is said of it in the
// same words by several of them is a function here, so that it is the same in
// each.
type row struct {
	api.PastJob
	spec *job.Spec // its document; nil: not asked for, or not the caller's to see
	step *stepOf   // nil: it is the job
}

// cellOf is what a command says of a job in one field.
type cellOf func(v *table.View, r *row) string

// none is what Slurm writes where a text is empty.
const none = "(null)"

func always(text string) cellOf { return func(*table.View, *row) string { return text } }

// listed is a cell of gqueue's, which is the same here.
func listed(name string) cellOf {
	c := jobs.Columns.Named(name)
	return func(v *table.View, r *row) string { return string(c.Cell(v, nil, &r.Job)) }
}

var (
	rowID    = listed("id")
	rowIndex = listed("index")
)

func rowNumber(_ *table.View, r *row) string {
	if r.Number == 0 { // a task that waits: its array's
		return fmt.Sprint(r.Parent)
	}
	if r.step != nil {
		return fmt.Sprintf("%d.%s", r.Number, r.step.name)
	}
	return fmt.Sprint(r.Number)
}

func rowArray(_ *table.View, r *row) string { return fmt.Sprint(cmp.Or(r.Parent, r.Number)) }
func rowName(_ *table.View, r *row) string  { return r.Name }
func rowUser(_ *table.View, r *row) string  { return r.User }
func rowUID(_ *table.View, r *row) string   { return userOf(r.User).Uid }
func rowGID(_ *table.View, r *row) string   { return userOf(r.User).Gid }
func rowGroup(_ *table.View, r *row) string { return groupOf(r.User) }

func rowAccount(_ *table.View, r *row) string   { return cmp.Or(r.Project, none) }
func rowQOS(_ *table.View, r *row) string       { return cmp.Or(r.QOS, "normal") }
func rowPartition(_ *table.View, r *row) string { return partitionOf(&r.Job) }
func rowCPUs(_ *table.View, r *row) string      { return fmt.Sprint(r.CPUs) }
func rowNumNodes(_ *table.View, r *row) string  { return fmt.Sprint(jobs.NumNodes(&r.Job)) }
func rowNodes(_ *table.View, r *row) string     { return human.Hosts(r.Nodes) }

func rowFirstNode(_ *table.View, r *row) string {
	if len(r.Nodes) == 0 {
		return "n/a"
	}
	return r.Nodes[0]
}

func rowDependency(_ *table.View, r *row) string {
	if r.Dependency == "" {
		return none
	}
	return strings.ReplaceAll(r.Dependency, ",", "(unfulfilled),") + "(unfulfilled)"
}

// unknownID is what Slurm writes for who has no account on this machine.
const unknownID = "4294967294"

// userOf is a user as this machine knows them.
func userOf(name string) user.User {
	if u, err := user.Lookup(name); err == nil {
		return *u
	}
	return user.User{Username: name, Uid: unknownID, Gid: unknownID}
}

func groupOf(name string) string {
	if g, err := user.LookupGroupId(userOf(name).Gid); err == nil {
		return g.Name
	}
	return "nobody"
}

// stateOf is a job's state in Slurm's words.
func stateOf(j *api.Job) string {
	if j.State == job.Running && j.Reason == "Paused" {
		return "SUSPENDED"
	}
	return jobs.StateAs("slurm", j)
}

// accounted is a state as accounting has it, for which a job that has nodes runs
// until its end is known. Tools take sacct's other words for ends.
func accounted(state string) string {
	if state == "CONFIGURING" || state == "COMPLETING" {
		return "RUNNING"
	}
	return state
}

func rowAccounted(v *table.View, r *row) string { return accounted(rowState(v, r)) }

func rowState(_ *table.View, r *row) string {
	if r.step != nil {
		return r.step.state
	}
	return stateOf(&r.Job)
}

func rowStateShort(v *table.View, r *row) string { return shortStates[rowState(v, r)] }

// slurmReasons are our reasons in Slurm's words, where it has one.
var slurmReasons = map[string]string{
	string(job.ExitCode): "NonZeroExitCode", string(job.Signal): "NonZeroExitCode", string(job.OOM): "OutOfMemory",
	string(job.MaxRuntime): "TimeLimit", string(job.NodeFail): "NodeDown", string(job.MaxQueued): "DeadLine", string(job.NotAfter): "DeadLine",
	string(job.ImagePull): "JobLaunchFailure", string(job.Mount): "JobLaunchFailure", string(job.Server): "SystemFailure", string(job.Prolog): "Prolog",
	string(job.ByUser): "None", string(job.ByAdmin): "None", string(job.DependencyFailed): "DependencyNeverSatisfied",
	"Never": "BadConstraints", "Limit": "AssocMaxJobsLimit", "RESTORED": "JobHeldUser", "NotYetEvaluated": "None", "Unknown": "None", "Paused": "None", "": "None",
}

func rowReason(_ *table.View, r *row) string {
	if w, ok := slurmReasons[r.Reason]; ok {
		return w
	}
	return r.Reason
}

func rowNodesOrReason(v *table.View, r *row) string {
	if len(r.Nodes) > 0 && !r.State.Pending() {
		return human.Hosts(r.Nodes)
	}
	return "(" + rowReason(v, r) + ")"
}

// Times.

func rowRan(v *table.View, r *row) string {
	return string(human.Duration(nil, int64(jobs.Ran(&r.Job, v.Now)/time.Second)))
}

func rowLimit(_ *table.View, r *row) string {
	if r.LimitS <= 0 {
		return "UNLIMITED"
	}
	return string(human.Duration(nil, r.LimitS))
}

func rowLeft(v *table.View, r *row) string {
	if r.LimitS <= 0 {
		return "UNLIMITED"
	}
	return string(human.Duration(nil, r.LimitS-int64(jobs.Ran(&r.Job, v.Now)/time.Second)))
}

// at writes a time, or what stands where there is none.
func at(v *table.View, t time.Time, absent string) string {
	if t.IsZero() {
		return absent
	}
	return string(v.Moment(nil, t))
}

func rowSubmit(v *table.View, r *row) string { return at(v, r.Submitted, "N/A") }
func rowStart(v *table.View, r *row) string  { return at(v, jobs.SlurmStartOf(&r.Job), "N/A") }
func rowEnd(v *table.View, r *row) string    { return at(v, jobs.EndOf(&r.Job), "N/A") }

// What it asks for.

// memPerNode is the memory of one rank, in bytes.
func (r *row) memPerNode() int64 { return r.MemBytes / int64(max(r.NumNodes, 1)) }

func rowMem(v *table.View, r *row) string {
	switch {
	case r.MemBytes == 0:
		return "0"
	case v.Unit != 0:
		return amount(v, r.memPerNode(), 'M')
	}
	return string(human.Size(nil, r.memPerNode()))
}

// launch is what srun starts in the job when it is not told; nil: it is no script.
func (r *row) launch() *job.Launch {
	if r.spec == nil {
		return nil
	}
	return gbatchOf(r.spec).Launch
}

func rowTasks(v *table.View, r *row) string {
	switch l := r.launch(); {
	case l != nil && l.Tasks > 0:
		return fmt.Sprint(l.Tasks)
	case l != nil && l.PerNode > 0:
		return fmt.Sprint(l.PerNode * jobs.NumNodes(&r.Job))
	}
	return rowNumNodes(v, r)
}

func rowCPUsPerTask(v *table.View, r *row) string {
	if l := r.launch(); l != nil {
		return fmt.Sprint(max(l.CPUsPerTask, 1))
	}
	return rowCPUsPerNode(v, r)
}

func rowTasksPerNode(_ *table.View, r *row) string {
	if l := r.launch(); l != nil {
		return fmt.Sprint(l.PerNode)
	}
	return "0"
}

// rowSubmitHost is where it was submitted.
func rowSubmitHost(_ *table.View, r *row) string {
	if l := r.launch(); l != nil {
		return cmp.Or(l.Host, "N/A")
	}
	return "N/A"
}

func rowCPUsPerNode(_ *table.View, r *row) string { return fmt.Sprint(r.CPUs / max(r.NumNodes, 1)) }

// gresPerNode is the GPUs of one rank as Slurm writes them; empty: none.
func (r *row) gresPerNode() string {
	if r.GPUs == 0 {
		return ""
	}
	return "gres:gpu:" + strconv.FormatFloat(r.GPUs/float64(jobs.NumNodes(&r.Job)), 'f', -1, 64)
}

func rowGres(_ *table.View, r *row) string { return cmp.Or(r.gresPerNode(), "N/A") }

// rowTRES is what a job has, or asks for, in Slurm's words.
func rowTRES(v *table.View, r *row) string {
	mem := ",mem=" + mebibytes(r.MemBytes)
	switch {
	case r.MemBytes > 0 && v.Unit != 0:
		mem = ",mem=" + amount(v, r.MemBytes, 'M')
	case r.MemBytes == 0 && r.step != nil:
		mem = "" // what srun starts shares its job's
	}
	s := fmt.Sprintf("cpu=%d%s,node=%d", r.CPUs, mem, jobs.NumNodes(&r.Job))
	if r.GPUs > 0 {
		s += ",gres/gpu=" + strconv.FormatFloat(r.GPUs, 'f', -1, 64)
	}
	return s
}

func rowTRESAlloc(v *table.View, r *row) string {
	if r.State.Pending() || len(r.Nodes) == 0 {
		return ""
	}
	return rowTRES(v, r)
}

// mebibytes is whole gibibytes or mebibytes, as in TRES.
func mebibytes(n int64) string {
	if n > 0 && n%(1<<30) == 0 {
		return fmt.Sprintf("%dG", n>>30)
	}
	return fmt.Sprintf("%dM", n>>20)
}

// priority is a job's points: 0 while it is held.
func (r *row) priority() int64 {
	switch {
	case r.State == job.OnHold:
		return 0
	case r.Factors != nil:
		return r.Factors.Total
	}
	return max(r.Job.Priority, 0)
}

func rowPriority(_ *table.View, r *row) string { return fmt.Sprint(r.priority()) }

// rowPriorityShare is the points as Slurm's fraction of the most that it can count.
func rowPriorityShare(_ *table.View, r *row) string {
	return strconv.FormatFloat(float64(r.priority())/(1<<32), 'f', 14, 64)
}

// rowNice is what is taken off a job's priority.
func rowNice(_ *table.View, r *row) string { return fmt.Sprint(-r.Job.Priority) }

// What its document says; of jobs whose document is not seen, what Slurm writes
// where there is nothing.

func ofSpec(absent string, of func(s *job.Spec) string) cellOf {
	return func(_ *table.View, r *row) string {
		if r.spec == nil {
			return absent
		}
		return cmp.Or(of(r.spec), absent)
	}
}

func gbatchOf(s *job.Spec) job.Gbatch {
	if s.Gbatch == nil {
		return job.Gbatch{}
	}
	return *s.Gbatch
}

// rowComment is what the job was given later, or else its document's.
func rowComment(v *table.View, r *row) string {
	if c := r.Job.Comment; c != nil {
		return cmp.Or(*c, none)
	}
	return ofComment(v, r)
}

var (
	rowWorkDir     = ofSpec(none, func(s *job.Spec) string { return s.Request.Docker.WorkingDir })
	ofComment      = ofSpec(none, func(s *job.Spec) string { return gbatchOf(s).Labels["comment"] })
	rowImage       = ofSpec(none, func(s *job.Spec) string { return s.Request.Docker.Image })
	rowReqNodes    = ofSpec(none, requiredNodes)
	rowExcNodes    = ofSpec(none, excludedNodes)
	rowReservation = ofSpec(none, func(s *job.Spec) string { return strings.Join(s.Request.Scheduling.ReservationIDs, ",") })
	rowOverSubscr  = ofSpec("OK", func(s *job.Spec) string { return pick(gbatchOf(s).Exclusive, "NO", "OK") })
	rowRequeue     = ofSpec("0", func(s *job.Spec) string { return pick(s.Request.Scheduling.Restartable, "1", "0") })
	rowMinTime     = func(_ *table.View, r *row) string {
		return pick(r.LimitMinS <= 0, "N/A", span(r.LimitMinS))
	}
	rowLicenses = func(_ *table.View, r *row) string { return cmp.Or(r.Licenses, none) }
	rowFeatures = ofSpec(none, features)
	rowCommand  = ofSpec(none, commandOf)
)

func requiredNodes(s *job.Spec) string {
	if n := s.Request.Resources.SlaveName; n != "" {
		return n
	}
	return human.Hosts(gbatchOf(s).NodeNames)
}

func excludedNodes(s *job.Spec) string { return human.Hosts(gbatchOf(s).ExcludeNodes) }

func rowEligible(v *table.View, r *row) string { return at(v, r.eligible(), "N/A") }
func rowDeadline(v *table.View, r *row) string { return at(v, r.deadline(), "N/A") }

// eligible is from when it might have started; zero: not known yet.
func (r *row) eligible() time.Time {
	switch {
	case r.State == job.OnHold || r.Dependency != "":
		return time.Time{}
	case r.spec != nil && r.spec.Request.Scheduling.NotBefore > 0:
		return time.UnixMilli(int64(r.spec.Request.Scheduling.NotBefore))
	}
	return r.Submitted
}

// deadline is when it is to have started; zero: whenever.
func (r *row) deadline() time.Time {
	if r.spec == nil || r.spec.Request.Scheduling.NotAfter == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(r.spec.Request.Scheduling.NotAfter))
}

func pick(when bool, yes, no string) string {
	if when {
		return yes
	}
	return no
}

func span(secs int64) string {
	if secs == 0 {
		return ""
	}
	return string(human.Duration(nil, secs))
}

// features are what a job wants of its nodes, as -C takes it.
func features(s *job.Spec) string {
	out := slices.Clone(s.Request.Resources.Features)
	for _, any := range gbatchOf(s).AnyFeatures {
		out = append(out, "("+strings.Join(any, "|")+")")
	}
	return strings.Join(out, "&")
}

// commandOf is what it runs, in one line: the path of a batch script with its
// arguments, of what is no script the first word.
func commandOf(s *job.Spec) string {
	c := s.Request.Docker.Command
	if l := gbatchOf(s).Launch; l != nil && l.Script != "" {
		if l.File == "" { // from standard input, or of --wrap
			return ""
		}
		args := c.Argv[slices.Index(c.Argv, job.ScriptPath)+1:] // behind an image's entrypoint the script is there too
		return strings.Join(slices.Concat([]string{l.File}, args), " ")
	}
	if len(c.Argv) > 0 {
		return c.Argv[0]
	}
	line, _, _ := strings.Cut(c.Line, "\n")
	return line
}

// restarts counts the attempts before the last, but for those that were given to a node
// ahead and taken back before it had begun them.
func restarts(r *row) (n int) {
	for _, a := range r.Attempts[:max(len(r.Attempts)-1, 0)] {
		if slices.ContainsFunc(a.Ranks, func(k api.Rank) bool {
			return k.Exit == nil || k.Exit.StartedMS > 0 || k.Exit.Reason != job.ByUser
		}) {
			n++
		}
	}
	return n
}

func rowRestarts(_ *table.View, r *row) string { return fmt.Sprint(restarts(r)) }
