// Package job is the job model: what a user asks for (Spec, the native GPULab
// v2 document), what can happen to it (State, Reason and the transition
// table), and the numbers that name jobs, tasks, attempts and ranks.
//
// The package is pure: it parses and validates bytes and returns values. It
// reads no clock, file or network, and knows nothing of nodes or queues.
// Values are owned by whoever made them; a Spec is not changed after Parse.
package job

import (
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job/times"
)

// Spec is a job in the native form: the GPULab v2 document, checked and with
// defaults filled in, plus gbatch's own additions under "gbatch". Its JSON is
// what `gsubmit --convert` writes, what the store keeps and what a node gets.
// It never holds a password: Parse splits registry credentials off.
type Spec struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Owner       *Owner  `json:"owner,omitempty"`
	Request     Request `json:"request"`
	Gbatch      *Gbatch `json:"gbatch,omitempty"`
}

// Owner names the project of a document that carries it; see Spec.ProjectName.
type Owner struct {
	ProjectURN string `json:"projectUrn,omitempty"`
	UserURN    string `json:"userUrn,omitempty"`
	UserEmail  string `json:"userEmail,omitempty"`
}

// Request is what the job needs, runs and allows.
type Request struct {
	Resources  Resources  `json:"resources"`
	Docker     Docker     `json:"docker"`
	Scheduling Scheduling `json:"scheduling"`
	Extra      *Extra     `json:"extra,omitempty"`
}

// Resources is the request of one rank.
type Resources struct {
	ClusterID      int      `json:"clusterId,omitempty"`      // 0: any cluster
	SlaveName      string   `json:"slaveName,omitempty"`      // node name; case and punctuation are ignored
	GPUs           float64  `json:"gpus"`                     // -1: all of one node; a fraction below 1 is a share of one GPU
	CPUs           int      `json:"cpus,omitempty"`           // cores; 0 only with Gbatch.InstanceType
	CPUMemoryGB    int      `json:"cpuMemoryGb,omitempty"`    // GiB, tmpfs not included; 0 only with Gbatch.InstanceType
	GPUModel       []string `json:"gpuModel,omitempty"`       // any of these, as case-insensitive part of the model's name
	GPUMemoryGB    int      `json:"gpuMemoryGb,omitempty"`    // least memory of each GPU, GiB
	MinCudaVersion int      `json:"minCudaVersion,omitempty"` // least CUDA major version of the node's driver
	Features       []string `json:"features,omitempty"`       // all of these
}

// Docker is the container.
type Docker struct {
	Image        string            `json:"image,omitempty"` // without credentials; empty only with Gbatch.ImageAlias
	Command      Command           `json:"command"`
	Environment  map[string]string `json:"environment,omitempty"`
	Storage      []Storage         `json:"storage,omitempty"`
	PortMappings []PortMapping     `json:"portMappings,omitempty"`
	WorkingDir   string            `json:"workingDir,omitempty"` // absolute; empty: the image's
	User         string            `json:"user,omitempty"`
	GroupAdd     []string          `json:"groupAdd,omitempty"`

	// ProjectGIDVariable is the name of the variable that gets the project's gid.
	ProjectGIDVariable string `json:"projectGidVariableName,omitempty"`
}

// Command keeps the form the user wrote, because it decides how it runs: see
// Command.Args. JSON is the string, the array, or "" for the image's own.
type Command struct {
	Line string   // the string form; empty when Argv is used or nothing was given
	Argv []string // the array form, passed as it is
}

// Storage is one mount.
type Storage struct {
	HostPath      string `json:"hostPath"` // "tmpfs", "scratch", ".ssh", or a path below a storage root
	ContainerPath string `json:"containerPath"`
	SizeGB        int    `json:"sizeGb,omitempty"`   // tmpfs only; on top of cpuMemoryGb, unless OfMemory
	OfMemory      bool   `json:"ofMemory,omitempty"` // tmpfs and scratch only: what it holds is part of cpuMemoryGb; without a size it may hold all of that
	Volume        string `json:"volume,omitempty"`   // scratch only: mounts of one name show the same directory, which is empty at first
	SubPath       string `json:"subPath,omitempty"`  // scratch only: what of the volume; made as a directory where it is missing
	ReadOnly      bool   `json:"readOnly,omitempty"` // gbatch's addition
}

