package slurm

import (
	"cmp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// pastJSON is a job as sacct writes it.
func pastJSON(v table.View) func(*row) object {
	return func(r *row) object {
		o := object{
			"job_id": r.Number, "name": r.Name, "user": r.User, "group": rowGroup(&v, r), "account": r.Project, "qos": rowQOS(&v, r), "partition": rowPartition(&v, r), "cluster": clusterName,
			"association": object{"account": r.Project, "cluster": clusterName, "partition": nil, "user": r.User},
			"state":       object{"current": rowAccounted(&v, r), "reason": rowReason(&v, r)},
			"exit_code":   exitJSON(r), "derived_exit_code": object{"status": "SUCCESS", "return_code": 0},
			"nodes": human.Hosts(r.Nodes), "allocation_nodes": jobs.NumNodes(&r.Job), "priority": r.priority(),
			"comment": object{"administrator": nil, "job": given(rowComment(&v, r)), "system": nil}, "constraints": given(rowFeatures(&v, r)), "container": given(rowImage(&v, r)),
			"required":    object{"CPUs": r.CPUs, "memory": r.memPerNode() >> 20},
			"reservation": object{"id": 0, "name": given(rowReservation(&v, r))}, "working_directory": given(rowWorkDir(&v, r)),
			"tres":  object{"requested": tresJSON(r), "allocated": pickTRES(r)},
			"steps": stepsJSON(v, r), "flags": []string{}, "kill_request_user": nil, "mcs": object{"label": ""}, "wckey": object{"wckey": "", "flags": []string{}}, "het": object{"job_id": 0, "job_offset": nil},
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
	if !r.State.Final() {
		code, signal = 0, 0
	}
	return exitOf(code, signal)
}

func exitOf(code, signal int) object {
	switch {
	case code == 0 && signal == 0:
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

// stepsJSON are what ran in a job.
func stepsJSON(v table.View, r *row) []object {
	out := []object{}
	for _, x := range withSteps([]row{*r}, false)[1:] {
		s, use := x.step, cmp.Or(x.step.use, &job.StepUse{})
		out = append(out, object{
			"step": object{"job_id": r.Number, "het": object{"component": nil}, "id": s.name, "name": x.Name}, "state": s.state, "exit_code": exitOf(s.code, s.signal),
			"nodes": object{"count": x.NumNodes, "range": human.Hosts(x.Nodes), "list": x.Nodes}, "tasks": object{"count": s.tasks}, "task": object{"distribution": "Unknown"}, "pid": nil, "kill_request_user": nil,
			"time": object{
				"start": epoch(x.Started), "end": epoch(x.Ended), "elapsed": int64(ranTime(&v, &x) / time.Second), "suspended": 0,
				"user": partsOf(time.Duration(use.UserMS) * time.Millisecond), "system": partsOf(time.Duration(use.SystemMS) * time.Millisecond),
				"total": partsOf(time.Duration(use.UserMS+use.SystemMS) * time.Millisecond),
			},
			"CPU": object{"requested_frequency": object{"min": 0, "max": 0}, "governor": []string{}}, "statistics": object{"CPU": object{"actual_frequency": 0}, "energy": object{"consumed": 0}},
			"tres": object{"allocated": tresJSON(&x), "requested": useJSON(s.tasks, use, s), "consumed": object{"max": []object{}, "min": []object{}, "average": []object{}, "total": []object{}}},
		})
	}
	return out
}

// useJSON is what a step has used, where Slurm writes it.
func useJSON(tasks int, u *job.StepUse, s *stepOf) object {
	cpu := func(n int64) object { return object{"type": "cpu", "name": nil, "id": 1, "count": n} }
	mem := func(n int64) object { return object{"type": "mem", "name": nil, "id": 2, "count": n << 10} }
	at := func(o object, node string, task int) object { o["node"], o["task"] = node, task; return o }
	n := int64(max(tasks, 1))
	return object{
		"max": []object{at(mem(u.MaxRSSKiB), s.maxNode, u.MaxRSSTask)}, "min": []object{at(cpu(u.MinCPUMS), s.minNode, u.MinCPUTask)},
		"average": []object{cpu((u.UserMS + u.SystemMS) / n), mem(u.SumRSSKiB / n)}, "total": []object{cpu(u.UserMS + u.SystemMS), mem(u.SumRSSKiB)},
	}
}
