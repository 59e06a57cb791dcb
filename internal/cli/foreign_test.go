package cli

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestForeignStates is the table of every state in the words of each system.
func TestForeignStates(t *testing.T) {
	want := map[string]string{
		"":        "ONHOLD QUEUED ASSIGNED STARTING RUNNING MUSTHALT HALTING HALTED FINISHED FAILED CANCELLED DELETED",
		"gpulab1": "ONHOLD QUEUED ASSIGNED STARTING RUNNING RUNNING RUNNING FINISHED FINISHED FAILED CANCELLED DELETED",
		"nvct":    "QUEUED QUEUED LAUNCHED LAUNCHED RUNNING RUNNING RUNNING QUEUED COMPLETED ERRORED CANCELED DELETED",
		"dstack":  "submitted submitted provisioning pulling running terminating terminating submitted done failed terminated deleted",
		"k8s":     "Suspended Pending Pending Pulling Running Running Running Replaced Complete Failed Deleted Deleted",
		"tao":     "Pending Pending Pending Pending Running Running Running Pending Complete Error Canceled Terminated",
		"slurm":   "PENDING PENDING CONFIGURING CONFIGURING RUNNING COMPLETING COMPLETING PREEMPTED COMPLETED FAILED CANCELLED DELETED",
	}
	for as, words := range want {
		var got []string
		for _, s := range job.States {
			got = append(got, stateAs(as, &api.Job{State: s}))
		}
		if strings.Join(got, " ") != words {
			t.Errorf("as %q\ngot  %s\nwant %s", as, strings.Join(got, " "), words)
		}
	}
	failures := map[[2]string]string{
		{"nvct", "MAX_RUNTIME"}: "EXCEEDED_MAX_RUNTIME_DURATION", {"nvct", "NOT_AFTER"}: "EXCEEDED_MAX_QUEUED_DURATION", {"nvct", "OOM"}: "ERRORED",
		{"dstack", "UTILIZATION"}: "terminated", {"dstack", "EXIT_CODE"}: "failed", {"k8s", "MAX_QUEUED"}: "Failed(DeadlineExceeded)",
		{"slurm", "OOM"}: "OUT_OF_MEMORY", {"slurm", "MAX_RUNTIME"}: "TIMEOUT", {"tao", "OOM"}: "Error", {"gpulab1", "OOM"}: "FAILED",
	}
	for k, word := range failures {
		if got := stateAs(k[0], &api.Job{State: job.Failed, Reason: k[1]}); got != word {
			t.Errorf("FAILED %s as %s is %s, want %s", k[1], k[0], got, word)
		}
	}
	if err := checkForeign("pbs"); err == nil || !strings.Contains(err.Error(), "dstack, gpulab1, k8s, nvct, slurm, tao") {
		t.Errorf("an unknown system: %v", err)
	}
}
