package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Events is gqueue events.
type Events struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID. None: all that happens from now on."`
	Follow  bool     `short:"f" help:"Go on with what happens, until the jobs have ended or Ctrl-C."`
	User    string   `short:"u" help:"Without jobs: only what happens to those of this user."`
	Me      bool     `help:"Without jobs: only to your own."`
	Project string   `short:"A" help:"Without jobs: only to those of this project."`
}

// Run prints the timelines of jobs, or what happens from now on.
func (o *Events) Run(ctx context.Context, a *cli.App) error {
	if len(o.IDs) == 0 || o.Follow {
		return o.follow(ctx, a)
	}
	return a.Each(o.IDs, func(id string) error {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return err
		}
		if a.Output.JSON {
			if d.Events == nil {
				d.Events = []api.Event{}
			}
			return a.WriteJSON(struct {
				Number job.Number  `json:"number"`
				State  job.State   `json:"state"`
				Reason string      `json:"reason,omitempty"`
				Class  job.Class   `json:"class,omitempty"`
				Events []api.Event `json:"events"`
			}{d.Number, d.State, d.Reason, d.Class, d.Events})
		}
		if _, err := fmt.Fprintf(a.Out, "job %s (%s) %s\n", jobs.ID(&d.Job), human.Clean(d.Name), human.Clean(stateText(d, ""))); err != nil {
			return err
		}
		return timeline(a, d.Events)
	})
}

// follow prints what happens from now on, a line each, until the user
// stops it or the jobs that were named have ended. It goes on where it was after
// a break; if it cannot, it says so.
func (o *Events) follow(ctx context.Context, a *cli.App) error {
	me, err := a.Users(ctx, nil, o.Me)
	if err != nil {
		return err
	}
	f := client.EventFilter{User: cmp.Or(jobs.Only(me), o.User), Project: o.Project, Jobs: o.IDs}
	f.Nodes = len(f.Jobs) == 0 && f.User == "" && f.Project == ""
	s := &eventPrinter{app: a, jobs: o.IDs, seen: map[job.Number]uint64{}, lines: map[job.Number]int{}, link: watch.Link{App: a}}
	for {
		err := s.listen(ctx, f)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil // they have ended, or the user has seen enough
		case !client.IsUnavailable(err):
			return err
		}
		if err := s.link.Lost(ctx, err); err != nil {
			return nil
		}
		f.After = s.last
	}
}

type eventPrinter struct {
	app  *cli.App
	jobs []string
	last uint64 // id of the last event
	link watch.Link

	seen  map[job.Number]uint64 // versions of jobs that were printed
	lines map[job.Number]int    // and of their timelines, so many lines
}

// listen returns nil when all jobs have ended.
func (s *eventPrinter) listen(ctx context.Context, f client.EventFilter) error {
	begun := false
	for ev, err := range s.app.Client.Events(ctx, f) {
		if err != nil {
			return err
		}
		s.link.Back()
		s.last = ev.ID
		switch {
		case !begun || ev.Kind == api.EventReset:
			if begun && len(s.jobs) == 0 {
				s.app.Say("some events were missed while the controller was away")
			}
			begun = true
			if done, err := s.look(ctx); done || err != nil {
				return err
			}
		case ev.Job != nil:
			if err := s.print(ev.Job); err != nil {
				return err
			}
			if !ev.Job.State.Final() {
				continue
			}
			if done, err := s.look(ctx); done || err != nil {
				return err
			}
		case ev.Node != nil:
			if err := s.printNode(ev.Node); err != nil {
				return err
			}
		}
	}
	return nil
}

// look reads the jobs that were named: it prints what of their timelines was not
// printed yet, and says whether all have ended.
func (s *eventPrinter) look(ctx context.Context) (done bool, err error) {
	done = len(s.jobs) > 0
	for _, id := range s.jobs {
		d, err := s.app.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return false, err
		}
		if lines := d.Events[min(s.lines[d.Number], len(d.Events)):]; len(lines) > 0 {
			if err := s.print(&api.JobEvent{Job: d.Job, Version: d.Version, Lines: lines}); err != nil {
				return false, err
			}
		}
		done = done && d.State.Final()
	}
	return done, nil
}

func (s *eventPrinter) print(j *api.JobEvent) error {
	if j.Version <= s.seen[j.Number] {
		return nil
	}
	s.seen[j.Number] = j.Version
	s.lines[j.Number] += len(j.Lines)
	if s.app.Output.JSON {
		return s.app.WriteLine(struct {
			Schema int           `json:"schema"`
			Job    *api.JobEvent `json:"job"`
		}{cli.Schema, j})
	}
	lines := slices.Clone(j.Lines)
	if len(lines) == 0 {
		if !j.Private {
			return nil // progress: gqueue show has it
		}
		lines = []api.Event{{Time: s.app.Now(), State: j.State}}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(s.app.Out, "%s  %s (%s)  %s\n", l.Time.Local().Format(human.ISO), human.Clean(jobs.ID(&j.Job)), human.Clean(j.Name), human.Clean(stateAnd(string(l.State), l.Message))); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventPrinter) printNode(n *api.NodeEvent) error {
	if s.app.Output.JSON {
		return s.app.WriteLine(struct {
			Schema int            `json:"schema"`
			Node   *api.NodeEvent `json:"node"`
		}{cli.Schema, n})
	}
	_, err := fmt.Fprintf(s.app.Out, "%s  node %s  %s\n", s.app.Now().Local().Format(human.ISO), human.Clean(n.Name), human.Clean(stateAnd(n.State, n.Reason)))
	return err
}

func stateAnd(state, text string) string {
	switch {
	case state == "":
		return text
	case text == "":
		return state
	}
	return state + ": " + text
}
