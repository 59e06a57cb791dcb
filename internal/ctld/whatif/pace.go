package whatif

import (
	"context"
	"time"
)

// pace keeps an answer in its time: what was done once may take as long again, and to add
// up what was seen takes no longer than the longest of it.
type pace struct {
	ctx  context.Context
	now  func() time.Time
	end  time.Time // by when the answer is to be there
	look time.Time // until when is looked ahead; zero: that has not begun

	last    time.Time // when it was asked
	longest time.Duration
}

// part is asked before each part of the work that comes before looking ahead.
func (p *pace) part() error {
	if !p.room() {
		return errSlow
	}
	return nil
}

// more is asked before each step of looking ahead.
func (p *pace) more() bool {
	in := p.room()
	if p.look.IsZero() {
		p.look = p.last.Add(looking)
	}
	return in && p.last.Before(p.look)
}

func (p *pace) room() bool {
	now := p.now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
	return p.ctx.Err() == nil && now.Add(p.longest).Before(p.end)
}
