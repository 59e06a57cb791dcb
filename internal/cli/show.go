package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Show prints everything about jobs.
// As is whose words are used for states; empty: ours.
func (a *App) Show(ctx context.Context, ids []string, as string) error {
	if err := checkForeign(as); err != nil {
		return err
	}
	if as != "" && a.Output.JSON {
		return usageError("--as is for people: --json has our own states")
	}
	return a.each(ids, func(id string) error {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		switch {
		case err != nil:
			return err
		case a.Output.JSON:
			return a.writeJSON(struct {
				Job *api.JobDetail `json:"job"`
			}{d})
		case a.Output.IDs:
			_, err = fmt.Fprintln(a.Out, jobID(&d.Job))
			return err
		}
		return a.showJob(d, as)
	})
}

// each does something to each job, with an empty line between, and goes on
// with the others when the controller refuses one.
func (a *App) each(ids []string, do func(id string) error) error {
	var failed error
	for i, id := range ids {
		if i > 0 && !a.Output.JSON && !a.Output.IDs {
			fmt.Fprintln(a.Out)
		}
		err := do(id)
		refusal, ok := errors.AsType[*api.Error](err)
		if err != nil && (!ok || len(ids) == 1 || client.IsUnavailable(err)) {
			return err
		}
		if err != nil {
			a.say("%s: %v", id, refusal)
			failed = &exitError{code: ExitCode(err)}
		}
	}
	return failed
}

func (a *App) showJob(d *api.JobDetail, as string) error {
	f := newFields()
	a.identityFields(f, d, as)
	a.timeFields(f, d)
	resourceFields(f, d)
	containerFields(f, d.Spec)
	err := render(a.Out, f.t, "")
	if len(d.Attempts) > 0 {
		fmt.Fprintln(a.Out, "\nAttempts")
		err = errors.Join(err, render(a.Out, a.attempts(d), "  "))
	}
	if len(d.Events) > 0 {
		fmt.Fprintln(a.Out, "\nTimeline")
		err = errors.Join(err, a.timeline(a.Out, d.Events))
	}
	return err
}

func (a *App) identityFields(f *fields, d *api.JobDetail, as string) {
	f.add("Job", fmt.Sprintf("%s (%s)", jobID(&d.Job), d.Name))
	f.add("UUID", d.UUID)
	if d.Spec != nil {
		f.add("Description", d.Spec.Description)
	}
	f.add("User", d.User)
	f.add("Project", d.Project)
	f.add("State", stateText(d, as))
	taskFields(f, d)
	if d.ExitCode != nil {
		f.add("Exit code", exitText(*d.ExitCode))
	}
	if d.Position > 0 {
		f.add("Position", fmt.Sprintf("%d of %d in the queue", d.Position, d.NumQueued))
	}
	if d.Factors != nil {
		f.add("Priority", priorityText(d.Factors))
	} else if d.Priority != 0 {
		f.add("Priority", fmt.Sprintf("adjusted by %d", d.Priority))
	}
	f.add("QOS", d.QOS)
	if d.Private {
		f.add("Note", "this job is of another project; its name and contents are not shown")
	}
}

// stateText is the state, in the words of another system or ours, with all that
// explains it.
func stateText(d *api.JobDetail, as string) string {
	s := stateAs(as, &d.Job)
	if d.Reason != "" {
		s += ", " + d.Reason
	}
	if d.ReasonText != "" {
		s += ": " + d.ReasonText
	}
	if d.Class != "" {
		s += " (" + classText(d.Class) + ")"
	}
	if d.Done != nil {
		s += ", " + d.Done.String()
	}
	if d.Progress != "" {
		s += ", " + d.Progress
	}
	return s
}

func classText(c job.Class) string {
	switch c {
	case job.Program:
		return "the job's own fault"
	case job.Infra:
		return "the infrastructure's fault"
	}
	return string(c)
}

// exitText explains the codes that name signals.
func exitText(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("%d (signal %d)", code, code-128)
	}
	return strconv.Itoa(code)
}

