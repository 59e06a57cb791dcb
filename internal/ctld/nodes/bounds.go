package nodes

import (
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/node"
	"gbatch/internal/tree"
)

// Bounds of what a node says. A node speaks for itself and its ranks alone, but
// what it says is stored, shown and added to what others say: texts have a
// length, and numbers are such that their sums are numbers.
const (
	maxText    = 4 << 10 // bytes of a message
	maxWord    = 512     // of a name, a list of cores
	maxReasons = 20      // why it is unhealthy, and what it is to be drained for
	maxRoots   = 128     // of storage
	maxPorts   = 64      // of one rank, as a document may have
	maxHas     = 64      // documents that it says it has
	maxUsed    = 1e15    // bytes, seconds, joules and samples of one rank
	maxCPUs    = 1 << 20
	maxMemory  = 1 << 60 // bytes
)

// bound cuts what is too much. Whether an inventory can be used is not decided here.
func bound(q *api.SyncRequest) {
	q.Unhealthy = q.Unhealthy[:min(len(q.Unhealthy), maxReasons)]
	for i := range q.Unhealthy {
		cut(&q.Unhealthy[i], maxText)
	}
	q.Faults = q.Faults[:min(len(q.Faults), maxReasons)]
	for i := range q.Faults {
		cut(&q.Faults[i].Text, maxText)
	}
	if q.Reboot != nil {
		cut(&q.Reboot.Failed, maxText)
	}
	q.Documents = q.Documents[:min(len(q.Documents), maxHas)]
	if len(q.Records) > maxWord {
		q.Records = "" // none of ours
	}
	for i := range q.Ranks {
		boundRank(&q.Ranks[i])
	}
	for i := range q.Use {
		u := &q.Use[i].LiveUse
		clamp(&u.CPUSeconds, maxUsed)
		clamp(&u.Mem, maxUsed)
		clamp(&u.PeakMem, maxUsed)
		clamp(&u.AtMS, maxUsed)
		boundGPU(u.GPU)
		if u.GPUMem != nil {
			clamp(u.GPUMem, maxUsed)
		}
		if u.Net != nil {
			clamp(&u.Net.Received, maxUsed)
			clamp(&u.Net.Sent, maxUsed)
		}
	}
	q.Storage = q.Storage[:min(len(q.Storage), maxRoots)]
	for i := range q.Storage {
		cut(&q.Storage[i].Name, maxWord)
		clamp(&q.Storage[i].TotalBytes, maxMemory)
		clamp(&q.Storage[i].FreeBytes, maxMemory)
	}
	if v := q.Inventory; v != nil {
		v.Storage = v.Storage[:min(len(v.Storage), maxRoots)]
		for i := range v.Storage {
			cut(&v.Storage[i].Name, maxWord)
			cut(&v.Storage[i].Away, maxWord)
		}
	}
	for i := range q.Prepulled {
		cut(&q.Prepulled[i].Error, maxText)
	}
}

func boundRank(r *node.RankStatus) {
	cut(&r.UUID, maxWord)
	cut(&r.Progress, maxText)
	cut(&r.Cores, maxWord)
	if !isDigest(r.Image) { // it is given to other nodes
		r.Image = ""
	}
	r.Ports = r.Ports[:min(len(r.Ports), maxPorts)]
	if d := r.Done; d != nil {
		clamp(&d.Percent, 100)
		cut(&d.Name, maxWord)
	}
	if e := r.Exit; e != nil {
		cut(&e.Message, maxText)
		clamp(&e.CPUSeconds, maxUsed)
		clamp(&e.PeakMem, maxUsed)
		boundGPU(e.GPU)
	}
}

// isDigest says whether a text is the digest of an image.
func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && tree.IsSum(digits)
}

func boundGPU(u *node.GPUUse) {
	if u == nil {
		return
	}
	clamp(&u.Utilization, 100)
	clamp(&u.MaxUtilization, 100)
	clamp(&u.MaxMem, maxUsed)
	clamp(&u.Mem, maxUsed)
	clamp(&u.EnergyJ, maxUsed)
	clamp(&u.Samples, maxUsed)
}

// clamp brings x between 0 and most.
func clamp[T int | int64 | float64](x *T, most T) { *x = min(max(*x, 0), most) }

// cut shortens a text to most bytes.
func cut(s *string, most int) {
	if len(*s) > most {
		*s = strings.ToValidUTF8((*s)[:most], "") + "..."
	}
}
