package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// EventsOptions are whose events gqueue events prints.
type EventsOptions struct {
	IDs     []string
	Me      bool
	User    string
	Project string
}

// FollowEvents prints what happens from now on, a line each, until the user
// stops it or the jobs that were named have ended. It goes on where it was after
// a break; if it cannot, it says so.
func (a *App) FollowEvents(ctx context.Context, o EventsOptions) error {
	if o.Me {
		me, err := a.me(ctx)
		if err != nil {
			return err
		}
		o.User = me
	}
	f := client.EventFilter{User: o.User, Project: o.Project, Jobs: o.IDs, Nodes: len(o.IDs) == 0 && o.User == "" && o.Project == ""}
	s := &eventPrinter{app: a, jobs: o.IDs, seen: map[job.Number]uint64{}, lines: map[job.Number]int{}, link: link{app: a}}
	for {
		err := s.listen(ctx, f)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil // they have ended, or the user has seen enough
		case !client.IsUnavailable(err):
			return err
		}
		if err := s.link.lost(ctx, err); err != nil {
			return nil
		}
		f.After = s.last
	}
}

type eventPrinter struct {
	app  *App
	jobs []string
	last uint64 // id of the last event
	link link

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
		s.link.back()
		s.last = ev.ID
		switch {
		case !begun || ev.Kind == api.EventReset:
			if begun && len(s.jobs) == 0 {
				s.app.say("some events were missed while the controller was away")
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
		return s.line(struct {
			Schema int           `json:"schema"`
			Job    *api.JobEvent `json:"job"`
		}{Schema, j})
	}
	lines := slices.Clone(j.Lines)
	if len(lines) == 0 {
		if !j.Private {
			return nil // progress: gqueue show has it
		}
		lines = []api.Event{{Time: s.app.Now(), State: j.State}}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(s.app.Out, "%s  %s (%s)  %s\n", l.Time.Local().Format(isoTime), clean(jobID(&j.Job)), clean(j.Name), clean(stateAnd(string(l.State), l.Message))); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventPrinter) printNode(n *api.NodeEvent) error {
	if s.app.Output.JSON {
		return s.line(struct {
			Schema int            `json:"schema"`
			Node   *api.NodeEvent `json:"node"`
		}{Schema, n})
	}
	_, err := fmt.Fprintf(s.app.Out, "%s  node %s  %s\n", s.app.Now().Local().Format(isoTime), clean(n.Name), clean(stateAnd(n.State, n.Reason)))
	return err
}

// line writes one object on one line.
func (s *eventPrinter) line(v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintln(s.app.Out, escapeJSON(string(data)))
	}
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
