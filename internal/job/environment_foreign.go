package job

import (
	"slices"
	"strconv"
	"strings"
)

// The formats whose programs look for variables of their own system. They are
// the importer's names.
const (
	fromNVCT   = "nvct"
	fromDstack = "dstack"
)

// HostfilePath is where a rank finds who its gang is, as launchers of MPI read
// it: a line for each rank, with its address and its GPUs as slots.
const HostfilePath = "/etc/gbatch/hostfile"

// Where programs of NVIDIA Cloud Tasks write what they made and how far they are.
const (
	NVCTResults  = "/var/task/results"
	NVCTProgress = NVCTResults + "/progress"
)

// HasHostfile says whether the job's ranks get one.
func (s *Spec) HasHostfile() bool { return s.Ranks() > 1 || s.source() == fromDstack }

func (s *Spec) source() string { return s.gbatch().Source }

// Hostfile is the text at HostfilePath.
func Hostfile(in EnvInput) string {
	var b strings.Builder
	for i, a := range in.addresses() {
		b.WriteString(a)
		if i < len(in.Slots) && in.Slots[i] > 0 {
			b.WriteString(" slots=" + strconv.Itoa(in.Slots[i]))
		} else if len(in.Addresses) == 0 && len(in.GPUs) > 0 {
			b.WriteString(" slots=" + strconv.Itoa(len(in.GPUs)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// addresses are the ranks' addresses; a rank alone is at its own machine.
func (in EnvInput) addresses() []string {
	if len(in.Addresses) == 0 {
		return []string{"127.0.0.1"}
	}
	return in.Addresses
}

// sourceVariables are those of the system that the job was written for.
func sourceVariables(in EnvInput) []variable {
	switch in.Spec.source() {
	case fromNVCT:
		return nvctVariables(in)
	case fromDstack:
		return dstackVariables(in)
	}
	return nil
}

func nvctVariables(in EnvInput) []variable {
	vs := []variable{
		{"NVCT_TASK_ID", in.UUID},
		{"NVCT_TASK_NAME", in.Spec.Name},
		{"NVCT_NCA_ID", in.Project},
		{"NVCT_RESULTS_DIR", NVCTResults},
		{"NVCT_PROGRESS_FILE_PATH", NVCTProgress},
	}
	if t := in.Spec.Gbatch.InstanceType; t != "" {
		vs = append(vs, variable{"NVCF_INSTANCETYPE", t})
	}
	return vs
}

func dstackVariables(in EnvInput) []variable {
	all := 0
	for _, n := range in.Slots {
		all += n
	}
	if len(in.Slots) == 0 {
		all = len(in.GPUs)
	}
	addresses := in.addresses()
	vs := []variable{
		{"DSTACK_RUN_NAME", in.Spec.Name},
		{"DSTACK_RUN_ID", in.UUID},
		{"DSTACK_JOB_ID", in.UUID},
		{"DSTACK_GPUS_NUM", strconv.Itoa(all)},
		{"DSTACK_GPUS_PER_NODE", strconv.Itoa(len(in.GPUs))},
		{"DSTACK_NODES_NUM", strconv.Itoa(len(addresses))},
		{"DSTACK_NODE_RANK", formatUint(uint64(in.ID.Rank))},
		{"DSTACK_MASTER_NODE_IP", addresses[0]},
		{"DSTACK_NODES_IPS", strings.Join(addresses, "\n")},
		{"DSTACK_MPI_HOSTFILE", HostfilePath},
	}
	if in.Spec.gbatch().ExpandVariables { // the command names addresses
		for rank, a := range addresses {
			vs = append(vs, variable{NodeAddressVariable(rank), a})
		}
	}
	return vs
}

// NodeAddressVariable has the address of the node of a rank.
func NodeAddressVariable(rank int) string { return "GBATCH_NODE_ADDRESS_" + strconv.Itoa(rank) }

// OwnDirs are directories that programs of the job's system expect in the container.
func (s *Spec) OwnDirs() []string {
	if s.source() == fromNVCT {
		return append(slices.Clip(s.gbatch().Directories), NVCTResults)
	}
	return s.gbatch().Directories
}
