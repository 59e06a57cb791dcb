// Package pace keeps work that is not urgent, such as reading through all that is stored, at a rate.
package pace

import (
	"context"
	"time"
)

// Pace is of one piece of work. New makes it.
type Pace struct {
	ctx       context.Context
	wait      func(context.Context, time.Duration) error
	perSecond int64
	owed      int64
}

// New is a pace of so many bytes in a second, until ctx is done. wait waits, or says why not.
func New(ctx context.Context, perSecond int64, wait func(context.Context, time.Duration) error) *Pace {
	return &Pace{ctx: ctx, wait: wait, perSecond: perSecond}
}

// Read is told how many bytes were read, and waits when it is time to.
func (p *Pace) Read(bytes int64) error {
	if p.owed += bytes; p.owed < p.perSecond/8 {
		return p.ctx.Err()
	}
	pause := time.Duration(float64(p.owed) / float64(p.perSecond) * float64(time.Second))
	p.owed = 0
	return p.wait(p.ctx, pause)
}
