// Package allocation plays salloc, sattach, sbcast and srun outside of a container: jobs in
// which nothing runs but what srun starts, and steps in jobs that run. What a step
// is and does is in internal/launch, in the job's containers.
package allocation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
	"gbatch/internal/launch"
)

// allocation is a job that salloc, or srun outside of a job, has made and holds:
// nothing runs in it but what srun starts.
type allocation struct {
	app     *cli.App
	program string // salloc or srun, for what is said
	quiet   bool
	id      string
	env     []string // its variables, once it is held

	cancel context.CancelFunc
	done   chan struct{}
	held   chan struct{} // closed once it is

	mu     sync.Mutex
	stream *client.Stream // by which it is held; nil: none
	gone   error          // why it is held no more
}

// ImageVariable names the image of jobs that name none.
const ImageVariable = "GBATCH_SLURM_IMAGE"

// wanted is what is asked for.
type wanted struct {
	program   string // salloc or srun
	variables string // what the names of those begin with that stand for options
	name      string // of the job; empty: the usual one
	line      []string
}

// allocate submits the job.
func allocate(ctx context.Context, a *cli.App, w wanted) (*allocation, error) {
	image, _ := a.Env(ImageVariable)
	dir, host := a.Place()
	sub, err := slurm.Allocation(slurm.Options{
		Line: w.line, DefaultImage: image, FileName: w.name, Directory: dir, Host: host, Variables: w.variables, Reservation: a.Reservation(ctx), Widest: a.Widest(ctx),
		Env: a.Env, Now: job.Instant(a.Now().UnixMilli()), Zone: time.Local,
	}, job.LaunchDir+"/"+launch.RankProgram, launch.ModeAllocation)
	if err != nil {
		return nil, cli.FileError(w.program, err)
	}
	doc, err := sub.Document()
	if err != nil {
		return nil, err
	}
	r, err := a.Client.Submit(ctx, &api.SubmitRequest{Job: doc}, "")
	if err != nil {
		return nil, cli.FileError(w.program, err)
	}
	return &allocation{app: a, program: w.program, id: fmt.Sprint(r.Number), held: make(chan struct{}), done: make(chan struct{})}, nil
}

func (l *allocation) say(format string, args ...any) {
	if !l.quiet {
		l.app.Say(l.program+": "+format, args...)
	}
}

// await stays until the job runs. Interrupted, it cancels it.
func (l *allocation) await(ctx context.Context) error {
	waits := false
	d, err := watch.Job(ctx, l.app, l.id, func(d *api.JobDetail) bool {
		if d.State.Pending() && !waits {
			waits = true
			l.say("job %s queued and waiting for resources", l.id)
		}
		return d.State == job.Running || d.State.Final()
	})
	if err != nil {
		l.revoke(ctx)
		return err
	}
	if d.State.Final() {
		return fmt.Errorf("Job allocation %s has been revoked: %s", l.id, jobs.Outcome(d)) //nolint:staticcheck // as Slurm writes it
	}
	if waits {
		l.say("job %s has been allocated resources", l.id)
	}
	return nil
}

// revoke cancels the job, also when the user has interrupted.
func (l *allocation) revoke(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), revokeTime)
	defer stop()
	if _, err := l.app.Client.Action(ctx, "cancel", &api.ActionRequest{IDs: []string{l.id}}); err != nil {
		l.app.Say("%s: error: job %s could not be cancelled: %v", l.program, l.id, err)
	}
}

// revokeTime is less than what an interrupted command has to end.
const revokeTime = 1500 * time.Millisecond

// hold keeps the job for as long as this program runs: a process in it ends it
// some time after the last connection to it has gone. It returns once that is so.
func (l *allocation) hold(ctx context.Context) error {
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go l.keep(ctx) // ended by cancel; awaited by end
	select {
	case <-l.held:
		return nil
	case <-l.done:
		return l.gone
	}
}

func (l *allocation) keep(ctx context.Context) {
	defer close(l.done)
	for ctx.Err() == nil {
		err := l.once(ctx)
		if errors.Is(err, errOver) {
			return
		}
		if refused := (*api.Error)(nil); errors.As(err, &refused) && refused.Code != api.CodeUnavailable {
			l.mu.Lock()
			l.gone = err
			l.mu.Unlock()
			if ctx.Err() == nil && l.isHeld() {
				l.say("Job allocation %s has been revoked.", l.id)
			}
			return
		}
		_ = l.app.Sleep(ctx, time.Second)
	}
}

func (l *allocation) isHeld() bool {
	select {
	case <-l.held:
		return true
	default:
		return false
	}
}

// errOver is that the process that holds the job has ended.
var errOver = errors.New("the allocation is over")

func (l *allocation) once(ctx context.Context) error {
	st, err := l.app.Client.Enter(ctx, api.StreamExec, l.id, 0)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, api.ExecStart{Args: []string{job.LaunchDir + "/" + launch.RankProgram, launch.ModeHold}})); err != nil {
		return err
	}
	l.mu.Lock()
	l.stream = st
	l.mu.Unlock()
	defer func() { l.mu.Lock(); l.stream = nil; l.mu.Unlock() }()
	var said bytes.Buffer
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return err
		}
		switch f.Type {
		case api.FrameOutput:
			said.Write(f.Data)
			if bytes.HasSuffix(said.Bytes(), []byte(launch.Held+"\n")) && !l.isHeld() {
				l.env = strings.Split(strings.TrimSuffix(said.String(), launch.Held+"\n"), "\x00")
				close(l.held)
			}
		case api.FrameError:
			return f.Failure()
		case api.FrameExit:
			if !l.isHeld() || f.Count() == 0 {
				return errOver
			}
			return errors.New("the process that holds the job was ended")
		}
	}
}

// end gives the job back, which then ends with the code.
func (l *allocation) end(ctx context.Context, code int) {
	defer func() { l.cancel(); <-l.done }()
	if ctx.Err() != nil {
		l.revoke(ctx)
		return
	}
	if !l.tell(ctx, fmt.Appendf(nil, "end %d\n", code)) {
		l.revoke(ctx)
		return
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		l.revoke(ctx)
	case <-time.After(releaseTime):
		l.revoke(ctx)
	}
}

// tell sends something to the process that holds the job, when need be once there
// is a connection again: gctld or gnoded may have been restarted a moment ago.
func (l *allocation) tell(ctx context.Context, text []byte) bool {
	for range reconnectTries {
		l.mu.Lock()
		st := l.stream
		l.mu.Unlock()
		if st != nil && st.SendInput(ctx, text) == nil {
			return true
		}
		select {
		case <-l.done:
			return false
		case <-time.After(reconnectPause):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// How often, and how long apart, it is looked whether there is a connection again.
const (
	reconnectTries = 100
	reconnectPause = 200 * time.Millisecond
)

// releaseTime is how long what runs in the job may take to end.
const releaseTime = 40 * time.Second

// exitWith is the end of the program with a code.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exit.Error{Code: code}
}
