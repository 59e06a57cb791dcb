package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/job/times"
)

// surroundings are where the scripts of tests are submitted: 2026-03-02 10:30.
var surroundings = Options{Now: 1772443800000, Zone: time.FixedZone("CET", 3600)}

func TestSlurmTime(t *testing.T) {
	for text, want := range map[string]string{
		"90": "90 minutes", "1:30": "2 minutes", "0:01": "1 minute", "90:01": "91 minutes", "1:2:3": "63 minutes", "2-3": "51 hours", "1-0:30": "1470 minutes", "1-2:3:4": "1564 minutes",
		"UNLIMITED": "none", "infinite": "none", "0": "none", "0:00": "none", "": "error", "1-": "1 day", "-": "error", "x": "error", "1:2:3:4": "error", "-5": "error", "1-1:1:1:1": "error",
		"999999999999": "3650 days",
	} {
		d, limited, err := times.ParseSlurmLimit(text)
		got := d.String()
		switch {
		case err != nil:
			got = "error"
		case !limited:
			got = "none"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestSlurmBegin(t *testing.T) {
	for text, want := range map[string]string{
		"2026-04-01": "2026-03-31T23:00:00Z", "2026-04-01T12:30": "2026-04-01T11:30:00Z", "now": "", "now+60": "2026-03-02T09:31:00Z", "now+2days": "2026-03-04T09:30:00Z",
		"16:00": "2026-03-02T15:00:00Z", "8:00": "2026-03-03T07:00:00Z", "teatime": "2026-03-02T15:00:00Z", "midnight": "2026-03-02T23:00:00Z", "tomorrow": "2026-03-02T23:00:00Z",
		"+2h30m": "2026-03-02T12:00:00Z", "now+1h30m": "2026-03-02T11:00:00Z", "2026-04-01 12:30": "2026-04-01T11:30:00Z", "2026-04-01T11:30:00Z": "2026-04-01T11:30:00Z", "+4000d": "error",
		"12/25": "2026-12-24T23:00:00Z", "01/02": "2027-01-01T23:00:00Z", "3/2": "2027-03-01T23:00:00Z", "12/25-08:30": "2026-12-25T07:30:00Z", "1225": "2026-12-24T23:00:00Z", "122527": "2027-12-24T23:00:00Z", "12.25.27": "2027-12-24T23:00:00Z",
		"tomorrow 10:00": "2026-03-03T09:00:00Z", "16:00 12/25": "2026-12-25T15:00:00Z", "noon tomorrow": "2026-03-03T11:00:00Z", "Fika": "2026-03-02T14:00:00Z", "elevenses": "2026-03-02T10:00:00Z", "today": "2026-03-01T23:00:00Z", "2026-04-01T12:30:10": "2026-04-01T11:30:10Z",
		"now-1hour": "2026-03-02T08:30:00Z", "uts1800000000": "2027-01-15T08:00:00Z", "12:30 am": "2026-03-02T23:30:00Z", "11:45PM": "2026-03-02T22:45:00Z", "13/25": "error", "12/32": "error", "13:00pm": "error", "": "error", "uts12": "error",
		"5pm": "2026-03-02T16:00:00Z", "04/15/26": "2026-04-14T23:00:00Z", "soon": "error", "now+x": "error", "now+2fortnights": "error", "25:00": "error",
	} {
		at, err := begin(text, surroundings)
		got := ""
		switch {
		case err != nil:
			got = "error"
		case at != 0:
			got = at.String()
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if _, err := begin("16:00", Options{}); err == nil {
		t.Error("a time of the day without the time now was read")
	}
}

// TestSlurmAmounts is Slurm's arithmetic: what one node gives.
func TestSlurmAmounts(t *testing.T) {
	type amounts struct {
		Nodes, CPUs, GB int
		GPUs            float64
	}
	for options, want := range map[string]amounts{
		"":                                   {1, 1, 4, 0},
		"-n 4":                               {1, 4, 16, 0},
		"-n 2 --mincpus=4 --mem=1G":          {1, 4, 1, 0},
		"-n 8 --mincpus=4 -m block,nopack":   {1, 8, 32, 0},
		"-N 2 -n 8 -m nopack":                {2, 4, 16, 0},
		"-n 8 -m pack":                       {1, 8, 32, 0},
		"-n 4 -c 3 --mem-per-cpu=1G":         {1, 12, 12, 0},
		"-N 2 -n 5 --mem=1G":                 {2, 3, 1, 0},
		"-n 16 --ntasks-per-node=4 --mem=8G": {4, 4, 8, 0},
		"-N 2 --ntasks-per-node=4 -c 2":      {2, 8, 32, 0},
		"--gpus=4 -c 8 --mem=1G":             {1, 8, 1, 4},
		"-N 2 --gpus=8 --mem=1G":             {2, 1, 1, 4},
		"-N2 -G a100:2 --mem=1G":             {2, 1, 1, 1},
		"--gpus-per-node=h100:8 --cpus-per-gpu=12 --mem-per-gpu=100G": {1, 96, 800, 8},
		"-n 4 --gpus-per-task=1 -c 6 --mem=64G":                       {1, 24, 64, 4},
		"--gres=gpu --mem=1G":                                         {1, 1, 1, 1},
		"--gres=gpu:a100 --mem=1G":                                    {1, 1, 1, 1},
		"--gpus=4 --ntasks-per-gpu=2 --mem=1G":                        {1, 8, 1, 4},
		"-N 2-4 --mem=1G":                                             {2, 1, 1, 0},
		"-N 2-4 -n 6 --ntasks-per-node=2 --mem=1G":                    {3, 2, 1, 0},
		"-N 2 -n 3 --ntasks-per-node=2 --mem=1G":                      {2, 2, 1, 0},
		"-N 4 -n 2 --mem=1G":                                          {2, 1, 1, 0},
		"-N 4 -n 2 --ntasks-per-node=1 --mem=1G":                      {2, 1, 1, 0},
		"-N 3 -n 2 --ntasks-per-node=2 --mem=1G":                      {2, 2, 1, 0},
		"--mem=1":                                                     {1, 1, 1, 0},
		"--mem=0 -c 8":                                                {1, 8, 1, 0},
		"--mem-per-cpu=0 -c 8":                                        {1, 8, 1, 0},
		"--exclusive":                                                 {1, 1, 1, 0},
		"--exclusive -N 2 -n 64 -c 2":                                 {2, 64, 1, 0},
		"--exclusive --mem=100G --gres=gpu:a100:2":                    {1, 1, 100, 2},
		"--tasks-per-node=4 -N 2 --mem=1G":                            {2, 4, 1, 0},
		"--tasks=4 -N 2 --mem=1G":                                     {2, 4, 1, 0}, // what --tasks is short for
		"--gpus=16 --gpus-per-node=8 --mem=1G":                        {2, 1, 1, 8},
		"--gpus=8 --gres=gpu:8 -N 1 --mem=1G":                         {1, 1, 1, 8},
		"--gpus=8 --gpus-per-task=1 --mem=1G":                         {1, 8, 1, 8},
		"--gpus=8 --gpus-per-task=2 -n 4 -N 2 --mem=1G":               {2, 2, 1, 4},
		"--gpus=8 --gpus-per-task=1 --ntasks-per-node=4 -N 2 --mem=1": {2, 4, 1, 4},
		"--gpus-per-node=8 --gpus-per-task=1 -n 8 --mem=1G":           {1, 8, 1, 8},
		"--gpus-per-node=4 --gpus-per-task=1 -n 8 --mem=1G":           {2, 4, 1, 4},
		"--gres=gpu:8 --gpus-per-task=1 --ntasks-per-node=8 -N 2":     {2, 8, 32, 8},
		"--gres=gres:gpu:2 --gpus-per-node=3 --mem=1G":                {1, 1, 1, 3},
		"--gres=nvme:100,gpu:h100:2 --mem=1G":                         {1, 1, 1, 2},
	} {
		sub, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a %s\ntrue\n", options), surroundings)
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		r := sub.Spec.Request.Resources
		got := amounts{sub.Spec.Ranks(), r.CPUs, r.CPUMemoryGB, r.GPUs}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", options, diff)
		}
	}
	for _, options := range []string{"-N 3 --gpus=4", "--gpus=2 --gres=gpu:1 -N 1", "--gpus=4 --gpus-per-node=8", "--gpus=12 --gpus-per-node=8",
		"--gpus-per-node=8 --gpus-per-task=1 -n4 -N1", "--gpus-per-node=4 --gpus-per-task=1 -n8 -N1", "--gpus-per-node=4 --gpus-per-task=1 --ntasks-per-node=2", "--gpus=8 --gpus-per-task=1 -n4",
		"--gpus=a100:8 --gpus-per-node=h100:8", "--gres=gpu:1,gpu:2", "--gres=nvme", "--gres=nvme:x", "--gres=fpga:1", "--exclusive=user", "--exclusive=mcs", "--mem-per-gpu=1G", "--cpus-per-gpu=2 --cpus-per-task=3 -G 1", "-N 3 -w a,b", "-N 2 -n 8 --ntasks-per-node=1", "-N 1 -n 8 --ntasks-per-node=1", "-N 2-3 -n 7 --ntasks-per-node=2", "--mem=1G --mem-per-gpu=1G"} {
		if _, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a %s\n", options), surroundings); err == nil {
			t.Errorf("%s was accepted", options)
		}
	}
}

// TestWholeNodes: whole nodes are asked for as such, and amounts are the least.
func TestWholeNodes(t *testing.T) {
	for options, want := range map[string]job.Gbatch{
		"--mem=1G":             {},
		"--exclusive":          {Exclusive: true},
		"--mem=0":              {AllMemory: true},
		"--mem-per-gpu=0 -G 1": {AllMemory: true},
		"--exclusive --mem=0":  {Exclusive: true, AllMemory: true},
	} {
		sub, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a %s\ntrue\n", options), surroundings)
		if err != nil {
			t.Fatalf("%s: %v", options, err)
		}
		got := job.Gbatch{Exclusive: sub.Spec.Gbatch.Exclusive, AllMemory: sub.Spec.Gbatch.AllMemory}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", options, diff)
		}
	}
}

// TestHarmlessOptions: what changes nothing here is remarked on and accepted.
func TestHarmlessOptions(t *testing.T) {
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G --ntasks-per-core=1 -O\n#SBATCH --wait-all-nodes 1\ntrue\n"), surroundings)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range sub.Notes {
		got = append(got, n.Path)
	}
	if diff := cmp.Diff([]string{"--ntasks-per-core (line 2)", "--overcommit (line 2)", "--wait-all-nodes (line 3)"}, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestComments: a # begins a comment wherever it stands outside of quotes, but for
// an image's name.
func TestComments(t *testing.T) {
	for text, want := range map[string]string{
		"-J pi# the name": "-J pi", "-J pi # x -N 2": "-J pi ", "-J 'a#b' #c": "-J 'a#b' ", `-J "a\"#b" #c`: `-J "a\"#b" `, `-o x\#y.out #z`: `-o x\#y.out `, "# all": "", "--time=1:00#x": "--time=1:00",
		"--container-image=nvcr.io#nvidia/pytorch #x": "--container-image=nvcr.io#nvidia/pytorch ", "--image nvcr.io#a -N1#x": "--image nvcr.io#a -N1", "--image #x": "--image ", "--image=#x": "--image=#x",
	} {
		if got := withoutComment(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G\n#SBATCH --job-name=pi# Job name\ntrue\n"), surroundings)
	if err != nil || sub.Spec.Name != "pi" {
		t.Errorf("the name is %q, %v", sub.Spec.Name, err)
	}
}

// TestSlurmImage: the flag wins, and the login is split off.
func TestSlurmImage(t *testing.T) {
	o := surroundings
	o.Image = "me:hush@registry.example.org/a:1"
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b\ntrue\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	if sub.Spec.Request.Docker.Image != "registry.example.org/a:1" || sub.Registry == nil || sub.Registry.Password != "hush" {
		t.Errorf("image %s, login %v", sub.Spec.Request.Docker.Image, sub.Registry)
	}
}

// TestScriptFile keeps where the script was read from, as Slurm tells it, and does
// without where the name could not stand in a document.
func TestScriptFile(t *testing.T) {
	for file, want := range map[string]string{
		"": "", "run.sh": "/home/ann/run.sh", "sub/run.sh": "/home/ann/sub/run.sh", "./run.sh": "./run.sh", "../run.sh": "../run.sh", "/srv/run.sh": "/srv/run.sh",
		"a\nb.sh": "", strings.Repeat("a", job.MaxLaunchFile+1): "",
	} {
		o := surroundings
		o.File, o.Directory = file, "/home/ann"
		sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G\ntrue\n"), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := sub.Spec.Gbatch.Launch.File; got != want {
			t.Errorf("%.20q: %q, want %q", file, got, want)
		}
	}
}

// TestSlurmArgs: what follows the script is its arguments, and the flag's image
// wins over one that cannot be used.
func TestSlurmArgs(t *testing.T) {
	o := surroundings
	o.Args, o.Image = []string{"-x", "a b"}, "debian"
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --container-image=/images/x.sqsh --mem=1G\necho $2\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	argv := sub.Spec.Request.Docker.Command.Argv
	if diff := cmp.Diff([]string{"-x", "a b"}, argv); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(sub.Notes) != 1 || sub.Notes[0].Path != "--container-image" {
		t.Errorf("notes: %v", sub.Notes)
	}
}

// TestNetwork: a script says its network by a name of its own, as Slurm's
// --network is something else.
func TestNetwork(t *testing.T) {
	const script = "#!/bin/sh\n#SBATCH --image=b --mem=1G "
	sub, err := Parse([]byte(script+"--container-network=host\ntrue\n"), surroundings)
	if err != nil || sub.Spec.Network() != job.NetworkHost {
		t.Errorf("network %q, %v", sub.Spec.Network(), err)
	}
	if _, err := Parse([]byte(script+"--container-network=hots\ntrue\n"), surroundings); err == nil || !strings.Contains(err.Error(), "want bridge or host") {
		t.Errorf("a network that is not there: %v", err)
	}
	sub, err = Parse([]byte(script+"--network=ib0\ntrue\n"), surroundings)
	if err != nil || sub.Spec.Network() != job.NetworkBridge || len(sub.Notes) == 0 || !strings.Contains(sub.Notes[len(sub.Notes)-1].Message, "--container-network=host") {
		t.Errorf("--network: %v, %v", sub.Notes, err)
	}
}

// TestExport: which variables are in the document, and whether those of the shell are to
// go along.
func TestExport(t *testing.T) {
	for options, want := range map[string]struct {
		environment map[string]string
		all         bool
		notes       int
	}{
		"":                       {nil, true, 0},
		"--export=ALL":           {nil, true, 0},
		"--export=NONE":          {map[string]string{"SLURM_EXPORT_ENV": "NONE", "SLURM_GET_USER_ENV": "1"}, false, 0},
		"--export=SET,all,X=1":   {map[string]string{"SLURM_EXPORT_ENV": "SET,all,X=1", "SLURM_GET_USER_ENV": "1", "SET": "s", "X": "1"}, true, 0},
		"--export=SET,UNSET,X=1": {map[string]string{"SLURM_EXPORT_ENV": "SET,UNSET,X=1", "SLURM_GET_USER_ENV": "1", "SET": "s", "X": "1"}, false, 1},
	} {
		o := surroundings
		o.PassesOn, o.Env = true, func(name string) (string, bool) { return "s", name == "SET" }
		sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G "+options+"\ntrue\n"), o)
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		if diff := cmp.Diff(want.environment, sub.Spec.Request.Docker.Environment); diff != "" || ExportsAll(&sub.Spec) != want.all || len(sub.Notes) != want.notes {
			t.Errorf("%s: all %v, notes %v (-want +got):\n%s", options, ExportsAll(&sub.Spec), sub.Notes, diff)
		}
	}
}

// TestPartitionNames: partitions and classes may have what Slurm's names have.
func TestPartitionNames(t *testing.T) {
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G -p grete:shared,a.b_c-d,x+y -q long:1+\ntrue\n"), surroundings)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grete:shared", "a.b_c-d", "x+y"}, sub.Spec.Gbatch.Partitions); diff != "" || sub.Spec.Gbatch.QOS != "long:1+" {
		t.Errorf("class %s, partitions (-want +got):\n%s", sub.Spec.Gbatch.QOS, diff)
	}
}

// TestArrayForms: indexes as Slurm takes them, with brackets and a percent sign alone.
func TestArrayForms(t *testing.T) {
	for text, want := range map[string]job.Tasks{
		"[0-3]": {Indexes: "0-3"}, "1,[3-4]": {Indexes: "1,3-4"}, "[1-9%2]": {Indexes: "1-9", Parallelism: 2}, "[1-9]%2": {Indexes: "1-9", Parallelism: 2}, "1-9%": {Indexes: "1-9"},
	} {
		sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G -a "+text+"\ntrue\n"), surroundings)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(&want, sub.Spec.Gbatch.Tasks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestSpread: tasks that fit no node are placed on as many as they need, where the script
// does not say how many.
func TestSpread(t *testing.T) {
	o := surroundings
	asked := ""
	o.Widest = func(partitions []string) int { asked = fmt.Sprint(partitions); return 64 }
	for options, want := range map[string][2]int{ // nodes, and cores of each
		"-n 128 -p wide": {2, 64}, "-n 64": {1, 64}, "-n 65": {2, 33}, "-n 20 -c 10": {4, 50}, "-n 2 -c 100": {1, 200}, "-N 1 -n 128": {1, 128}, "-n 128 --ntasks-per-node=32": {4, 32}, "-n 128 -G 4": {1, 128}, "-n 8": {1, 8},
	} {
		asked = ""
		sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G "+options+"\ntrue\n"), o)
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		got := [2]int{sub.Spec.Ranks(), sub.Spec.Request.Resources.CPUs}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", options, diff)
		}
		if options == "-n 128 -p wide" && asked != "[wide]" || options == "-n 8" && asked != "" {
			t.Errorf("%s: the site was asked for %q", options, asked)
		}
	}
}
