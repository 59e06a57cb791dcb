package api

import (
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// ClusterInfo is the answer of GET /v1/cluster.
type ClusterInfo struct {
	Nodes      []Node      `json:"nodes"`
	Partitions []Partition `json:"partitions,omitempty"` // that the site has made, and those that only nodes name

	Licenses []License `json:"licenses,omitempty"` // that the site counts, by name

	Total       int      `json:"total,omitempty"`       // nodes that were asked for, of which Nodes may be a part
	NumGPUs     int      `json:"numGpus,omitempty"`     // of all of those
	NumFreeGPUs int      `json:"numFreeGpus,omitempty"` // of NumGPUs: whole ones that nobody has
	Models      []string `json:"models,omitempty"`      // of GPUs, in the whole cluster
}

// License is a counter of the site's, of which running jobs have so many.
type License struct {
	Name  string `json:"name"`
	Total int64  `json:"total"`
	Used  int64  `json:"used"`
	Asked int64  `json:"asked,omitempty"` // by jobs that wait
}

// Node is a machine with a gnoded.
type Node struct {
	Name       string        `json:"name"`
	Cluster    int           `json:"cluster"`
	State      string        `json:"state"`            // up, drained, rebooting, suspect, lost, unhealthy, penalized
	Reason     string        `json:"reason,omitempty"` // why it is not up
	Since      time.Time     `json:"since,omitzero"`   // it has been in this state
	Reboot     string        `json:"reboot,omitempty"` // an order to reboot it: pending while jobs are there, sent, late when it should be back, failed
	Version    string        `json:"version"`
	Hostname   string        `json:"hostname"`
	CPUs       Use           `json:"cpus"`
	MemBytes   Use           `json:"memBytes"`
	GPUs       []GPU         `json:"gpus,omitempty"`
	CUDA       string        `json:"cuda,omitempty"` // driver's CUDA version, as 12.4
	Driver     string        `json:"driver,omitempty"`
	Features   []string      `json:"features,omitempty"`
	Partitions []string      `json:"partitions,omitempty"` // that it is in
	Storage    []NodeStorage `json:"storage,omitempty"`    // that jobs can mount there
	Simulated  bool          `json:"simulated,omitempty"`  // its GPUs are pretended
	Jobs       int           `json:"jobs"`                 // active on it
	LastSeen   time.Time     `json:"lastSeen"`
	SkewMS     int64         `json:"skewMs,omitempty"` // its clock is so far ahead of the controller's, where that is too much
}

// NodeDetail is a node and what became of it lately.
type NodeDetail struct {
	Node
	Past []NodeChange `json:"past"` // the newest last; at most 100
}

// NodeChange is one thing that happened to a node.
type NodeChange struct {
	Time   time.Time `json:"time"`
	State  string    `json:"state"`            // of the node from then on
	Text   string    `json:"text"`             // what happened, as "lost: no contact for 2 minutes"
	Reason string    `json:"reason,omitempty"` // why it is not up
	By     string    `json:"by,omitempty"`     // who did it; absent: nobody, it happened
}

// NodeStorage is a root of the site's storage on a node: jobs mount what lies below it.
type NodeStorage struct {
	Name       string `json:"name"` // as /project, or .ssh
	ReadOnly   bool   `json:"readOnly,omitempty"`
	Away       string `json:"away,omitempty"`       // why it cannot be mounted now; jobs that mount it are not started there
	TotalBytes int64  `json:"totalBytes,omitempty"` // of its file system, by the node's last word
	FreeBytes  int64  `json:"freeBytes,omitempty"`
}

// Use is an amount of something: how much there is and how much is free.
type Use struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}

// GPU is one device, or MIG instance, of a node.
type GPU struct {
	UUID        string     `json:"uuid"`
	Index       int        `json:"index"` // by PCI address
	Model       string     `json:"model"`
	MemBytes    int64      `json:"memBytes"`
	ComputeCap  string     `json:"computeCap,omitempty"` // as 8.0
	NUMA        int        `json:"numa"`                 // -1 unknown
	FreeMilli   int64      `json:"freeMilli"`            // of 1000
	Unhealthy   string     `json:"unhealthy,omitempty"`
	Job         job.Number `json:"job,omitempty"`         // the first of its jobs
	Utilization *float64   `json:"utilization,omitempty"` // percent, last sample
	MemUsed     *int64     `json:"memUsedBytes,omitempty"`
	Celsius     *float64   `json:"celsius,omitempty"` // how hot it is
}

