package slurm

import (
	"encoding/json"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// object is one of JSON, as Slurm's plug-in openapi/v0.0.38 writes it. What is
// not known is there too, as null or empty: who reads it looks it up without
// asking whether it is there.
type object = map[string]any

// meta is what stands beside every list.
func meta(plugin string) object {
	return object{
		"plugin": object{"type": "openapi/" + plugin, "name": "Slurm OpenAPI " + plugin},
		"Slurm":  object{"version": object{"major": 22, "minor": 5, "micro": 8}, "release": version},
	}
}

// writeJSON writes rows as a list under a name.
func writeJSON[T any](a *cli.App, name string, rows []T, of func(*T) object) error {
	plugin := "v0.0.38"
	if strings.HasPrefix(name, "db") {
		name, plugin = strings.TrimPrefix(name, "db"), "dbv0.0.38"
	}
	list := make([]object, len(rows))
	for i := range rows {
		list[i] = of(&rows[i])
	}
	out, err := json.MarshalIndent(object{"meta": meta(plugin), "errors": []string{}, name: list}, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(out, '\n'))
	return err
}

// epoch is a moment in JSON; 0: there is none.
func epoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// given is a text of a field, empty where Slurm's tables write (null) or N/A.
func given(text string) string {
	if text == none || text == "N/A" || text == "n/a" {
		return ""
	}
	return text
}

// jobJSON is a job as squeue and scontrol write it.
func jobJSON(v table.View) func(*row) object {
	return func(r *row) object {
		text := func(of cellOf) string { return given(of(&v, r)) }
		o := object{
			"job_id": r.Number, "name": r.Name, "user_name": r.User, "user_id": number(rowUID(&v, r)), "group_id": number(rowGID(&v, r)), "group_name": rowGroup(&v, r),
			"account": r.Project, "qos": rowQOS(&v, r), "partition": rowPartition(&v, r), "cluster": clusterName,
			"job_state": rowState(&v, r), "state_reason": rowReason(&v, r), "state_description": r.ReasonText,
			"submit_time": epoch(r.Submitted), "start_time": epoch(jobs.SlurmStartOf(&r.Job)), "end_time": epoch(jobs.EndOf(&r.Job)), "eligible_time": epoch(r.Submitted), "accrue_time": epoch(r.Submitted),
			"suspend_time": 0, "pre_sus_time": 0, "preempt_time": 0, "resize_time": 0, "deadline": 0, "last_sched_evaluation": 0, "delay_boot": 0,
			"time_limit": r.LimitS / 60, "time_minimum": r.LimitMinS / 60, "priority": r.priority(), "nice": -r.Job.Priority,
			"nodes": human.Hosts(r.Nodes), "node_count": jobs.NumNodes(&r.Job), "cpus": r.CPUs, "tasks": number(text(rowTasks)), "batch_flag": true, "batch_host": text(rowFirstNode),
			"minimum_cpus_per_node": r.CPUs / max(r.NumNodes, 1), "minimum_tmp_disk_per_node": 0, "memory_per_node": r.memPerNode() >> 20, "memory_per_cpu": nil, "cpus_per_task": number(text(rowCPUsPerTask)),
			"tres_per_node": r.gresPerNode(), "tres_req_str": rowTRES(&v, r), "tres_alloc_str": rowTRESAlloc(&v, r),
			"dependency": text(rowDependency), "comment": text(rowComment), "features": text(rowFeatures), "required_nodes": text(rowReqNodes), "excluded_nodes": text(rowExcNodes),
			"command": text(rowCommand), "container": text(rowImage), "current_working_directory": text(rowWorkDir), "resv_name": text(rowReservation),
			"standard_input": text(rowStdIn), "standard_output": text(rowStdOut), "standard_error": text(rowStdErr),
			"requeue": rowRequeue(&v, r) == "1", "restart_cnt": restarts(r), "exit_code": waitStatus(&r.Job), "derived_exit_code": 0,
			"flags": []string{}, "gres_detail": []string{}, "licenses": r.Licenses, "wckey": "", "system_comment": "", "admin_comment": "", "reboot": false, "contiguous": false,
			"het_job_id": 0, "het_job_id_set": "", "het_job_offset": 0,
			"job_resources": object{"nodes": human.Hosts(r.Nodes), "allocated_cores": r.CPUs, "allocated_hosts": len(r.Nodes), "allocated_nodes": allocated(r)},
		}
		o["array_job_id"], o["array_task_id"], o["array_task_string"], o["array_max_tasks"] = 0, nil, "", 0
		if r.Task != nil {
			o["array_job_id"], o["array_task_id"] = r.Parent, *r.Task
		}
		if t := r.Tasks; t != nil {
			o["array_job_id"], o["array_task_string"], o["array_max_tasks"] = r.Number, t.Waiting, t.Parallelism
		}
		return o
	}
}

// allocated is what a job has on each node, as far as its attempts were asked for.
func allocated(r *row) []object {
	out := []object{}
	if len(r.Attempts) == 0 || !r.State.Active() {
		return out
	}
	for _, k := range r.Attempts[len(r.Attempts)-1].Ranks {
		out = append(out, object{"nodename": k.Node, "cpus_used": k.CPUs, "memory_used": 0, "memory_allocated": k.MemBytes >> 20, "sockets": object{}})
	}
	return out
}

// waitStatus is how a job ended as wait(2) has it.
func waitStatus(j *api.Job) int {
	code, signal := exitPair(j)
	return code<<8 | signal
}

// exitPair is a code and a signal, of which one is 0. A program that ended because
// its job did, as at the time limit, ended by the signal that its code stands for.
func exitPair(j *api.Job) (code, signal int) {
	switch {
	case j.ExitCode == nil || j.State == job.Cancelled:
		return 0, 0
	case j.Reason == string(job.OOM):
		return 0, oomSignal
	case j.Reason != string(job.ExitCode) && *j.ExitCode > 128:
		return 0, *j.ExitCode - 128
	}
	return *j.ExitCode, 0
}
