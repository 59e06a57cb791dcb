package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/named"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// Show is gqueue show.
type Show struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of one, or names."`
	As  string   `placeholder:"SYSTEM" help:"The state in the words of gpulab1, nvct, dstack, k8s, tao or slurm."`
}

// Words takes arguments of which none is a flag, if there are any.
func (o *Show) Words(ids []string) bool {
	if len(ids) > 0 {
		o.IDs = ids
	}
	return len(ids) > 0
}

// Run prints everything about jobs.
func (o *Show) Run(ctx context.Context, a *cli.App) error {
	if err := checkAs(a, o.As); err != nil {
		return err
	}
	return a.Each(o.IDs, func(id string) error {
		d, err := named.Job(ctx, a, id)
		switch {
		case err != nil:
			return err
		case a.Output.JSON || a.Output.IDs:
			return printJob(a, d)
		}
		return showJob(a, d, o.As)
	})
}

// printJob prints a job for programs.
func printJob(a *cli.App, d *api.JobDetail) error {
	if a.Output.JSON {
		return a.WriteJSON(struct {
			Job *api.JobDetail `json:"job"`
		}{d})
	}
	_, err := fmt.Fprintln(a.Out, jobs.ID(&d.Job))
	return err
}

func showJob(a *cli.App, d *api.JobDetail, as string) error {
	f := table.NewFields()
	identityFields(f, d, as)
	timeFields(a, f, d)
	resourceFields(f, d)
	containerFields(f, d.Spec)
	err := f.Fold(a.Term.Width).Write(a.Out)
	if len(d.Attempts) > 0 {
		fmt.Fprintln(a.Out, "\nAttempts")
		err = errors.Join(err, attempts(d).Indent("  ").Fit(a.Term.Width).Write(a.Out))
	}
	if len(d.Steps) > 0 {
		fmt.Fprintln(a.Out, "\nSteps")
		err = errors.Join(err, steps(a, d).Indent("  ").Fit(a.Term.Width).Write(a.Out))
	}
	if len(d.Untold) > 0 {
		fmt.Fprintln(a.Out, "\nNot told yet")
		for _, u := range d.Untold {
			e := a.Tell("  %s about %q: %s (failed tries: %d; it is tried for a day)", human.Clean(u.To), u.Event, human.Clean(u.Error), u.Tries)
			err = errors.Join(err, e)
		}
	}
	if len(d.Events) > 0 {
		fmt.Fprintln(a.Out, "\nTimeline")
		err = errors.Join(err, timeline(a, d.Events))
	}
	return err
}

func identityFields(f *table.Fields, d *api.JobDetail, as string) {
	f.Add("Job", fmt.Sprintf("%s (%s)", jobs.ID(&d.Job), d.Name))
	f.Add("UUID", d.UUID)
	if d.Spec != nil {
		f.Add("Description", d.Spec.Description)
	}
	f.Add("User", d.User)
	f.Add("Project", d.Project)
	f.Add("State", stateText(d, as))
	taskFields(f, d)
	if d.ExitCode != nil {
		f.Add("Exit code", jobs.ExitText(*d.ExitCode))
	}
	if d.Position > 0 {
		f.Add("Position", fmt.Sprintf("%d of %d in the queue", d.Position, d.NumQueued))
	}
	if d.Factors != nil {
		f.Add("Priority", priorityText(d.Factors))
	} else if d.Priority != 0 {
		f.Add("Priority", fmt.Sprintf("adjusted by %d", d.Priority))
	}
	f.Add("QOS", d.QOS)
	if d.Log != nil {
		f.Add("Log", logText(d.Log))
	}
	if d.Private {
		f.Add("Note", "this job is of another project; its name and contents are not shown")
	}
}

// logText is where the log is beside its nodes.
func logText(l *api.LogState) string {
	text := "the controller has a copy, which is empty"
	if l.Bytes > 0 {
		text = fmt.Sprintf("the controller has a copy, %s on disk", human.Size(nil, l.Bytes))
	}
	switch {
	case l.Archived:
		return text + ", complete, and so has the site's archive"
	case l.Complete:
		return text + ", complete"
	}
	return text + ", as of " + l.Until.Local().Format(human.ISO)
}

