// Package logs is glog: a job's log, byte by byte as its program wrote it, or
// those of all ranks line by line.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/named"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
	"gbatch/internal/units"
)

// Log is glog and its flags.
type Log struct {
	ID     string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID, or name."`
	Follow bool   `short:"f" help:"Go on until the job has ended."`
	Since  string `placeholder:"TIME" help:"Only what was written then or later: 2026-03-01T18:00, 10m or 2h ago, today."`
	Tail   int64  `short:"n" placeholder:"LINES" help:"Begin with the last so many lines."`
	Rank   int    `xor:"rank" help:"Rank of a job on several nodes, from 0."`
	Try    try    `placeholder:"N" help:"What try N wrote, from 1, of a job that was tried again; with -f, and all that follow. Default: the last."`
	Grep   string `placeholder:"REGEXP" help:"Only lines that match, as 'loss.*nan'; (?i) at its beginning takes any case."`
	All    bool   `short:"a" xor:"rank" help:"All ranks, each line behind the number of its rank."`

	pattern *regexp.Regexp // of Grep; nil: every line
}

// try is which of a job's tries; 0: the last.
type try uint32

// UnmarshalText reads what people count from 1.
func (t *try) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil || n == 0 {
		return fmt.Errorf("%q: want the number of a try, from 1, as `gqueue show` counts them", text)
	}
	*t = try(n)
	return nil
}

// Run prints a job's log as it is. With Follow it goes on until the job has
// ended, over restarts of the controller and over tries of the job.
func (o *Log) Run(ctx context.Context, a *cli.App) error {
	if o.Tail < 0 {
		return exit.Usagef("--tail is %d: want 0 or more", o.Tail)
	}
	options := client.LogOptions{Tail: o.Tail, Rank: o.Rank, Try: uint32(o.Try), Follow: o.Follow}
	if o.Since != "" {
		var err error
		if options.Since, err = units.ParsePast(o.Since, a.Now(), time.Local); err != nil {
			return exit.Usagef("--since: %w", err)
		}
	}
	if o.Grep != "" {
		var err error
		if o.pattern, err = regexp.Compile(o.Grep); err != nil {
			return exit.Usagef("--grep: %w", err)
		}
	}
	var err error
	if o.ID, err = named.ID(ctx, a, o.ID); err != nil {
		return err
	}
	printed := &counter{out: a.Out}
	chosen := &filter{out: printed, pattern: o.pattern}
	if o.All { // each rank's lines are chosen before they are prefixed
		chosen.pattern = nil
	}
	read := &counter{out: chosen}
	b := *a
	b.Out = read
	if err := errors.Join(o.print(ctx, &b, options), chosen.end()); err != nil {
		return err
	}
	o.sayNothing(ctx, a, printed.n, read.n)
	return nil
}

func (o *Log) print(ctx context.Context, a *cli.App, options client.LogOptions) error {
	switch {
	case o.Tail > 0 && o.Since != "":
		return exit.Usagef("name either --tail or --since, not both")
	case o.All:
		return o.all(ctx, a, options)
	case !o.Follow:
		return printLog(ctx, a, o.ID, options)
	}
	d, err := watch.Job(ctx, a, o.ID, follow.HasLog)
	if err == nil {
		t := &follow.Tail{App: a, ID: o.ID, Options: options}
		if o.Try == 0 {
			t.Options.Try = follow.LastTry(d)
		}
		err = t.Run(ctx)
	}
	if err != nil {
		return follow.Interrupted(a, err, o.ID, d)
	}
	return nil
}

// printLog prints what there is now.
func printLog(ctx context.Context, a *cli.App, id string, o client.LogOptions) error {
	log, err := a.Client.Log(ctx, id, o)
	if err != nil {
		return err
	}
	defer log.Close()
	new(follow.Copied).Say(a, log)
	_, err = io.Copy(a.Out, log)
	return err
}
