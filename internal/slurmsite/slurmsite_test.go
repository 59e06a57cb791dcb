package slurmsite_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/ctld/site"
	"gbatch/internal/slurmsite"
)

var rewrite = flag.Bool("rewrite", false, "write what is made into testdata/cluster.want")

func read(t *testing.T, name string) slurmsite.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return slurmsite.File{Name: name, Text: string(text)}
}

func open(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) }

// taken checks that a controller takes what was made.
func taken(t *testing.T, text string) site.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gctld.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := site.Read(path)
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return c
}

// TestCluster turns the files of a cluster that Slurm 22.05 ran; dump and QOS
// are what its sacctmgr wrote.
func TestCluster(t *testing.T) {
	in := slurmsite.Input{Conf: read(t, "slurm.conf"), Dump: read(t, "lab.cfg"), QOS: read(t, "qos.txt"), Open: open}
	r, err := slurmsite.Convert(in)
	if err != nil {
		t.Fatal(err)
	}
	taken(t, r.Gctld)
	got := r.Gctld + "\n" + r.Nodes + "\n"
	for _, n := range r.Notes {
		got += n.String() + "\n"
	}
	if *rewrite {
		if err := os.WriteFile("testdata/cluster.want", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/cluster.want")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// key finds the keys of slurm.conf.
var key = regexp.MustCompile(`(?m)(?:^|[ \t])([A-Za-z]+)=`)

// TestNothingIsDropped: each key of each line became a key or a note.
func TestNothingIsDropped(t *testing.T) {
	conf := read(t, "slurm.conf")
	nodes := read(t, "nodes.conf")
	r, err := slurmsite.Convert(slurmsite.Input{Conf: conf, Open: open})
	if err != nil {
		t.Fatal(err)
	}
	noted := ""
	for _, n := range r.Notes {
		noted += strings.ToLower(n.What) + "\n"
	}
	became := "clustername prioritytype prioritydecayhalflife prioritymaxage priorityweightage priorityweightfairshare priorityweightqos priorityweightjobsize preempttype preemptmode schedulertype " +
		"nodename partitionname sockets corespersocket threadspercore realmemory gres features nodes default maxtime defaulttime allowaccounts allowgroups state nodeaddr "
	for _, f := range []slurmsite.File{conf, nodes} {
		for _, m := range key.FindAllStringSubmatch(f.Text, -1) {
			name := strings.ToLower(m[1])
			if !strings.Contains(became, name+" ") && !strings.Contains(noted, name+"=") {
				t.Errorf("%s: %s became nothing and is not noted", f.Name, m[1])
			}
		}
	}
}

func TestConvert(t *testing.T) {
	for name, tc := range map[string]struct {
		conf, dump, qos string
		want, notes     []string // parts of them
		err             string
	}{
		"fifo": {conf: "PriorityType=priority/basic\nPriorityWeightAge=5\nSchedulerType=sched/builtin\n", want: []string{"mode: fcfs", "weights: {age: 0, fairShare: 0, partition: 0, qos: 0, size: 0}"},
			notes: []string{"slurm.conf:2: PriorityWeightAge=5: means nothing without"}},
		"heavy":     {conf: "PriorityType=priority/multifactor\nPriorityWeightAge=1000000000\nPriorityWeightQOS=4000000000\nPriorityDecayHalfLife=0\n", want: []string{"age: 250000000,", "qos: 1000000000", "halfLife: 3650 days"}, notes: []string{"usage always fades here"}},
		"comments":  {conf: "# all\nKillWait=60 \\\n MaxJobCount=500 # s\n\tWhat=\"a b\" Ever\n", want: []string{"grace: 1 minute", "maxQueuedJobs: 500"}, notes: []string{"slurm.conf:4: What=a b: has no counterpart", "Ever: is no KEY=VALUE"}},
		"nodes":     {conf: "NodeName=n[1-2] CPUs=8 RealMemory=1000 Gres=gpu:2(S:0),nic:1 NodeAddr=10.0.0.[1-2] CoreSpecCount=2 MemSpecLimit=512\nNodeName=n[1\nPartitionName=p Nodes=ALL MaxTime=60 DefaultTime=30 Default=YES\n", want: []string{"maxDuration: 1 hour", "defaultDuration: 30 minutes"}, notes: []string{"Gres=nic:1: only GPUs", "NodeName=n[1: is no list"}},
		"preempt":   {conf: "PreemptType=preempt/none\n", qos: "Name|Priority|Preempt|\na|0|b|\nb|7||\n", want: []string{"a:\n      priority: 0", "b:\n      priority: 1000"}, notes: []string{"a.Preempt=b: means nothing without"}},
		"mutual":    {qos: "Name|Priority|Preempt\na|1|b,c\nb|2|a\n", notes: []string{"a and b cannot preempt each other", "c is not in the list"}},
		"bounds":    {qos: "Name|MaxTRESPU|MaxSubmitPU|MaxWall\na|cpu=4,gres/gpu=2|9|1-0\n", want: []string{"perUser: {queued: 9, gpus: 2}"}, notes: []string{"MaxTRESPU=cpu=4: only GPUs", "MaxSubmitPU=9: counts jobs that wait", "MaxWall=1-0: is no part"}},
		"inherited": {dump: "Cluster - 'c':Fairshare=1\nParent - 'root'\nUser - 'root':AdminLevel='Administrator'\nAccount - 'lab':Fairshare=parent:Description='it\\'s: odd'\nParent - 'lab'\nUser - 'ann':Fairshare=7\n", want: []string{"- name: lab\n    members: [ann]\n    userShares: {ann: 7}", `defaultProject: ""`}, notes: []string{"Fairshare=parent: has no shares"}},
		"two accounts": {dump: "Cluster - 'c'\nAccount - 'a':MaxJobs=3\nAccount - 'b'\nParent - 'a'\nUser - 'ann'\nUser - 'bob'\nParent - 'b'\nUser - 'ann':Coordinator='b'\n", want: []string{"bob:\n      running: 3"},
			notes: []string{"lab.cfg:5: User=ann: has bounds that differ by account", "Coordinator=b: projects have no coordinators"}},
		"partitions": {conf: "NodeName=n[1-3]\nPartitionName=DEFAULT MaxTime=1-0 State=UP DefMemPerCPU=2048\nPartitionName=a Nodes=n1 AllowAccounts=xx MaxNodes=2 MinNodes=1 PriorityJobFactor=5 DefMemPerCPU=512\n" +
			"PartitionName=b Nodes=n[2-3] DenyAccounts=xx Default=YES DefaultTime=30 AllowGroups=staff,admin PriorityJobFactor=10 AllowQos=high\nPartitionName=c Nodes=ALL MaxTime=INFINITE MaxMemPerNode=4000 State=DRAIN PriorityTier=3 MaxCPUsPerNode=4\nPartitionName=b Nodes=n1\nPartitionName=7\nPartitionName=g:x+ Nodes=n1\n",
			dump: "Cluster - 'c'\nAccount - 'xx'\nAccount - 'yy'\nParent - 'xx'\nAccount - 'zz'\n", qos: "Name|Priority\nhigh|1\n",
			want: []string{"  - name: a\n    nodes: [n1]\n    priority: 500\n    defaultDuration: 1 day\n    maxDuration: 1 day\n    minNodes: 1\n    maxNodes: 2\n    defaultMiBPerCore: 512\n    projects: [xx]\n",
				"  - name: b\n    nodes: ['n[2-3]']\n    default: true\n    priority: 1000\n    defaultDuration: 30 minutes\n    maxDuration: 1 day\n    defaultMiBPerCore: 2048\n    notProjects: [xx]\n    users: [{group: staff}, {group: admin}]\n    qos: [high]\n",
				"  - name: c\n    allNodes: true\n    state: drain\n    maxMiBPerNode: 4000\n    defaultMiBPerCore: 2048\n", "  - name: g:x+\n    nodes: [n1]\n"},
			notes: []string{"PriorityTier=3: jobs of a higher tier", "MaxCPUsPerNode=4: bounds all jobs", "MaxTime=INFINITE: every job has an end", "PartitionName=b: is there twice", "PartitionName=7: names have letters", "AllowAccounts=xx: since Slurm 23.11 it means the accounts below too; here each is named: zz is not"}},
		"nobody known": {conf: "PartitionName=a Nodes=n1 AllowAccounts=xx,yy DefaultTime=9-0 MaxTime=1-0\n", dump: "Cluster - 'c'\nAccount - 'zz'\n", want: []string{"state: inactive\n    reason: AllowAccounts of slurm.conf names nobody who is known", "maxDuration: 1 day\n"},
			notes: []string{"AllowAccounts=xx,yy: xx is not among the projects", "DefaultTime=9-0: is not within the longest time"}},
		"no accounts": {conf: "PartitionName=a Nodes=n1 AllowAccounts=xx\n", want: []string{"state: inactive"}, notes: []string{"AllowAccounts=xx: becomes projects, which are in the other files"}},
		"no dump":     {dump: "hello\n", err: "lab.cfg:1: is no line of a dump"},
		"no cluster":  {dump: "Account - 'a'\nAccount - 'b'\n", err: "lab.cfg: has no Cluster line"},
		"no list":     {qos: "a|b\n", err: "qos.txt: is no list of QOS"},
		"no file":     {conf: "Include /none/at/all\n", err: "slurm.conf:1: Include:"},
		"loop":        {conf: "Include again\n", err: "more than 64 files are included"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := slurmsite.Convert(slurmsite.Input{Conf: slurmsite.File{Name: "slurm.conf", Text: tc.conf}, Dump: slurmsite.File{Name: "lab.cfg", Text: tc.dump}, QOS: slurmsite.File{Name: "qos.txt", Text: tc.qos},
				Open: func(name string) ([]byte, error) {
					if name == "again" {
						return []byte("Include again\n"), nil
					}
					return nil, fmt.Errorf("no such file")
				}})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			taken(t, r.Gctld)
			for _, want := range tc.want {
				if !strings.Contains(r.Gctld, want) {
					t.Errorf("no %q in\n%s", want, r.Gctld)
				}
			}
			for _, want := range tc.notes {
				if !strings.Contains(fmt.Sprint(r.Notes), want) {
					t.Errorf("no %q in %q", want, r.Notes)
				}
			}
		})
	}
}

// FuzzConvert: whatever the files have, they become a configuration or an error,
// within bounds.
func FuzzConvert(f *testing.F) {
	f.Add("NodeName=n[1-3] CPUs=4 Gres=gpu:2\nPartitionName=DEFAULT MaxTime=1-0\nPartitionName=p Nodes=ALL\n", "Cluster - 'c'\nParent - 'root'\nAccount - 'a':Fairshare=3\n", "Name|Priority\na|3\n")
	f.Fuzz(func(t *testing.T, conf, dump, qos string) {
		_, _ = slurmsite.Convert(slurmsite.Input{Conf: slurmsite.File{Name: "c", Text: conf}, Dump: slurmsite.File{Name: "d", Text: dump}, QOS: slurmsite.File{Name: "q", Text: qos},
			Open: func(string) ([]byte, error) { return []byte("A=b\n"), nil }})
	})
}