// SyncRequest is what a node says each time: all of what it holds, so that a
// lost message heals by the next one. Two may be in flight at once (the open
// poll, and one with updates); phases only move forward, so their order does not
// matter.
type SyncRequest struct {
	Instance      string            `json:"instance"` // id of the node's state directory: another one means its attempts are gone
	Boot          string            `json:"boot"`     // kernel boot id
	InventoryHash string            `json:"inventoryHash"`
	Inventory     *node.Inventory   `json:"inventory,omitempty"` // when the controller asked for it
	Unhealthy     []string          `json:"unhealthy,omitempty"` // reasons not to send jobs here now
	Faults        []node.Fault      `json:"faults,omitempty"`    // for which it is to be drained, until that is noted
	Ranks         []node.RankStatus `json:"ranks,omitempty"`     // every rank the node holds
	Samples       []GPUSample       `json:"samples,omitempty"`   // of its GPUs
	Storage       []StorageSample   `json:"storage,omitempty"`   // of what jobs can mount
	Use           []RankUse         `json:"use,omitempty"`       // of ranks that run

	Checked bool         `json:"checked,omitempty"` // since the daemon began, all checks of the machine have passed
	Reboot  *node.Reboot `json:"reboot,omitempty"`  // on the order to reboot that it was given last

	Prepulled []node.Prepulled `json:"prepulled,omitempty"` // of the images asked for last
	Documents []string         `json:"documents,omitzero"`  // names of those that it has; absent: of an older node, which is sent them in each order
	Records   string           `json:"records,omitempty"`   // as the controller said last, also before a restart of either
	Seen      uint64           `json:"seen"`                // version of the desired set it has
	WaitMS    int64            `json:"waitMs"`              // how long to hold the request open when nothing is new
	NowMS     int64            `json:"nowMs"`               // the node's clock
	Nonce     uint64           `json:"nonce,omitempty"`     // drawn for this request; the answer has it too
}

// SyncResponse is the answer: the node's desired set. Versions only grow, over
// restarts of the controller too. A node must ignore an answer whose Version
// is lower than one it has acted on: it is an older one that came late, and
// may name a rank that has long ended.
type SyncResponse struct {
	Version       uint64          `json:"version"`           // of the desired set
	Changed       bool            `json:"changed,omitempty"` // Desired is set; false: as Seen
	Desired       []Order         `json:"desired,omitempty"`
	WantInventory bool            `json:"wantInventory,omitempty"`
	Streams       []StreamRequest `json:"streams,omitempty"`
	Records       string          `json:"records,omitempty"`  // how far the controller's records have come: for nobody to read but the controller, when it is sent again
	LeaseMS       int64           `json:"leaseMs"`            // without contact for that long the node ends its ranks
	SpreadMS      int64           `json:"spreadMs,omitempty"` // when contact is lost it comes back at random within that time; 0: of an older controller
	Noted         uint64          `json:"noted,omitempty"`    // the last of the node's faults for which it was drained
	Nonce         uint64          `json:"nonce,omitempty"`    // of the request: with another one it is no answer to that; 0: of an older controller
	Reboot        uint64          `json:"reboot,omitempty"`   // it is empty, and shall be rebooted: the number of the order; 0: it shall not

	Prepull []Prepull `json:"prepull,omitempty"` // goes with Desired: images to have soon; others need not be kept

	Documents []Document `json:"documents,omitempty"` // that orders name, and the node does not have
}

// Document is what jobs were asked as: the tasks of an array share one, and so do jobs that are
// alike. Its name is of what is in it, so one that was changed is another one.
type Document struct {
	Name string   `json:"name"`
	Spec job.Spec `json:"spec"`
}

// Prepull is an image that a waiting job will need on the node. It is pulled when
// nothing else is, and nothing depends on its being there.
type Prepull struct {
	Job      job.Number  `json:"job"`
	Image    string      `json:"image"`
	Digest   string      `json:"digest,omitempty"` // once known
	Registry *Credential `json:"registry,omitempty"`
	Peers    *ImagePeers `json:"peers,omitempty"`
}