// stateText is the state, in the words of another system or ours, with all that
// explains it.
func stateText(d *api.JobDetail, as string) string {
	s := jobs.StateAs(as, &d.Job)
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

func timeFields(a *cli.App, f *table.Fields, d *api.JobDetail) {
	stamp := func(name string, t time.Time) {
		if t.IsZero() {
			return
		}
		text := t.Local().Format(time.RFC3339)
		if !a.Output.ISO {
			text += " (" + human.Ago(t, a.Now()) + ")"
		}
		f.Add(name, text)
	}
	stamp("Submitted", d.Submitted)
	if d.State.Pending() {
		stamp("Not before", d.Begin)
		stamp("Start expected", d.EstStart)
	} else {
		stamp("Started", d.Started)
	}
	stamp("Ended", d.Ended)
	if d.Ending != nil {
		stamp("Ending since", d.Ending.Since)
		stamp("Killed", d.Ending.Kill) // if it has not ended by then
	}
	if !d.Started.IsZero() && !d.State.Pending() {
		f.Add("Duration", string(human.Duration(nil, int64(jobs.Ran(&d.Job, a.Now())/time.Second))))
	}
	f.Add("Time limit", limitText(d))
}

// limitText is the limit of a job, with what it asked for where it was granted less, and
// what is the least that will do while it waits.
func limitText(d *api.JobDetail) string {
	text := string(jobs.Limit(nil, d.LimitS))
	if d.LimitMinS == 0 || d.Spec == nil {
		return text
	}
	switch asked := int64(d.Spec.Request.Scheduling.MaxDuration); {
	case d.State.Pending():
		text += ", or less to start sooner, " + string(jobs.Limit(nil, d.LimitMinS)) + " at least"
	case asked > d.LimitS:
		text += ", of the " + string(jobs.Limit(nil, asked)) + " that were asked for"
	}
	return text
}

func resourceFields(f *table.Fields, d *api.JobDetail) {
	gpus := "GPUs" // also of a part of one
	if d.GPUs == 1 {
		gpus = "GPU"
	}
	f.Add("Resources", fmt.Sprintf("%s %s, %s, %s memory", human.Number(nil, d.GPUs), gpus, english.Plural(d.CPUs, "CPU", ""), humanize.IBytes(uint64(max(d.MemBytes, 0)))))
	if d.Cluster != 0 {
		f.Add("Cluster", strconv.Itoa(d.Cluster))
	}
	f.Add("Partition", d.Partition)
	f.Add("Licences", d.Licenses)
	f.Add("Nodes", human.Hosts(d.Nodes))
	f.Add("Ports", strings.Join(portLines(d), "\n"))
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
	f.Add("Wants", strings.Join(wants, "; "))
}

func containerFields(f *table.Fields, s *job.Spec) {
	if s == nil {
		return
	}
	c := s.Request.Docker
	f.Add("Image", c.Image)
	programFields(f, s)
	f.Add("Directory", c.WorkingDir)
	f.Add("Runs as", c.User)
	f.Add("Environment", strings.Join(slices.Sorted(maps.Keys(c.Environment)), ", ")) // values may be secrets; --json has them
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
	f.Add("Storage", strings.Join(mounts, "\n"))
	dataFields(f, s.Gbatch)
}

// programFields are what runs: the entrypoint that the job has in place of its
// image's, and its arguments, or a command.
func programFields(f *table.Fields, s *job.Spec) {
	command := cmp.Or(s.Request.Docker.Command.Line, quoted(s.Request.Docker.Command.Argv))
	f.Add("Entrypoint", quoted(s.Entrypoint()))
	if command == "" && len(s.Entrypoint()) == 0 {
		command = "(the image's own)"
	}
	f.Add("Command", command)
}

func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = strconv.Quote(arg)
	}
	return strings.Join(words, " ")
}

// dataFields tell what is brought and saved, and which secrets the program gets.
func dataFields(f *table.Fields, g *job.Gbatch) {
	if g == nil {
		return
	}
	var inputs, outputs, secrets, told []string
	for _, in := range g.Inputs {
		text := in.URI + " at " + in.Path
		if in.Cache {
			text += ", cached"
		}
		inputs = append(inputs, text)
	}
	for _, out := range g.Outputs {
		text := out.Path
		if out.Pattern != "" {
			text += " (" + out.Pattern + ")"
		}
		text += " to " + out.URI
		if out.When != "" {
			text += ", " + map[string]string{job.WhenFailure: "if it fails", job.WhenAlways: "always"}[out.When]
		}
		outputs = append(outputs, text)
	}
	for _, s := range g.Secrets {
		secrets = append(secrets, s.Name)
	}
	for _, x := range g.Notify {
		told = append(told, x.Shown()+" on "+cmp.Or(strings.Join(x.On, ", "), "end"))
	}
	f.Add("Tells", strings.Join(told, "\n"))
	f.Add("Inputs", strings.Join(inputs, "\n"))
	f.Add("Outputs", strings.Join(outputs, "\n"))
	f.Add("Secrets", strings.Join(secrets, ", "))
}

// timeline prints the events, each with how long after the one before it
// came.
func timeline(a *cli.App, events []api.Event) error {
	t := table.New()
	last, lastState := time.Time{}, ""
	for _, e := range events {
		after := ""
		if !last.IsZero() {
			after = "  (" + afterText(e.Time.Sub(last)) + " after " + lastState + ")"
		}
		t.Row(e.Time.Local().Format(human.ISO), string(e.State), strings.TrimLeft(e.Message+after, " "))
		if e.State != "" || last.IsZero() {
			last, lastState = e.Time, cmp.Or(string(e.State), "submission")
		}
	}
	return t.Indent("  ").Fold(a.Term.Width).Write(a.Out)
}

// afterText is a pause in words: 3 seconds, 2 minutes.
func afterText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	}
	start := time.Unix(0, 0)
	return strings.TrimSpace(humanize.RelTime(start, start.Add(d), "", ""))
}

// taskFields are how far an array's tasks are, and a task's place in its array.
func taskFields(f *table.Fields, d *api.JobDetail) {
	if d.Task != nil {
		f.Add("Task", fmt.Sprintf("%d of array %d; its own number is %d", *d.Task, d.Parent, d.Number))
	}
	t := d.Tasks
	if t == nil {
		return
	}
	most := ""
	if t.Parallelism > 0 {
		most = fmt.Sprintf(", at most %d at once", t.Parallelism)
	}
	f.Add("Tasks", jobs.ShortIndexes(t.Indexes)+most)
	add := func(name string, n int, which string) {
		if n > 0 {
			f.Add(name, strings.TrimSpace(fmt.Sprintf("%d  %s", n, jobs.ShortIndexes(which))))
		}
	}
	add("  waiting", t.NumWaiting, t.Waiting)
	add("  active", t.NumActive, "")
	add("  succeeded", t.NumSucceeded, t.Succeeded)
	add("  failed", t.NumFailed, t.Failed)
	add("  cancelled", t.NumCancelled, t.Cancelled)
}
