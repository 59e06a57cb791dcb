package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gbatch/internal/client"
)

// TestScriptSubmits: a batch script submits itself twice, each time behind the job
// that it is in, without naming image or mounts again. What it may do there is what
// its user may, and no more, although the user here is an admin.
func TestScriptSubmits(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.inProject("chain.sh", `#!/bin/sh
#SBATCH --mem=64M --chdir=/project -J chain
n=${1:-0}
echo round $n in $PWD
scontrol show job $SLURM_JOB_ID | grep -c "JobId=$SLURM_JOB_ID JobName=chain"
if [ $n -lt 2 ]; then
	PATH=/usr/bin:/bin sbatch --parsable --dependency=afterany:$SLURM_JOB_ID /project/chain.sh $((n + 1)) >/project/next-$n || echo not submitted
	squeue -h -o %i:%T -j $(cat /project/next-$n)
fi
`)
	r := s.slurm(nil, "", "sbatch", "--parsable", "--image", image, "--container-mounts=/project", filepath.Join(s.project(), "chain.sh"))
	if r.code != 0 {
		t.Fatal(r)
	}
	first, err := strconv.Atoi(strings.TrimSpace(r.out))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		id := strconv.Itoa(first + n)
		if d := s.wait(id); endOf(d) != finished {
			t.Errorf("round %d: %s\n%s", n, describe(d), s.must("glog", id))
		}
		want := fmt.Sprintf("round %d in /project 1", n)
		if n < 2 {
			want += fmt.Sprintf(" %d:PENDING", first+n+1)
		}
		if got := strings.Join(lines(t, filepath.Join(s.project(), "slurm-"+id+".out")), " "); got != want {
			t.Errorf("round %d: it wrote %q, want %q", n, got, want)
		}
	}
	entries, err := s.api.Audit(t.Context(), client.AuditFilter{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, e := range entries.Entries {
		told = told || e.Role == "user" && e.Via == fmt.Sprintf("job %d on node %s", first, s.nodeName(0)) && e.Action == "POST /v1/jobs"
	}
	if !told {
		t.Errorf("the audit log does not name the job that submitted: %+v", entries.Entries)
	}

	held := strings.TrimSpace(s.slurm([]string{"GBATCH_SLURM_IMAGE=" + image}, "", "sbatch", "--parsable", "-H", "--mem=64M", "--wrap", "true").out)
	id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --mem=64M\n" +
		"scontrol update NodeName=" + s.nodeName(0) + " State=DRAIN Reason=fan; echo drain $?\n" +
		"scontrol update JobId=" + held + " Priority=1000; echo priority $?\n" +
		"sdiag; echo sdiag $?\nsalloc true; echo salloc $?\n" +
		"scancel " + held + "; echo scancel $?\n" +
		"scontrol requeue $SLURM_JOB_ID && exec sleep 1000\n")
	eventually(t, "the job was put back by its script", func() bool {
		d, err := s.api.Job(t.Context(), id, client.JobOptions{})
		return err == nil && len(d.Attempts) > 1
	})
	text := s.must("glog", "--try", "1", id)
	for _, line := range []string{"drain 4", "priority 2", "sdiag 4", "salloc 2", "scancel 0"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("it has no %q: %s", line, text)
		}
	}
	s.must("gcancel", id)
}

// TestScriptPassesOn: what a script exports goes along with what it submits, as with
// Slurm, and others of the project do not see the values.
func TestScriptPassesOn(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --mem=64M --container-mounts=/project --chdir=/project --export=GIVEN=1,LATER=1\n" + `
export SET='two words' LATER=2 EMPTY= PATH=$PATH:/project/bin
unexported=3
say='echo "$SET/$GIVEN/$LATER/${EMPTY-unset}/${unexported-unset}/${PATH##*:}/$SLURM_JOB_ID" >/project/said'
sbatch -W --mem=64M --wrap "$say-all"
sbatch -W --mem=64M --export=NONE --wrap "$say-none"
sbatch -W --mem=64M --export=SET --wrap "$say-set"
`)
	if d := s.wait(id); endOf(d) != finished {
		t.Fatal(describe(d), s.must("glog", id))
	}
	n, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []struct{ name, want string }{
		{"all", "two words/1/2//unset//project/bin"}, {"none", "///unset/unset//bin"}, {"set", "two words///unset/unset//bin"},
	} {
		want := fmt.Sprintf("%s/%d", of.want, n+1+i)
		if got := strings.Join(lines(t, filepath.Join(s.project(), "said-"+of.name)), " "); got != want {
			t.Errorf("%s: it says %q, want %q", of.name, got, want)
		}
	}
	if shown := s.must("gqueue", "show", "--json", strconv.Itoa(n+1)); strings.Contains(shown, "two words") || !strings.Contains(shown, "\"SET\"") {
		t.Errorf("it shows what the script has set, or not that it has: %s", shown)
	}
}

// TestScriptMayNotSubmit: where the site does not let jobs call sbatch, it says so.
func TestScriptMayNotSubmit(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: "batch: {commands: false}\n"})
	id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --mem=64M\nsbatch --wrap true; echo $?\nscontrol show job $SLURM_JOB_ID | grep -c JobState=RUNNING\n")
	if d := s.wait(id); endOf(d) != finished {
		t.Error(describe(d))
	}
	if text := s.must("glog", id); !strings.Contains(text, "batch.commands") || !strings.HasSuffix(text, "\n1\n1\n") {
		t.Errorf("it says %q", text)
	}
}
