// Package scontrol is the command of that name inside of a batch script, by
// itself for names of nodes; for all else, where jobs may ask the controller, by the
// program that does.
package scontrol

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"gbatch/internal/job"
	"gbatch/internal/job/nodelist"
	"gbatch/internal/launch"
)

// Main is the command. It returns its exit code.
func Main(args []string) int {
	if !offline(args) {
		if info, err := launch.Load(); err == nil && info.AsksAPI() {
			err = syscall.Exec(job.LaunchDir+"/"+launch.CommandsProgram, append([]string{"scontrol"}, args...), os.Environ())
			fmt.Fprintln(os.Stderr, "scontrol: error:", err)
			return 1
		}
	}
	out := bufio.NewWriter(os.Stdout)
	err := run(args, out)
	_ = out.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scontrol: error:", err)
		return 1
	}
	return 0
}

// offline says that the controller need not be asked: names of nodes.
func offline(args []string) bool {
	words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	return len(words) > 1 && words[0] == "show" && strings.HasPrefix(strings.ToLower(words[1]), "host")
}

var errUnknown = errors.New(`where the site has batch.commands off, it knows inside of a job "show hostnames", "show hostlist", "show hostlistsorted" and "show job": call scontrol on the submitting machine`)

func run(args []string, out *bufio.Writer) error {
	oneline := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-o", "--oneliner":
			oneline = true
		case "-d", "--details", "-Q", "--quiet", "-v", "--verbose":
		case "-V", "--version":
			_, err := out.WriteString("slurm 22.05 (of gbatch)\n")
			return err
		default:
			return errUnknown
		}
		args = args[1:]
	}
	if len(args) < 2 || args[0] != "show" {
		return errUnknown
	}
	what, rest := strings.ToLower(args[1]), args[2:]
	if key, _, given := strings.Cut(what, "="); given { // show hostnames=n[1-3]
		_, value, _ := strings.Cut(args[1], "=")
		what, rest = key, append([]string{value}, rest...)
	}
	switch {
	case strings.HasPrefix("hostnames", what) && len(what) >= 5: // hostname too
		return hostnames(rest, out)
	case what == "hostlist" || what == "hostlistsorted":
		return hostlist(rest, what == "hostlistsorted", out)
	case what == "job" || what == "jobs" || what == "jobid":
		return showJob(rest, oneline, out)
	}
	return errUnknown
}

func hostnames(args []string, out *bufio.Writer) error {
	list := ""
	switch {
	case len(args) > 0:
		list = args[0]
	default:
		for _, name := range []string{"SLURM_JOB_NODELIST", "SLURM_NODELIST"} {
			if list == "" {
				list = os.Getenv(name)
			}
		}
	}
	names, err := nodelist.Parse(list)
	if err != nil {
		return fmt.Errorf("Invalid hostlist: %w", err)
	}
	if len(names) == 0 {
		return errors.New("Invalid hostlist: it is empty")
	}
	for _, n := range names {
		fmt.Fprintln(out, n)
	}
	return nil
}

func hostlist(args []string, sorted bool, out *bufio.Writer) error {
	if len(args) == 0 {
		return errors.New("want names of nodes with commas between, or a file of them")
	}
	text := args[0]
	if strings.HasPrefix(text, "/") {
		b, err := os.ReadFile(text)
		if err != nil {
			return err
		}
		text = strings.Join(strings.Fields(string(b)), ",")
	}
	names, err := nodelist.Parse(text)
	if err != nil {
		return fmt.Errorf("Invalid hostlist: %w", err)
	}
	if sorted {
		slices.Sort(names)
	}
	_, err = fmt.Fprintln(out, nodelist.Format(names))
	return err
}

func showJob(args []string, oneline bool, out *bufio.Writer) error {
	i, err := launch.Load()
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] != fmt.Sprint(i.Job) && args[0] != i.ID {
		return fmt.Errorf("where the site has batch.commands off, it shows this job, %s: call scontrol on the submitting machine", i.ID)
	}
	cpus, tasks := 0, i.Tasks
	for _, n := range i.Nodes {
		cpus += n.CPUs
	}
	if tasks == 0 {
		tasks = max(i.PerNode, 1) * len(i.Nodes)
	}
	lines := []string{
		fmt.Sprintf("JobId=%d JobName=%s", i.Job, i.Name),
		fmt.Sprintf("   UserId=%s", i.User),
		"   JobState=RUNNING Reason=None",
		fmt.Sprintf("   Partition=%s", i.Cluster),
		fmt.Sprintf("   NodeList=%s", nodelist.Format(i.Names())),
		fmt.Sprintf("   BatchHost=%s", i.Nodes[0].Name),
		fmt.Sprintf("   NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d", len(i.Nodes), cpus, tasks, max(i.CPUsPerTask, 1)),
	}
	text := strings.Join(lines, "\n") + "\n\n"
	if oneline {
		text = strings.Join(strings.Fields(text), " ") + "\n"
	}
	_, err = out.WriteString(text)
	return err
}
