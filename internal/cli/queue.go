package cli

import (
	"context"
	"fmt"
	"slices"
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
	Sort     string // columns, as "-priority,id"
	Priority bool   // jobs that wait, with the terms of their priorities
	QOS      []string
	Interval time.Duration // list again that often; 0: once
	Limit    int           // 0: no limit
	As       string        // whose words for states; empty: ours
}

// selection is QueueOptions understood.
type selection struct {
	users, projects, names, nodes, qos []string
	states                             []job.State
	clusters                           []int
}

// Queue lists jobs.
func (a *App) Queue(ctx context.Context, o QueueOptions) error {
	form, err := queueLayout(o)
	if err != nil {
		return err
	}
	order, err := parseSort(o.Sort)
	if err != nil {
		return err
	}
	if o.Priority && len(o.States) == 0 {
		o.States = []string{string(job.Queued)}
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
	factors := o.Priority || order.needs('p', 'Q', 2, 3, 4, 5, 6, 7) || form.needs('p', 'Q', 2, 3, 4, 5, 6, 7)
	var list *api.JobList
	fetch := func() (err error) {
		if list, err = a.fetch(ctx, o, sel, len(order) > 0, factors); err == nil {
			order.sort(list, &view{now: a.Now()}, o.Limit)
		}
		return err
	}
	draw := func() error { return a.list(list, o, form) }
	if o.Interval > 0 {
		return a.live(ctx, client.EventFilter{User: single(sel.users), Project: single(sel.projects), Jobs: o.IDs}, o.Interval, fetch, draw)
	}
	if err := fetch(); err != nil {
		return err
	}
	return draw()
}

// queueLayout is which columns a list has.
func queueLayout(o QueueOptions) (layout[api.Job], error) {
	switch {
	case o.Format != "":
		return parseLayout(o.Format, columns)
	case o.Priority:
		return layout[api.Job]{columns: byLetters("ijuaqp\x02\x03\x04\x05\x06\x07r", columns)}, nil
	case o.Long:
		return layout[api.Job]{columns: byLetters("ijuaTMlbCmPQVSR", columns)}, nil
	}
	return layout[api.Job]{columns: byLetters("ijuaTMlbCmR", columns)}, nil
}

func (a *App) selection(ctx context.Context, o QueueOptions) (selection, error) {
	s := selection{users: o.Users, projects: o.Projects, names: o.Names, clusters: o.Clusters, qos: o.QOS}
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
func (a *App) fetch(ctx context.Context, o QueueOptions, s selection, sorted, factors bool) (*api.JobList, error) {
	if len(o.IDs) > 0 {
		return a.fetchIDs(ctx, o.IDs)
	}
	f := client.JobFilter{
		States: s.states, User: single(s.users), Project: single(s.projects), Name: single(s.names),
		Node: single(s.nodes), Cluster: single(s.clusters), QOS: single(s.qos), All: o.All, Factors: factors,
	}
	for _, st := range s.states {
		f.All = f.All || st.Final()
	}
	here := len(s.users) > 1 || len(s.projects) > 1 || len(s.names) > 1 || len(s.nodes) > 1 || len(s.clusters) > 1 || len(s.qos) > 1
	if !here && !sorted { // what is first is known here
		f.Limit = o.Limit
	}
	list, err := a.Client.Jobs(ctx, f)
	if err != nil || !here {
		return list, err
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j api.Job) bool { return !s.match(&j) })
	list.Total = len(list.Jobs)
	if o.Limit > 0 && !sorted && len(list.Jobs) > o.Limit {
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
	return has(s.users, j.User) && has(s.projects, j.Project) && has(s.names, j.Name) && has(s.qos, j.QOS) &&
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
func (a *App) list(l *api.JobList, o QueueOptions, form layout[api.Job]) error {
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
	paint := map[byte]func([]byte) string{'T': func(cell []byte) string { return stateColor(job.State(cell)) }}
	if err := form.write(a, l.Jobs, v, !o.NoHeader, paint); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if form.fields != nil {
		return nil
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
