package slurm

import (
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"syscall"
)

// pastJSON is a job as sacct writes it.
func pastJSON(v table.View) func(*row) object {
	return func(r *row) object {
		o := object{
			"job_id": r.Number, "name": r.Name, "user": r.User, "group": rowGroup(&v, r), "account": r.Project, "qos": rowQOS(&v, r), "partition": rowPartition(&v, r), "cluster": clusterName,
			"association": object{"account": r.Project, "cluster": clusterName, "partition": nil, "user": r.User},
			"state":       object{"current": rowState(&v, r), "reason": rowReason(&v, r)},
			"exit_code":   exitJSON(r), "derived_exit_code": object{"status": "SUCCESS", "return_code": 0},
			"nodes": human.Hosts(r.Nodes), "allocation_nodes": jobs.NumNodes(&r.Job), "priority": r.priority(),
			"comment": object{"administrator": nil, "job": given(rowComment(&v, r)), "system": nil}, "constraints": given(rowFeatures(&v, r)), "container": given(rowImage(&v, r)),
			"required":    object{"CPUs": r.CPUs, "memory": r.memPerNode() >> 20},
			"reservation": object{"id": 0, "name": given(rowReservation(&v, r))}, "working_directory": given(rowWorkDir(&v, r)),
			"tres":  object{"requested": tresJSON(r), "allocated": pickTRES(r)},
			"steps": []object{}, "flags": []string{}, "kill_request_user": nil, "mcs": object{"label": ""}, "wckey": object{"wckey": "", "flags": []string{}}, "het": object{"job_id": 0, "job_offset": nil},
		}
		total := time.Duration(0)
		if r.Used != nil {
			total = time.Duration(r.Used.CPUTimeS * float64(time.Second))
		}
		o["time"] = object{
			"submission": epoch(r.Submitted), "eligible": epoch(r.Submitted), "start": epoch(r.Started), "end": epoch(r.Ended), "elapsed": int64(ranTime(&v, r) / time.Second),
			"limit": r.LimitS / 60, "suspended": 0, "total": partsOf(total), "user": partsOf(0), "system": partsOf(0),
		}
		array := object{"job_id": 0, "limits": object{"max": object{"running": object{"tasks": 0}}}, "task": nil, "task_id": nil}
		if r.Task != nil {
			array["job_id"], array["task_id"] = r.Parent, *r.Task
		}
		if t := r.Tasks; t != nil {
			array["job_id"], array["task"] = r.Number, t.Waiting
			array["limits"] = object{"max": object{"running": object{"tasks": t.Parallelism}}}
		}
		o["array"] = array
		return o
	}
}

func partsOf(d time.Duration) object {
	return object{"seconds": int64(d / time.Second), "microseconds": int64(d % time.Second / time.Microsecond)}
}

// exitJSON says how a job ended.
func exitJSON(r *row) object {
	code, signal := exitPair(&r.Job)
	switch {
	case !r.State.Final() || code == 0 && signal == 0:
		return object{"status": "SUCCESS", "return_code": 0}
	case signal > 0:
		return object{"status": "SIGNALED", "return_code": nil, "signal": object{"signal_id": signal, "name": unix.SignalName(syscall.Signal(signal))}}
	}
	return object{"status": "ERROR", "return_code": code}
}

func tresJSON(r *row) []object {
	out := []object{
		{"type": "cpu", "name": nil, "id": 1, "count": r.CPUs}, {"type": "mem", "name": nil, "id": 2, "count": r.MemBytes >> 20},
		{"type": "node", "name": nil, "id": 4, "count": jobs.NumNodes(&r.Job)},
	}
	if r.GPUs > 0 {
		out = append(out, object{"type": "gres", "name": "gpu", "id": 1001, "count": r.GPUs})
	}
	return out
}

func pickTRES(r *row) []object {
	if r.State.Pending() {
		return []object{}
	}
	return tresJSON(r)
}
