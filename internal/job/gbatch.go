package job

// Gbatch holds what the GPULab document has no word for. What belongs together
// has a type and a file of its own: tasks.go, retry.go, depend.go, data.go,
// secret.go.
type Gbatch struct {
	// Where it came from, and what people say about it.
	Source string            `json:"source,omitempty"` // format it was written in, as nvct: whose variables it gets and whose words gqueue --as uses
	Labels map[string]string `json:"labels,omitempty"` // tags and annotations; gbatch does not act on them

	// What it needs.
	InstanceType         string         `json:"instanceType,omitempty"`    // a name in the site's table, for what request.resources leaves at 0
	ImageAlias           string         `json:"imageAlias,omitempty"`      // a name in the site's table, instead of request.docker.image
	Nodes                int            `json:"nodes,omitempty"`           // ranks of a gang; 0 and 1: one
	OtherGroups          []Group        `json:"otherGroups,omitempty"`     // of a gang: ranks after those, which ask for other amounts or run something else
	RanksPerNode         int            `json:"ranksPerNode,omitempty"`    // so many of them, of all groups, may be on one node; 0 and 1: each has one of its own
	OfRanks              []Own          `json:"ofRanks,omitempty"`         // names and variables of each rank; empty: it has none of its own
	StartOrder           string         `json:"startOrder,omitempty"`      // of a gang: any (empty), master-first, workers-first
	StopWhen             string         `json:"stopWhen,omitempty"`        // of a gang: all-done (empty), master-done
	StopRanks            int            `json:"stopRanks,omitempty"`       // with master-done: so many of the first ranks have to be done; 0: one
	Launch               *Launch        `json:"launch,omitempty"`          // the command runs on the first rank alone; see Launch
	Exclusive            bool           `json:"exclusive,omitempty"`       // no other job on the nodes, and all that they have; amounts are the least
	AllMemory            bool           `json:"allMemory,omitempty"`       // all memory of the nodes, of which cpuMemoryGb is the least
	MemoryByDefault      bool           `json:"memoryByDefault,omitempty"` // nobody asked for cpuMemoryGb: the default of a partition takes its place
	MinComputeCapability float64        `json:"minComputeCapability,omitempty"`
	AnyFeatures          [][]string     `json:"anyFeatures,omitempty"` // of each list, the node has at least one
	Licenses             map[string]int `json:"licenses,omitempty"`    // of the site's counters, so many while it runs

	Partitions   []string `json:"partitions,omitempty"`   // one of these, which the site or its nodes name; all ranks in the same
	NodeNames    []string `json:"nodeNames,omitempty"`    // only these nodes
	ExcludeNodes []string `json:"excludeNodes,omitempty"` // none of these
	DiskGB       int      `json:"diskGb,omitempty"`       // GiB for what the container writes outside its mounts

	// How it is run.
	Entrypoint []string `json:"entrypoint,omitempty"` // instead of the image's

	ExpandVariables bool `json:"expandVariables,omitempty"` // $(NAME) in the command and in variables is what every job is told by that name

	Network    Network `json:"network,omitempty"`    // empty: see Spec.Network
	Privileged bool    `json:"privileged,omitempty"` // where the site allows
	Runtime    string  `json:"runtime,omitempty"`    // on nodes that have it; empty: the usual one

	Capabilities []Capability `json:"capabilities,omitempty"` // beside the usual ones, where the site allows

	Stdio *Stdio `json:"stdio,omitempty"` // files of the program's, beside the log

	Terminal  bool `json:"terminal,omitempty"`  // the program has a terminal that can be attached to
	ShmSizeMB int  `json:"shmSizeMb,omitempty"` // size of /dev/shm, MiB, inside the memory; 0: the node's default

	// When, how often and for how long.
	QOS          string       `json:"qos,omitempty"`
	Priority     int          `json:"priority,omitempty"`  // <= 0 unless an operator submits
	MaxQueued    Duration     `json:"maxQueued,omitempty"` // FAILED MAX_QUEUED after that long in the queue
	LimitScope   string       `json:"limitScope,omitempty"`
	LimitMin     Duration     `json:"limitMin,omitempty"` // it may be given a limit down to this, where it starts sooner by it
	Tasks        *Tasks       `json:"tasks,omitempty"`
	Retry        *Retry       `json:"retry,omitempty"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
	DependOnAny  bool         `json:"dependOnAny,omitempty"` // one of Dependencies is enough
	Cron         []string     `json:"cron,omitempty"`        // five fields: the job is a template, and each time makes a job
	CronZone     string       `json:"cronZone,omitempty"`    // whose clock Cron goes by, as Europe/Brussels; empty: UTC. The controller knows which there are
	CronOverlap  bool         `json:"cronOverlap,omitempty"` // a time makes a job even if the one made before has not ended
	Replace      bool         `json:"replace,omitempty"`     // the user's earlier jobs of this name and project are cancelled, and it starts when they are over

	// How it is told to end.
	WarnBefore  Duration `json:"warnBefore,omitempty"`  // WarnSignal is sent that long before the time limit
	WarnSignal  string   `json:"warnSignal,omitempty"`  // USR1, USR2, HUP, INT or TERM; set with WarnBefore
	ShareOfNode bool     `json:"shareOfNode,omitempty"` // cores and memory are the node's share of the GPUs, and those that are asked for the least

	HaltSignal string   `json:"haltSignal,omitempty"` // sent when the job is halted to make room; empty: TERM
	HaltGrace  Duration `json:"haltGrace,omitempty"`  // from HaltSignal to KILL; 0: the site's
	SignalTo   string   `json:"signalTo,omitempty"`   // who gets these signals: SignalProgram, also if empty, or SignalFirst
	StopSignal string   `json:"stopSignal,omitempty"` // sent when it is cancelled or out of time; empty: TERM
	StopGrace  Duration `json:"stopGrace,omitempty"`  // from StopSignal to KILL; 0: the site's, which is also the most
	IdleGPU    *IdleGPU `json:"idleGpu,omitempty"`
	Notify     []Notify `json:"notify,omitempty"` // who is told what becomes of it

	Before       []Before `json:"before,omitempty"`       // programs that run first, one after the other
	Beside       []Before `json:"beside,omitempty"`       // programs that run at the same time as the job's own
	OwnGPUs      *int     `json:"ownGpus,omitempty"`      // of the job's own program; nil: those that no other program has for itself
	FailTogether bool     `json:"failTogether,omitempty"` // the first of these and the job's own that fails ends the others

	// Its data.
	Files           []File   `json:"files,omitempty"`       // put into the container
	Directories     []string `json:"directories,omitempty"` // made in the container, for everybody to write to
	Inputs          []Input  `json:"inputs,omitempty"`
	Outputs         []Output `json:"outputs,omitempty"`
	S3              *S3      `json:"s3,omitempty"`
	Secrets         []Secret `json:"secrets,omitempty"`
	ProgressFile    string   `json:"progressFile,omitempty"`    // of NVCT's form: its percentage is shown
	RequireProgress bool     `json:"requireProgress,omitempty"` // success needs 100 percent there
}

// gbatch is Gbatch, empty where the document has none.
func (s *Spec) gbatch() Gbatch {
	if s.Gbatch == nil {
		return Gbatch{}
	}
	return *s.Gbatch
}

// Entrypoint is what replaces the image's; nil: nothing.
func (s *Spec) Entrypoint() []string { return s.gbatch().Entrypoint }

// Privileged says whether the job asks to be root on its node.
func (s *Spec) Privileged() bool { return s.gbatch().Privileged }

// What Gbatch.LimitScope says request.scheduling.maxDuration is counted over.
const (
	LimitTotal   = ""        // run time of all attempts of a task together
	LimitAttempt = "attempt" // run time of each attempt
	LimitJob     = "job"     // time since the job first started, waits between and all tasks included
)

// The words of Gbatch.SignalTo.
const (
	SignalProgram = "program" // whoever is behind shells and inits
	SignalFirst   = "first"   // the container's first process alone
)

// The words of Gbatch.StartOrder and StopWhen.
const (
	MasterFirst  = "master-first"  // the others start once rank 0 runs
	WorkersFirst = "workers-first" // rank 0 starts once the others run
	MasterDone   = "master-done"   // the good end of rank 0, or of the first StopRanks, is the gang's
)

// IdleGPU ends a job whose GPUs do nothing.
type IdleGPU struct {
	MinUtilization int      `json:"minUtilization"` // percent: the mean over Window is below this on every GPU
	Window         Duration `json:"window"`         // at least five minutes
}
