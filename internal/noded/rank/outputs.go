package rank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/data"
)

// saveOutputs sends the outputs that are due, and puts into out what went wrong.
// It returns false if the daemon goes first.
func (r *Rank) saveOutputs(parent context.Context, out *node.Exit) bool {
	due := data.Due(r.order.Spec.Gbatch.Outputs, out.OK())
	if len(due) == 0 {
		return true
	}
	limit := r.node.Config.Data.Timeout
	ctx, cancel := context.WithTimeoutCause(parent, time.Duration(limit), fmt.Errorf("not done within %s, the node's limit", limit))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- r.sendOutputs(ctx, due, out.OK()) }() // ends with ctx; awaited below
	kill := time.NewTimer(0)
	kill.Stop()
	for {
		if s := r.state.stopNow(); s != nil && s.Reason != job.MaxRuntime && s.Reason != job.Utilization {
			kill.Reset(max(0, time.Until(s.kill)))
		}
		select {
		case err := <-done:
			if parent.Err() != nil {
				return false
			}
			r.state.blameOutput(out, err)
			return true
		case <-kill.C:
			stop(errStopped)
		case <-r.state.wake:
		}
	}
}

// blameOutput says in a rank's end that outputs were not saved. A program that
// failed by itself keeps its reason.
func (s *state) blameOutput(out *node.Exit, err error) {
	stop := s.stopNow()
	switch {
	case err == nil:
	case errors.Is(err, errStopped) && stop != nil && out.OK():
		out.Code, out.Reason = 125, stop.Reason
		out.Message = stop.Text + "; the program had succeeded (exit code 0), and its outputs were being saved"
	case errors.Is(err, errStopped):
		out.Message += "; its outputs were not all saved"
	case out.OK():
		out.Code, out.Reason = 125, job.OutputFailed
		out.Message = "the program succeeded (exit code 0), but not all of its outputs were saved: " + err.Error()
	default:
		out.Message += "; not saved: " + err.Error()
	}
	if err != nil {
		s.log.Warn("outputs not saved", "error", err)
	}
}

// sendOutputs waits for the keys of S3 if a restart lost them, and sends.
func (r *Rank) sendOutputs(ctx context.Context, due map[int]job.Output, ok bool) error {
	if r.order.wantsSecrets() {
		if err := r.state.awaitSecrets(ctx); err != nil {
			return err
		}
	}
	return r.node.Data.Send(ctx, r.data(), due, ok)
}
