package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// send hands jobs to the controller, which may refuse some, and tells the
// numbers of the others.
func (o *flags) send(ctx context.Context, a *cli.App, jobs []ready) (numbers []string, failed error) {
	if len(jobs) > 1 && !o.DryRun {
		b := &batch{key: cmp.Or(o.IdempotencyKey, rand.Text())}
		defer b.said.end(a)
		return o.sendMany(ctx, a, b, jobs)
	}
	for i, j := range jobs {
		resp, err := o.sendOne(ctx, a, j)
		if err != nil {
			if _, refused := errors.AsType[*api.Error](err); !refused || len(jobs) == 1 || client.IsUnavailable(err) {
				return numbers, notSent(err, jobs[i+1:])
			}
			a.Say("%v", err)
			failed = &exit.Error{Code: exit.Code(err)}
			continue
		}
		if o.DryRun {
			resp.Notes = mergeNotes(j.sub.Notes, resp.Notes)
			err = printDryRun(a, resp)
		} else {
			err = o.submitted(a, j, resp)
			numbers = append(numbers, strconv.FormatUint(uint64(resp.Number), 10))
		}
		if err != nil {
			return numbers, err
		}
	}
	return numbers, failed
}

// submitted tells of a job that the controller has taken.
func (o *flags) submitted(a *cli.App, j ready, resp *api.SubmitResponse) error {
	resp.Notes = mergeNotes(j.sub.Notes, resp.Notes)
	held := *o
	held.Hold = o.Hold || j.sub.Hold
	return held.printSubmitted(a, resp, j.sub.Spec.Name)
}

// request is what a job is submitted with.
func (o *flags) request(j ready) api.SubmitRequest {
	return api.SubmitRequest{Job: j.doc, Project: o.Project, Hold: o.Hold || j.sub.Hold, DryRun: o.DryRun, Interactive: o.Interactive, Dependency: o.Dependency}
}

// sendOne submits one job. Where the request has gone out and no answer says what came of
// it, the error has the key by which it can be asked for.
func (o *flags) sendOne(ctx context.Context, a *cli.App, j ready) (*api.SubmitResponse, error) {
	req := o.request(j)
	key := cmp.Or(o.IdempotencyKey, rand.Text())
	var sent, answered atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Add(1) }, GotFirstResponseByte: func() { answered.Add(1) },
	})
	resp, err := a.Client.Submit(ctx, &req, key)
	if err == nil {
		return resp, nil
	}
	known := sent.Load() == 0 || o.DryRun || client.IsReferred(err) && sent.Load() == answered.Load()
	if _, answered := errors.AsType[*api.Error](err); answered && !client.IsUnavailable(err) {
		known = true
	}
	err = cli.FileError(j.name, err)
	if !known {
		err = fmt.Errorf("%w\nwhether it was submitted is not known. The same command with --idempotency-key %s says so, and submits it if it was not", err, key)
	}
	return nil, err
}

// notSent says which jobs were not tried any more.
func notSent(err error, rest []ready) error {
	var names []string
	for _, j := range rest {
		names = append(names, j.name)
	}
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w\nnot submitted either: %s", err, strings.Join(names, " "))
}