func (a *App) timeFields(f *fields, d *api.JobDetail) {
	stamp := func(name string, t time.Time) {
		if t.IsZero() {
			return
		}
		text := t.Local().Format(time.RFC3339)
		if !a.Output.ISO {
			text += " (" + relTime(t, a.Now()) + ")"
		}
		f.add(name, text)
	}
	stamp("Submitted", d.Submitted)
	if d.State.Pending() {
		stamp("Start expected", d.EstStart)
	} else {
		stamp("Started", d.Started)
	}
	stamp("Ended", d.Ended)
	if !d.Started.IsZero() && !d.State.Pending() {
		f.add("Duration", string(slurmDuration(nil, int64(ran(&d.Job, a.Now())/time.Second))))
	}
	f.add("Time limit", string(limit(nil, d.LimitS)))
}

func resourceFields(f *fields, d *api.JobDetail) {
	f.add("Resources", fmt.Sprintf("%s GPUs, %d CPUs, %s memory", number(nil, d.GPUs), d.CPUs, humanize.IBytes(uint64(max(d.MemBytes, 0)))))
	if d.Cluster != 0 {
		f.add("Cluster", strconv.Itoa(d.Cluster))
	}
	f.add("Nodes", compressHosts(d.Nodes))
	f.add("Ports", strings.Join(portLines(d), "\n"))
	if d.Spec == nil {
		return
	}
	r := d.Spec.Request.Resources
	var wants []string
	if len(r.GPUModel) > 0 {
		wants = append(wants, "GPU model "+strings.Join(r.GPUModel, " or "))
	}
	if r.GPUMemoryGB > 0 {
		wants = append(wants, fmt.Sprintf("GPUs of %d GiB", r.GPUMemoryGB))
	}
	if r.MinCudaVersion > 0 {
		wants = append(wants, fmt.Sprintf("CUDA %d or newer", r.MinCudaVersion))
	}
	if r.SlaveName != "" {
		wants = append(wants, "node "+r.SlaveName)
	}
	if len(r.Features) > 0 {
		wants = append(wants, "features "+strings.Join(r.Features, ", "))
	}
	f.add("Wants", strings.Join(wants, "; "))
}

func containerFields(f *fields, s *job.Spec) {
	if s == nil {
		return
	}
	c := s.Request.Docker
	f.add("Image", c.Image)
	command := c.Command.Line
	if len(c.Command.Argv) > 0 {
		quoted := make([]string, len(c.Command.Argv))
		for i, arg := range c.Command.Argv {
			quoted[i] = strconv.Quote(arg)
		}
		command = strings.Join(quoted, " ")
	}
	if command == "" {
		command = "(the image's own)"
	}
	f.add("Command", command)
	f.add("Directory", c.WorkingDir)
	f.add("Runs as", c.User)
	names := make([]string, 0, len(c.Environment))
	for name := range c.Environment {
		names = append(names, name)
	}
	slices.Sort(names)
	f.add("Environment", strings.Join(names, ", ")) // values may be secrets; --json has them
	var mounts []string
	for _, m := range c.Storage {
		text := m.HostPath + " at " + m.ContainerPath
		if m.SizeGB > 0 {
			text += fmt.Sprintf(", %d GiB", m.SizeGB)
		}
		if m.ReadOnly {
			text += ", read-only"
		}
		mounts = append(mounts, text)
	}
	f.add("Storage", strings.Join(mounts, "\n"))
	dataFields(f, s.Gbatch)
}

// timeline prints the events, each with how long after the one before it
// came.
func (a *App) timeline(w io.Writer, events []api.Event) error {
	t := newTable()
	last, lastState := time.Time{}, ""
	for _, e := range events {
		after := ""
		if !last.IsZero() {
			after = "(" + afterText(e.Time.Sub(last)) + " after " + lastState + ")"
		}
		t.AppendRow(toRow([]string{e.Time.Local().Format(isoTime), string(e.State), e.Message, after}))
		if e.State != "" || last.IsZero() {
			last, lastState = e.Time, string(e.State)
			if lastState == "" {
				lastState = "submission"
			}
		}
	}
	return render(w, t, "  ")
}

// afterText is a pause in words: 3 seconds, 2 minutes.
func afterText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	}
	start := time.Unix(0, 0)
	return strings.TrimSpace(humanize.RelTime(start, start.Add(d), "", ""))
}