// Scheduling is when the job may run and what may be done to it. Times are
// Unix milliseconds and durations seconds in memory; their JSON is RFC 3339
// and the document's own duration grammar ("90 minutes", "1.5 h").
type Scheduling struct {
	Interactive            bool     `json:"interactive,omitempty"`
	MinDuration            Duration `json:"minDuration,omitempty"` // 0: the site's default
	MaxDuration            Duration `json:"maxDuration,omitempty"` // 0: the site's default
	Restartable            bool     `json:"restartable,omitempty"`
	AllowHaltWithoutSignal bool     `json:"allowHaltWithoutSignal,omitempty"`
	NotBefore              Instant  `json:"notBefore,omitzero"`
	NotAfter               Instant  `json:"notAfter,omitzero"`
	ReservationIDs         []string `json:"reservationIds,omitempty"`
	MaxSimultaneousJobs    *bucket  `json:"maxSimultaneousJobs,omitempty"`
}

// bucket limits how many jobs of the same bucket name (per project) run at once.
type bucket struct {
	Name string `json:"bucketName"`
	Max  int    `json:"bucketMax"`
}

type (
	// Duration and Instant are times as documents have them.
	Duration = times.Duration
	Instant  = times.Instant
)

// Extra is GPULab's: who is told of what, by mail.
type Extra struct {
	SSHPubKeys     []string `json:"sshPubKeys,omitempty"` // kept for information: gexec needs no key
	EmailOnQueue   []string `json:"emailOnQueue,omitempty"`
	EmailOnRun     []string `json:"emailOnRun,omitempty"`
	EmailOnEnd     []string `json:"emailOnEnd,omitempty"`
	EmailOnHalt    []string `json:"emailOnHalt,omitempty"`
	EmailOnRestart []string `json:"emailOnRestart,omitempty"`
}

const (
	gib = 1 << 30
	mib = 1 << 20
)

// MemoryBytes is what one rank may use and what a node reserves for it: the
// memory asked for and all tmpfs, whose pages are charged to the container.
func (s *Spec) MemoryBytes() int64 {
	total := int64(s.Request.Resources.CPUMemoryGB)
	for _, m := range s.Mounts() {
		if !m.OfMemory {
			total += int64(m.SizeGB)
		}
	}
	return total * gib
}

// Mounts are all that programs of the job mount.
func (s *Spec) Mounts() []Storage {
	list := s.Request.Docker.Storage
	for _, b := range s.Programs() {
		list = slices.Concat(list, b.Storage)
	}
	return list
}

// RankWord in a mount's hostPath stands for the number of the rank that mounts it.
const RankWord = "{rank}"

// OfRank is the job as one of its ranks has it: with the amounts and the command of its
// group, and directories of its own where mounts name them.
func (s *Spec) OfRank(rank uint32) Spec {
	out := *s
	if g := s.groupOf(int(rank)); g != nil {
		out = s.OfGroup(g)
	}
	of := func(list []Storage) []Storage {
		list = slices.Clone(list)
		for i := range list {
			list[i].HostPath = strings.ReplaceAll(list[i].HostPath, RankWord, strconv.FormatUint(uint64(rank), 10))
		}
		return list
	}
	out.Request.Docker.Storage = of(s.Request.Docker.Storage)
	if g := out.gbatch(); len(g.Before)+len(g.Beside) > 0 {
		g.Before, g.Beside = slices.Clone(g.Before), slices.Clone(g.Beside)
		for _, list := range [][]Before{g.Before, g.Beside} {
			for i := range list {
				list[i].Storage = of(list[i].Storage)
			}
		}
		out.Gbatch = &g
	}
	return out
}

// ProjectName is the project that the document names, empty if it names none.
func (s *Spec) ProjectName() string {
	if s.Owner == nil {
		return ""
	}
	return s.Owner.ProjectURN[strings.LastIndexByte(s.Owner.ProjectURN, '+')+1:]
}
