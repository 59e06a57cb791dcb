package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// QueueOptions are what gqueue lists and how.
type QueueOptions struct {
	IDs      []string
	All      bool
	Me       bool
	Users    []string
	Projects []string
	States   []string
	Clusters []int
	Names    []string
	Nodes    []string
	NoHeader bool
	Long     bool
	Format   string
	Interval time.Duration // list again that often; 0: once
	Limit    int           // 0: no limit
	As       string        // whose words for states; empty: ours
}

// selection is QueueOptions understood.
type selection struct {
	users, projects, names, nodes []string
	states                        []job.State
	clusters                      []int
}

// Queue lists jobs.
func (a *App) Queue(ctx context.Context, o QueueOptions) error {
	fields, err := parseFormat(o.Format)
	if err != nil {
		return err
	}
	if err := checkForeign(o.As); err != nil {
		return err
	}
	if o.As != "" && a.Output.JSON {
		return usageError("--as is for people: --json has our own states")
	}
	sel, err := a.selection(ctx, o)
	if err != nil {
		return err
	}
	show := func() error {
		list, err := a.fetch(ctx, o, sel)
		if err != nil {
			return err
		}
		return a.list(list, o, fields)
	}
	if o.Interval <= 0 {
		return show()
	}
	return a.every(ctx, o.Interval, show)
}

func (a *App) selection(ctx context.Context, o QueueOptions) (selection, error) {
	s := selection{users: o.Users, projects: o.Projects, names: o.Names, clusters: o.Clusters}
	var err error
	if s.states, err = parseStates(o.States); err != nil {
		return s, err
	}
	for _, list := range o.Nodes {
		nodes, err := expandHosts(list)
		if err != nil {
			return s, err
		}
		s.nodes = append(s.nodes, nodes...)
	}
	if o.Me {
		me, err := a.me(ctx)
		if err != nil {
			return s, err
		}
		s.users = append(s.users, me)
	}
	return s, nil
}

// me is the caller's name, as the controller knows it.
func (a *App) me(ctx context.Context) (string, error) {
	status, err := a.Client.Status(ctx)
	if err != nil {
		return "", err
	}
	return status.You, nil
}

// fetch gets the jobs of a selection. The controller filters by any number of
// states but one value of each other kind; what has several is filtered here.
func (a *App) fetch(ctx context.Context, o QueueOptions, s selection) (*api.JobList, error) {
	if len(o.IDs) > 0 {
		return a.fetchIDs(ctx, o.IDs)
	}
	f := client.JobFilter{
		States: s.states, User: single(s.users), Project: single(s.projects), Name: single(s.names),
		Node: single(s.nodes), Cluster: single(s.clusters), All: o.All,
	}
	for _, st := range s.states {
		f.All = f.All || st.Final()
	}
	here := len(s.users) > 1 || len(s.projects) > 1 || len(s.names) > 1 || len(s.nodes) > 1 || len(s.clusters) > 1
	if !here {
		f.Limit = o.Limit
	}
	list, err := a.Client.Jobs(ctx, f)
	if err != nil || !here {
		return list, err
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j api.Job) bool { return !s.match(&j) })
	list.Total = len(list.Jobs)
	if o.Limit > 0 && len(list.Jobs) > o.Limit {
		list.Jobs = list.Jobs[:o.Limit]
	}
	return list, nil
}

// single is the only value, or none.
func single[T string | int](values []T) (v T) {
	if len(values) == 1 {
		v = values[0]
	}
	return v
}

func (s *selection) match(j *api.Job) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return has(s.users, j.User) && has(s.projects, j.Project) && has(s.names, j.Name) &&
		(len(s.states) == 0 || slices.Contains(s.states, j.State)) &&
		(len(s.clusters) == 0 || slices.Contains(s.clusters, j.Cluster)) &&
		(len(s.nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(s.nodes, n) }))
}

func (a *App) fetchIDs(ctx context.Context, ids []string) (*api.JobList, error) {
	list := &api.JobList{Total: len(ids)}
	for _, id := range ids {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return nil, err
		}
		list.Jobs = append(list.Jobs, d.Job)
	}
	return list, nil
}

// list prints jobs in the form that was asked for.
func (a *App) list(l *api.JobList, o QueueOptions, fields []field) error {
	switch {
	case a.Output.JSON:
		if l.Jobs == nil {
			l.Jobs = []api.Job{}
		}
		return a.writeJSON(l)
	case a.Output.IDs:
		return a.listIDs(l)
	}
	v := &view{now: a.Now(), relative: !a.Output.ISO, text: o.Long, as: o.As}
	if len(fields) > 0 {
		v.relative = false // Slurm's letters have Slurm's times
		return writeFormat(a.Out, fields, l.Jobs, v, !o.NoHeader)
	}
	shown := "ijuaTMlbCmR"
	if o.Long {
		shown = "ijuaTMlbCmPQVSR"
	}
	if err := a.grid(l.Jobs, shown, v).write(a.Out, a.Term.Width, !o.NoHeader, a.Term.Color); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if len(l.Jobs) < l.Total {
		a.say("these are the first %d of %d jobs", len(l.Jobs), l.Total)
	}
	if a.Term.Out {
		a.hint(l.Jobs, o)
	}
	return nil
}

func (a *App) listIDs(l *api.JobList) error {
	var b []byte
	for i := range l.Jobs {
		b = append(append(b, jobID(&l.Jobs[i])...), '\n')
	}
	_, err := a.Out.Write(b)
	return err
}

// grid fills the table with the columns of these letters.
func (a *App) grid(jobs []api.Job, shown string, v *view) *grid {
	g := &grid{}
	cols := make([]*column, len(shown))
	for i := range cols {
		c := columnOf(shown[i])
		cols[i] = c
		gc := gridColumn{title: c.title, right: c.right, least: c.least}
		if c.letter == 'T' {
			gc.paint = func(cell []byte) string { return stateColor(job.State(cell)) }
		}
		g.columns = append(g.columns, gc)
	}
	for i := range jobs {
		for _, c := range cols {
			g.cell(func(b []byte) []byte { return c.cell(v, b, &jobs[i]) })
		}
	}
	return g
}

// hint tells a person what the list leaves out.
func (a *App) hint(jobs []api.Job, o QueueOptions) {
	if len(o.IDs) > 0 || o.All || len(o.States) > 0 {
		return
	}
	active, waiting := 0, 0
	for i := range jobs {
		if jobs[i].State.Active() {
			active++
		} else if t := jobs[i].Tasks; t != nil {
			waiting += t.NumWaiting
		} else {
			waiting++
		}
	}
	a.say("%d active, %d waiting; ended jobs: gqueue --all; one job: gqueue show ID", active, waiting)
}

// every runs show at an interval until the user stops it. A controller that
// goes away for a while does not end it.
func (a *App) every(ctx context.Context, interval time.Duration, show func() error) error {
	lost := false
	for {
		if a.Term.Out {
			fmt.Fprint(a.Out, "\x1b[H\x1b[2J")
		}
		if !a.Output.JSON && !a.Output.IDs {
			fmt.Fprintln(a.Out, a.Now().Format("2006-01-02 15:04:05"))
		}
		err := show()
		switch {
		case err == nil:
			lost = false
		case !client.IsUnavailable(err):
			return err
		case !lost || a.Term.Out:
			lost = true
			a.say("%v", strings.TrimSpace(err.Error()))
		}
		if err := a.Sleep(ctx, interval); err != nil {
			return nil // the user has seen enough
		}
	}
}
