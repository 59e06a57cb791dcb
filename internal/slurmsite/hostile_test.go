package slurmsite_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gbatch/internal/slurmsite"
)

// mostAllocated is what reading hostile files may allocate, in bytes; it is over
// soon then too. What it guards against takes hundreds of times as much.
const mostAllocated = 2 << 30

// numbered is a text with each number below n in the place of its %d.
func numbered(n int, form string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// hostileSites are files that ask for more memory or time than a site's may, or
// that have what nobody should be shown. Each is converted or refused.
func hostileSites() map[string]hostileSite {
	const cluster = "Cluster - 'c'\nParent - 'root'\n"
	megabyte := strings.Repeat("x", 1<<20)
	return map[string]hostileSite{
		"nodes again and again": {conf: strings.Repeat("NodeName=n[1-9999]\n", 200_000), notes: "more than 100000 nodes are not taken"},
		"wrong lists of many":   {conf: strings.Repeat("NodeName=n[1-9999],m[1\n", 200_000), notes: "is no list of nodes"},
		"partitions of many":    {conf: strings.Repeat("PartitionName=p Nodes=n[1-9999] Default=NO\n", 200_000), notes: "at most 200 partitions"},
		"addresses of many":     {conf: numbered(200_000, "NodeName=n%d NodeAddr=a[1-9999]\n"), notes: "more than 100000 nodes"},
		"many names in a list":  {conf: "NodeName=" + strings.Repeat("n,", 30_000) + "\n"},
		"long lists of names":   {conf: strings.Repeat("NodeName="+strings.Repeat("n,", 30_000)+"\n", 250), notes: "more than 100000 nodes"},
		"features of all nodes": {conf: "NodeName=DEFAULT Feature=" + strings.Repeat("ab,", 20_000) + "\n" + strings.Repeat("NodeName=n[1-9999]\n", 10), notes: "a node has at most 64"},
		"features break out":    {conf: "NodeName=n Feature=ok,]\u2028allowPrivileged:,\u0085x:y,{a:b} NodeAddr=x:\n", notes: "features have 2 to 128", hasNot: "allowPrivileged:,"},
		"keys for partitions":   {conf: "PartitionName=DEFAULT " + numbered(190, "k%d=1 ") + "\n" + numbered(100_000, "PartitionName=p%d\n"), notes: "at most 200 partitions"},
		"many words":            {conf: "PartitionName=DEFAULT " + numbered(5_000, "k%d=1 ") + "\n", err: "slurm.conf:1: has more than 200 words"},
		"accounts of all":       {conf: "PartitionName=DEFAULT AllowAccounts=" + strings.Repeat("a,", 30_000) + "\n" + numbered(200, "PartitionName=p%d\n"), dump: cluster + "Account - 'a'\n"},
		"a line without end":    {conf: strings.Repeat(megabyte, 3), err: "slurm.conf: \"xxxxxxxxxxxxxxxxxxxx\" is the beginning of a line"},
		"goes on without end":   {conf: strings.Repeat("\\\n", 8<<20), err: "slurm.conf:1: the line goes on"},
		"ends in a backslash":   {conf: "KillWait=3\\"},
		"no line at all":        {conf: strings.Repeat("\n", 4<<20)},
		"nothing is known":      {conf: numbered(300_000, "K%d=v\n"), notes: "has no counterpart", more: 290_000},
		"words without a value": {conf: strings.Repeat("a b c d e f g\n", 300_000), notes: "is no KEY=VALUE", more: 2_100_000 - 10_000},
		"too much":              {conf: strings.Repeat("#\n", 9<<20), err: "slurm.conf: with it there are more than 16777216 bytes"},
		"too much in all":       {conf: strings.Repeat("Include big\n", 40), err: "Include: big: with it there are more than"},
		"includes itself":       {conf: "Include again\n", err: "more than 64 files are included"},
		"a password":            {conf: "AccountingStoragePass=hunter2\nJobCompPass=\"hunter2 x\"\n", notes: "AccountingStoragePass (not shown)", hasNot: "hunter2"},
		"long words":            {conf: strings.Repeat("K"+strings.Repeat("x", 60_000)+"="+strings.Repeat("y", 3_000)+"\n", 250), notes: "has no counterpart"},

		"many accounts":     {dump: cluster + numbered(400_000, "Account - 'a%d'\n"), err: "at most 10000 accounts and 200000 users"},
		"many users":        {dump: cluster + "Account - 'a'\nParent - 'a'\n" + numbered(400_000, "User - 'u%d'\n"), err: "at most 10000 accounts and 200000 users"},
		"users of accounts": {dump: cluster + numbered(9_000, "Account - 'a%d'\n") + numbered(9_000, "Parent - 'a%d'\nUser - 'u%d'\nUser - 'v%d':MaxJobs=3\n")},
		"admins":            {dump: cluster + "Account - 'a'\nParent - 'a'\n" + numbered(50_000, "User - 'u%d':AdminLevel='Administrator'\n")},
		"operators":         {dump: cluster + numbered(10, "Account - 'a%d'\n") + numbered(10, "Parent - 'a%d'\n"+numbered(5_000, "User - 'u%d':AdminLevel='Operator'\n"))},
		"a circle":          {dump: cluster + "Parent - 'b'\nAccount - 'a'\nParent - 'a'\nAccount - 'b'\nUser - 'u'\n"},
		"deep accounts":     {dump: cluster + "Account - 'a0':MaxJobs=7\n" + deep(9_000) + numbered(50_000, "User - 'u%d'\n")},
		"quotes":            {dump: cluster + "Account - '" + strings.Repeat("'", 60_000) + "\n"},
		"colons":            {dump: cluster + "Account - 'a'" + strings.Repeat(":", 60_000) + "\n"},

		"many classes":       {qos: "Name|Priority\n" + numbered(300_000, "q%d|1\n"), err: "at most 1000 classes"},
		"classes for all":    {qos: "Name|Preempt\n" + strings.Repeat("q|"+numbered(2_000, "q%d,")+"\n", 300)},
		"columns":            {qos: "Name" + strings.Repeat("|", 60_000) + "\n" + strings.Repeat(strings.Repeat("|", 60_000)+"\n", 50)},
		"columns of a class": {qos: "Name|" + numbered(8_000, "c%d|") + "\n" + strings.Repeat("q|"+strings.Repeat("7|", 8_000)+"\n", 50)},
		"many GPUs":          {qos: "Name|GrpTRES\nq|" + strings.Repeat("gres/gpu=9223372036854775807,", 2_000) + "\n"},
		"licences":           {conf: "Licenses=" + strings.Repeat("a:1000000,", 6_000) + "\n"},
	}
}

// deep is accounts each within the one before.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Parent - 'a%d'\nAccount - 'a%d'\n", i, i+1)
	}
	return b.String() + fmt.Sprintf("Parent - 'a%d'\n", n)
}

