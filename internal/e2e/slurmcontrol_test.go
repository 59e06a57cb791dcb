package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// TestSlurmControl changes jobs and nodes by Slurm's names, and reads what tools
// read of them.
func TestSlurmControl(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	env := []string{"GBATCH_SLURM_IMAGE=" + image}
	ok := func(line string) string {
		t.Helper()
		words := strings.Fields(line)
		r := s.slurm(env, "", words[0], words[1:]...)
		if r.code != 0 {
			t.Fatalf("%s: %v", line, r)
		}
		return r.out
	}
	has := func(line string, want ...string) {
		t.Helper()
		out := ok(line)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s has no %q: %s", line, w, out)
			}
		}
	}
	id := strings.TrimSpace(s.slurm(env, "#!/bin/sh\n#SBATCH -J first -t 60 -c1 --mem=1G --comment=tuned\n"+idleShell, "sbatch", "--parsable").out)
	s.waitRunning(id)
	has("scontrol show job "+id, "JobId="+id+" JobName=first", "JobState=RUNNING Reason=None", "TimeLimit=01:00:00", "NodeList="+s.nodeName(0), "Comment=tuned", "TRES=cpu=1,mem=1G,node=1")
	has("scontrol -o show job "+id, "JobId="+id+" JobName=first UserId=root(0) GroupId=root(0)")
	has("scontrol show node "+s.nodeName(0), "NodeName="+s.nodeName(0)+" ", "State=MIXED", "CPUAlloc=1 ")
	has("scontrol show partition", "PartitionName=1", "Nodes="+s.nodeName(0), "Default=YES")
	eventually(t, "the node has told of the job's use", func() bool {
		return s.slurm(env, "", "sstat", "-j", id, "-n", "-P", "-o", "JobID").out == id+".batch\n"
	})

	has("squeue -h -j "+id+" -O comment", "tuned")
	ok("scontrol update JobId=" + id + " Comment=again")
	has("squeue -h -j "+id+" -o %k", "again")
	has("sacct -X -n -P -o Comment -j "+id, "again")
	has("scontrol show job "+id, "Comment=again")

	held := strings.TrimSpace(ok("sbatch --parsable -H -J later --mem=1G --wrap true"))
	has("scontrol update JobId=" + held + " JobName=renamed Nice=7 TimeLimit=5")
	has("squeue -h -j "+held+" -o %j|%l|%y|%r", "renamed|5:00|7|JobHeldUser")
	ok("scontrol release " + held)
	if d := s.wait(held); d.State != job.Finished {
		t.Errorf("released: %s", d.State)
	}
	array := strings.TrimSpace(ok("sbatch --parsable -H -a 1-2 --mem=1G --wrap true"))
	has("squeue -h -j "+array+" -o %i|%r", array+"_[1-2]|JobHeldUser")
	ok("scancel " + array)
	has("seff "+held, "Job ID: "+held, "State: COMPLETED (exit code 0)")

	var list struct {
		Jobs []struct {
			ID    int    `json:"job_id"`
			State string `json:"job_state"`
		}
	}
	if err := json.Unmarshal([]byte(ok("squeue --json")), &list); err != nil || len(list.Jobs) != 1 || list.Jobs[0].State != "RUNNING" {
		t.Errorf("squeue --json: %v, %+v", err, list)
	}
	ok("scontrol update NodeName=" + s.nodeName(0) + " State=DRAIN Reason=fan")
	has("sinfo -h -o %t|%E", "drng|", "fan")
	ok("scontrol update NodeName=" + s.nodeName(0) + " State=RESUME")
	has("sinfo -h -o %t", "mix")
	has("sacctmgr -n -P show assoc user=root format=user", "root")
	for _, line := range []string{"sshare -a", "sprio", "sdiag", "scontrol ping", "scontrol show config", "sacct -a --json", "sinfo --json", "sinfo -R", "squeue --start"} {
		ok(line)
	}

	// A running job ends at the time limit that it has now, also when its node's
	// daemon was restarted since.
	ok("scontrol update JobId=" + id + " TimeLimit=2")
	has("squeue -h -o %l -j "+id, "2:00")
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.nodes[0].start()
	s.waitNodes("up", 1)
	s.must("gqueue", "update", id, "--time=5s") // Slurm counts minutes
	if d := s.wait(id); d.State != job.Failed || d.Reason != string(job.MaxRuntime) {
		t.Errorf("ended %s %s", d.State, d.Reason)
	}
	has("sacct -n -P -o State -j "+id, "TIMEOUT")
	has("sacct -X -n -P -o Comment -j "+id, "again") // over restarts, and when it is over
	if r := s.slurm(env, "", "scontrol", "update", "JobId="+id, "TimeLimit=9"); r.code == 0 || !strings.Contains(r.err, "cannot be changed") {
		t.Errorf("update of an ended job: %v", r)
	}
}
