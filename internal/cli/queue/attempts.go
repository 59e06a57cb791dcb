package queue

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// attempts is the table of all ranks that the job had.
func attempts(d *api.JobDetail) *table.Grid {
	t := table.New("TRY", "RANK", "NODE", "GPUS", "CORES", "PHASE", "EXIT", "REASON", "TIME", "PEAK MEM")
	t.Right(7, 9, 10)
	for _, at := range d.Attempts {
		try := strconv.Itoa(int(at.Attempt))
		if at.Task > 0 {
			try = fmt.Sprintf("%d of task %d", at.Attempt, at.Task)
		}
		for i, r := range at.Ranks {
			t.Row(rankCells(try, i, &r)...)
		}
	}
	return t
}

func rankCells(try string, rank int, r *api.Rank) []string {
	exit, why, lasted, peak := "-", "-", "-", "-"
	if e := r.Exit; e != nil {
		exit = strconv.Itoa(e.Code)
		if e.Reason != "" {
			why = string(e.Reason)
		}
		if e.Message != "" {
			why = strings.TrimPrefix(why+": "+e.Message, "-: ")
		}
		if e.StartedMS > 0 {
			lasted = string(human.Duration(nil, (e.EndedMS-e.StartedMS)/1000))
		}
		if e.PeakMem > 0 {
			peak = humanize.IBytes(uint64(e.PeakMem))
		}
	}
	cores := cmp.Or(r.Cores, fmt.Sprintf("%d of any", r.CPUs))
	return []string{try, strconv.Itoa(rank), r.Node, gpuList(r.GPUs), cores, r.Phase, exit, why, lasted, peak}
}

// portLines are the mapped ports of the last attempt, the container's first.
func portLines(d *api.JobDetail) []string {
	if len(d.Attempts) == 0 {
		return nil
	}
	var lines []string
	for _, r := range d.Attempts[len(d.Attempts)-1].Ranks {
		for _, p := range r.Ports {
			host := cmp.Or(p.HostIP, r.Node)
			lines = append(lines, fmt.Sprintf("%d -> %s", p.ContainerPort, net.JoinHostPort(host, strconv.Itoa(p.HostPort))))
		}
	}
	return lines
}

// gpuList shortens UUIDs to their first part, which tells a node's GPUs apart.
func gpuList(gpus []api.GPUShare) string {
	if len(gpus) == 0 {
		return "-"
	}
	var parts []string
	for _, g := range gpus {
		name := shortUUID(g.UUID)
		if g.Milli != 1000 {
			name += fmt.Sprintf(" (%s of it)", human.Number(nil, float64(g.Milli)/1000))
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, "\n")
}

// shortUUID keeps the kind and the first group: GPU-5fd4f087.
func shortUUID(uuid string) string {
	if i := strings.IndexByte(uuid, '-'); i > 0 && i+9 < len(uuid) && uuid[i+9] == '-' {
		return uuid[:i+9]
	}
	return uuid
}