// ImagePeers are other nodes that have or are getting an image's layers. A node asks
// them before the registry, which alone says who may read what.
type ImagePeers struct {
	Nodes     []ImagePeer `json:"nodes"`     // in the order in which they are asked
	Ticket    string      `json:"ticket"`    // by which they know that this node may read the image's layers now
	Authority []byte      `json:"authority"` // certificate that has signed the ticket and all nodes' certificates
}

// ImagePeer is a node that gives layers to others.
type ImagePeer struct {
	Node    string `json:"node"`
	Address string `json:"address"` // HOST:PORT
}

// Order is one rank that shall exist on the node. A rank the node holds that
// is in no order must be stopped if it runs, and forgotten when it has ended.
type Order struct {
	ID   job.RankID `json:"id"`
	UUID string     `json:"uuid,omitempty"` // of the job: a rank of the same number with another one is not this one
	Stop *Stop      `json:"stop,omitempty"` // end it
	// Paused: its processes shall stand still. A stop goes first.
	Paused bool `json:"paused,omitempty"`
	// Go: its program may begin. A rank of a gang does not before it is told so;
	// the only rank of a job needs no word.
	Go bool `json:"go,omitempty"`
	// Resize: it shall have other CPU and memory. Answered by the rank's status.
	Resize *Resize `json:"resize,omitempty"`
	// LimitMS is the run time that it has from its first instruction, where the
	// node's request listed the rank; 0: as it was told when it was to run.
	LimitMS int64 `json:"limitMs,omitempty"`
	// Signals: its program shall be sent those that it was not sent yet.
	Signals []Signal `json:"signals,omitempty"`
	// CancelSteps: what srun started as these shall end.
	CancelSteps []uint32 `json:"cancelSteps,omitempty"`
	// Secrets is set when the node does not have these values yet.
	Secrets *Secrets `json:"secrets,omitempty"`
	// After: it begins when this rank has ended here, in whose place it is.
	After *job.RankID `json:"after,omitempty"`
	Run   *RunOrder   `json:"run,omitempty"` // absent when the node's request listed the rank
}

// Resize asks for other limits for a rank that runs.
type Resize struct {
	Seq      uint64 `json:"seq"` // job.Resized names it
	CPUs     int    `json:"cpus"`
	MemBytes int64  `json:"memBytes"`
}

// Signal is one for a program that goes on. A node sends each at most once.
type Signal struct {
	Seq  uint32 `json:"seq"`
	Name string `json:"name"` // as USR1
}

// Stop asks for a rank's end: signal, grace, then KILL.
type Stop struct {
	Signal  string     `json:"signal"` // as TERM
	GraceMS int64      `json:"graceMs"`
	Reason  job.Reason `json:"reason"`
	Text    string     `json:"text,omitempty"`
	Ahead   bool       `json:"ahead,omitempty"` // only if it has not begun: see Order.After
}