type hostileSite struct {
	conf, dump, qos string
	err             string // "": they are converted
	notes           string // a part of one
	more            int    // notes that are not kept, at least
	hasNot          string // in all that is printed
}

// TestHostileSites: whoever imports a site may have its files from somebody else.
func TestHostileSites(t *testing.T) {
	for name, tc := range hostileSites() {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			big := []byte(strings.Repeat("# nothing\n", 1<<16))
			in := slurmsite.Input{Conf: slurmsite.File{Name: "slurm.conf", Text: tc.conf}, Dump: slurmsite.File{Name: "lab.cfg", Text: tc.dump}, QOS: slurmsite.File{Name: "qos.txt", Text: tc.qos},
				Open: func(name string) ([]byte, error) {
					if name == "big" {
						return big, nil
					}
					return []byte("Include again\n"), nil
				}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := slurmsite.Convert(in)
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > mostAllocated {
				t.Errorf("it allocated %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || len(err.Error()) > 500 {
					t.Errorf("error %.600v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%.600v", err)
			}
			said := fmt.Sprint(r.Notes)
			if !strings.Contains(said, tc.notes) || r.More < tc.more || len(r.Notes) > 10_000 {
				t.Errorf("%d notes and %d more, without %q: %.600s", len(r.Notes), r.More, tc.notes, said)
			}
			if all := r.Gctld + r.Nodes + said; tc.hasNot != "" && strings.Contains(all, tc.hasNot) || len(all) > 64<<20 {
				t.Errorf("%d bytes that have %q: %.600s", len(all), tc.hasNot, all)
			}
		})
	}
}
