package allocation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exec"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
	"gbatch/internal/launch"
	steps "gbatch/internal/launch/srun"
)

// call is a command line of srun outside of a container, taken apart.
type call struct {
	ofJob   []string // options for the job, where one is made
	ofStep  []string // for srun in its first container
	command []string
	jobID   string // in this job; empty: in one of its own
	export  string
	pty     bool
	bare    bool // there are no variables of that job here
}

// stepOnly are options of a step that sbatch has by the same name and which mean
// something else there, or are of the script.
var stepOnly = []string{"-o", "--output", "-e", "--error", "-i", "--input", "--open-mode", "-W", "--wait", "-K", "-Q", "--quiet", "-v", "--verbose", "-I", "--immediate", "-H", "-l", "-u", "-X", "-r", "-s", "--jobid",
	"--overlap", "--exact", "--mpi", "--cpu-bind", "--signal", "--container-name", "--container-readonly"}

// parseCall sorts options by who is to have them: most are for both, as they say
// how much a job asks for and how much of it the step takes.
func parseCall(args []string) (c call, err error) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		if w == "--" {
			c.command = args[i+1:]
			break
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			c.command = args[i:]
			break
		}
		name, value, given := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") && len(w) > 2 {
			name, value, given = w[:2], w[2:], true
			if takes, known := steps.Takes(name); known && takes == 0 { // -lu: two of them
				args = slices.Insert(slices.Clone(args), i+1, "-"+w[2:])
				w, value, given = name, "", false
			}
		}
		takes, ofStep := steps.Takes(name)
		needs, ofJob := slurm.Takes(name)
		if !ofStep && !ofJob {
			return c, exit.Usagef("unrecognized option '%s'", w)
		}
		words := []string{w}
		if (takes == '=' || !ofStep && needs) && !given {
			if i++; i >= len(args) {
				return c, exit.Usagef("option '%s' requires an argument", name)
			}
			value = args[i]
			words = append(words, value)
		}
		c.note(name, value)
		if ofJob && !slices.Contains(stepOnly, name) {
			c.ofJob = append(c.ofJob, words...)
		}
		if ofStep && name != "--jobid" {
			c.ofStep = append(c.ofStep, words...)
		}
	}
	if len(c.command) == 0 {
		return c, exit.Usagef("no command given to execute")
	}
	if slices.Contains(c.command, steps.Parts) {
		return c, exit.Usagef("%s", steps.PartsRefused)
	}
	return c, nil
}

func (c *call) note(name, value string) {
	switch name {
	case "--jobid":
		c.jobID = value
	case "--export":
		c.export = value
	case "--pty":
		c.pty = true
	}
}

// Srun starts tasks: in the job that it is called for, by --jobid or within
// salloc, or in one that is made for it and ends with them.
func Srun(ctx context.Context, a *cli.App, args []string) error {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprintln(a.Out, "srun [OPTIONS] COMMAND [ARGUMENT...]  starts tasks of a job, and outside of a job makes one for them; see docs/slurm.md")
		return nil
	}
	c, err := parseCall(args)
	if err != nil {
		return err
	}
	if id, ok := a.Env("SLURM_JOB_ID"); c.jobID == "" {
		c.jobID = id
	} else {
		c.bare = !ok
	}
	if c.jobID != "" {
		d, err := a.Client.Job(ctx, c.jobID, client.JobOptions{})
		switch {
		case client.IsCode(err, api.CodeNotFound), err == nil && d.State.Final():
			return fmt.Errorf("Unable to confirm allocation for job %s: Invalid job id specified", c.jobID) //nolint:staticcheck // as Slurm writes it
		case err != nil:
			return err
		}
		if err := hasSteps(d, fmt.Sprintf(": use gexec %s -- COMMAND", c.jobID)); err != nil {
			return err
		}
		return c.step(ctx, a, d)
	}
	l, err := allocate(ctx, a, wanted{"srun", "SLURM_", filepath.Base(c.command[0]), c.ofJob})
	if err != nil {
		return err
	}
	if err := l.await(ctx); err != nil {
		return err
	}
	if err := l.hold(ctx); err != nil {
		return err
	}
	d, err := a.Client.Job(ctx, l.id, client.JobOptions{})
	if err == nil {
		err = c.step(ctx, a, d)
	}
	code := 0
	if err != nil {
		code = 1
	}
	if ended, ok := errors.AsType[*exit.Error](err); ok {
		code = ended.Code
	}
	l.end(ctx, code)
	return err
}

// passedOn are the signals that srun in the job's container gets for those of this one:
// what tells Slurm's srun to end kills its tasks, as QUIT does there. TERM has them end by
// themselves, as that is what gcancel sends.
var passedOn = map[syscall.Signal]syscall.Signal{syscall.SIGINT: syscall.SIGINT, syscall.SIGTERM: syscall.SIGQUIT, syscall.SIGHUP: syscall.SIGQUIT, syscall.SIGQUIT: syscall.SIGQUIT}

// step runs srun in the job's first container, which does the rest.
func (c *call) step(ctx context.Context, a *cli.App, d *api.JobDetail) error {
	x := exec.Exec{ID: fmt.Sprint(d.Number), Terminal: c.pty && a.Term.In, Pipes: !c.pty || !a.Term.In, Patient: true}
	if d.Number == 0 {
		x.ID = d.ID
	}
	if dir, _ := a.Place(); d.Spec.Reaches(dir) {
		x.WorkDir = dir
	}
	x.PassOn = passedOn
	x.Env = append(x.Env, launch.Attended+"=1")
	for part := range strings.SplitSeq(c.export, ",") { // what the tasks shall have of here
		if _, here := a.Env(part); here && !slices.Contains([]string{"ALL", "NONE", "NIL"}, strings.ToUpper(part)) {
			x.Env = append(x.Env, part)
		}
	}
	if c.bare { // how many tasks the job's script has says nothing: as with Slurm, one on each node
		for _, name := range steps.Counts {
			x.Env = append(x.Env, name+"=")
		}
	}
	x.Args = slices.Concat([]string{job.LaunchDir + "/srun"}, c.ofStep, []string{"--"}, c.command)
	return x.Run(ctx, a)
}