// RunOrder is all a node needs to run a rank.
type RunOrder struct {
	UUID       string         `json:"uuid"`
	User       string         `json:"user"`
	UID        *uint32        `json:"uid,omitempty"` // the user's on the controller's machine; absent: no account there
	IDs        uint32         `json:"ids,omitempty"` // first of node.IDRange numbers that are this user's on all nodes; 0: all are taken, or the controller is older
	Project    string         `json:"project"`
	ProjectGID int            `json:"projectGid"`
	Spec       job.Spec       `json:"spec,omitzero"`
	Document   string         `json:"document,omitempty"` // name of what Spec shall be; empty: it is there
	Registry   *Credential    `json:"registry,omitempty"`
	Allocation Allocation     `json:"allocation"`
	Ranks      int            `json:"ranks"`                // of the gang
	Peers      []Peer         `json:"peers,omitempty"`      // of a gang, in rank order, this rank too
	MasterPort int            `json:"masterPort,omitempty"` // of a gang: where rank 0 may be met
	Secret     string         `json:"secret,omitempty"`     // of a batch script: what its ranks know each other by
	Port       int            `json:"port,omitempty"`       // likewise: on which they take tasks
	Commands   bool           `json:"commands,omitempty"`   // likewise: it may ask the controller, as its user
	LimitMS    int64          `json:"limitMs,omitempty"`    // run time left; 0: none
	GraceMS    int64          `json:"graceMs"`              // between TERM and KILL at the limit
	Digest     string         `json:"digest,omitempty"`     // image manifest to use, once known
	QueuedMS   int64          `json:"queuedMs,omitempty"`   // for so long nothing but a place was missing; 0: not known
	ImagePeers *ImagePeers    `json:"imagePeers,omitempty"` // that may have its layers
	Restarts   int            `json:"restarts,omitempty"`   // attempts of the jobs that this one continues, less those of its own that never began
	Initial    string         `json:"initial,omitempty"`    // UUID of the first of them; empty: it continues none
	Array      *job.ArrayTask `json:"array,omitempty"`      // of a task
	Alone      bool           `json:"alone,omitempty"`      // it runs on where contact is lost
	Partition  string         `json:"partition,omitempty"`  // of those that it names, the one that it runs in
	Logs       *LogPlace      `json:"logs,omitempty"`       // where its log is kept; absent: on the node
}

// Peer is where a rank of a gang runs.
type Peer struct {
	Node    string `json:"node"`
	Address string `json:"address"`        // by which the others reach it
	GPUs    int    `json:"gpus,omitempty"` // of this rank
	CPUs    int    `json:"cpus,omitempty"` // of this rank

	// Of a gang with a network of its own: the rank's address in it with the
	// network's length, as 10.214.0.1/16, and the number of the tunnel by which
	// it takes what the others send, in 24 bits.
	Inside string `json:"inside,omitempty"`
	Tunnel uint32 `json:"tunnel,omitempty"`
}

// Credential is a registry login on its way to the node that pulls. It is
// never logged, stored in clear, or returned to clients.
type Credential struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// StreamRequest asks the node to dial back for a client: with the bytes of a
// log by POST PathStream, or with a WebSocket by GET PathStream for what goes
// both ways (see Frame). What cannot be served is refused by a POST with
// HeaderStreamError.
type StreamRequest struct {
	ID     string     `json:"id"`
	Kind   string     `json:"kind"` // StreamLog, StreamExec, StreamForward, StreamAttach
	Rank   job.RankID `json:"rank"`
	UUID   string     `json:"uuid,omitempty"` // of the rank's job
	User   string     `json:"user,omitempty"` // who asks: nobody has all streams of a node
	Offset int64      `json:"offset,omitempty"`
	Tail   int64      `json:"tail,omitempty"` // lines from the end; 0: from Offset
	Follow bool       `json:"follow,omitempty"`

	SinceMS int64 `json:"sinceMs,omitempty"` // of a log: from what was written then, by the node's clock; 0: from Offset
}

// Status is the answer of GET /v1/status.
type Status struct {
	Version  string            `json:"version"`
	Started  time.Time         `json:"started"`
	You      string            `json:"you"`  // the caller as the controller knows them
	Role     string            `json:"role"` // user, operator, admin, node
	Jobs     map[job.State]int `json:"jobs"` // by state
	Projects []string          `json:"projects"`
}

// GPUSample is what one GPU was doing when its node looked last. What the
// driver does not tell, as of MIG instances, is absent.
type GPUSample struct {
	UUID        string   `json:"uuid"`
	Utilization *float64 `json:"utilization,omitempty"` // percent of the last period in which a kernel ran
	MemUsed     *int64   `json:"memUsedBytes,omitempty"`
	Celsius     *float64 `json:"celsius,omitempty"` // how hot it is
	EnergyJ     *float64 `json:"energyJ,omitempty"` // used since the driver was loaded
}

// StorageSample is how much room there was in a root of the node's storage when it
// looked last.
type StorageSample struct {
	Name       string `json:"name"`
	TotalBytes int64  `json:"totalBytes"`
	FreeBytes  int64  `json:"freeBytes"`
}

// RankUse is a node's word on what a rank that runs has used.
type RankUse struct {
	ID   job.RankID `json:"id"`
	UUID string     `json:"uuid,omitempty"` // of its job
	node.LiveUse
}
