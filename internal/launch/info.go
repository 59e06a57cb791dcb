package launch

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// RankProgram is the name of the program that takes tasks in a container, and
// CommandsProgram of that which is sbatch, squeue and the like there.
const (
	RankProgram     = "gbatch-rank"
	CommandsProgram = "gbatch-commands"
)

// Where a rank's node puts what follows into the container.
const (
	Dir      = "/opt/gbatch/node"
	InfoFile = Dir + "/job.json"
	Socket   = Dir + "/sock" // of the first rank: its node's daemon, see node.go
	API      = Dir + "/api"  // the controller's API as far as jobs may use it, by their node; missing where the site does not let them
)

// Info is what a rank knows of its job.
type Info struct {
	Job      uint64   `json:"job"`
	ID       string   `json:"id"` // what people type: 12, or 12_3
	Name     string   `json:"name"`
	User     string   `json:"user"`
	Rank     int      `json:"rank"` // that this is
	Nodes    []Node   `json:"nodes"`
	Port     int      `json:"port"`   // on which each rank takes tasks
	Secret   string   `json:"secret"` // that all ranks of the attempt know, and nobody else
	Image    string   `json:"image"`
	Mounts   []string `json:"mounts,omitempty"`   // paths in the container
	Sources  []string `json:"sources,omitempty"`  // beside Mounts: how the job names what is there
	ReadOnly []string `json:"readOnly,omitempty"` // those of Mounts that cannot be written
	GPUs     []string `json:"gpus,omitempty"`     // of this rank, as CUDA_VISIBLE_DEVICES names them
	GPUIDs   []int    `json:"gpuIds,omitempty"`   // the same by the node's numbers
	Cluster  string   `json:"cluster"`
	Commands bool     `json:"commands,omitempty"` // its programs may ask the controller: there is API, or will be in a moment

	Tasks       int `json:"tasks,omitempty"` // as job.Launch has them
	PerNode     int `json:"perNode,omitempty"`
	CPUsPerTask int `json:"cpusPerTask,omitempty"`
	GPUsPerTask int `json:"gpusPerTask,omitempty"`
}

// Node is one rank, in the order of ranks.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"` // by which the others reach it
	CPUs    int    `json:"cpus"`
	GPUs    int    `json:"gpus,omitempty"`
}

// apiTime is how long the node's daemon, which begins to serve when the container runs, or is being started anew, may take.
const apiTime = 10 * time.Second

// AsksAPI says whether programs of the job may ask the controller. It waits for who serves them.
func (i *Info) AsksAPI() bool { return i.asks(API, apiTime) }

func (i *Info) asks(socket string, most time.Duration) bool {
	for end := time.Now().Add(most); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return true
		}
		if !i.Commands || time.Now().After(end) {
			return false
		}
	}
}

// Load reads what this container's node has put there.
func Load() (*Info, error) {
	b, err := os.ReadFile(InfoFile)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("this container is not of a batch script: %s is missing", InfoFile)
	}
	if err != nil {
		return nil, err
	}
	var i Info
	if err := json.Unmarshal(b, &i); err != nil {
		return nil, fmt.Errorf("read %s: %w", InfoFile, err)
	}
	if len(i.Nodes) == 0 || i.Rank < 0 || i.Rank >= len(i.Nodes) {
		return nil, fmt.Errorf("read %s: it names no rank", InfoFile)
	}
	return &i, nil
}

// Own is this rank.
func (i *Info) Own() Node { return i.Nodes[i.Rank] }

// at is where a rank takes tasks.
func (i *Info) at(rank int) string {
	return net.JoinHostPort(i.Nodes[rank].Address, strconv.Itoa(i.Port))
}

// ListenAt is where this rank takes tasks: alone by its loopback only.
func (i *Info) ListenAt() string {
	if len(i.Nodes) == 1 {
		return i.at(0)
	}
	return net.JoinHostPort("", strconv.Itoa(i.Port))
}

// Names are those of the job's nodes.
func (i *Info) Names() (names []string) {
	for _, n := range i.Nodes {
		names = append(names, n.Name)
	}
	return names
}
