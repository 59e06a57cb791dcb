package client

import (
	"context"
	"iter"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// HistoryFilter selects jobs that have ended; what is empty selects all.
type HistoryFilter struct {
	Users    []string
	Projects []string
	Names    []string
	States   []string
	Reasons  []string
	Array    job.Number // tasks of this array
	Start    time.Time  // ended at it or later
	End      time.Time  // ended before it
	Newest   bool       // the last to end first
	Limit    int        // of a page; 0: what the controller gives at most
	After    string     // the page after this one
	Attempts bool       // with all their attempts; for operators
	Steps    bool       // with what srun started in them
}

// History is one page of jobs that have ended.
func (c *Client) History(ctx context.Context, f HistoryFilter) (*api.History, error) {
	q := query{"user": f.Users, "project": f.Projects, "name": f.Names, "state": f.States, "reason": f.Reasons}
	q.number("array", int64(f.Array)).moment("start", f.Start).moment("end", f.End).flag("newest", f.Newest)
	q.flag("attempts", f.Attempts).flag("steps", f.Steps).number("limit", int64(max(f.Limit, 0))).text("after", f.After)
	return get[api.History](ctx, c, api.PathHistory, q)
}

// Past is all jobs of a selection, read page by page; Limit bounds them together.
func (c *Client) Past(ctx context.Context, f HistoryFilter) iter.Seq2[*api.PastJob, error] {
	return func(yield func(*api.PastJob, error) bool) {
		most, n := f.Limit, 0
		for {
			h, err := c.History(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range h.Jobs {
				if !yield(&h.Jobs[i], nil) {
					return
				}
			}
			n, f.After, f.Limit = n+len(h.Jobs), h.Next, most-n-len(h.Jobs)
			if h.Next == "" || most > 0 && n >= most {
				return
			}
		}
	}
}

// UsageFilter selects what a report of usage counts and how it is divided.
type UsageFilter struct {
	By         []string
	Users      []string
	Projects   []string
	Start, End time.Time
}

// Usage is a report of what was used.
func (c *Client) Usage(ctx context.Context, f UsageFilter) (*api.UsageReport, error) {
	q := query{"by": {strings.Join(f.By, ",")}, "user": f.Users, "project": f.Projects}
	q.moment("start", f.Start).moment("end", f.End)
	return get[api.UsageReport](ctx, c, api.PathUsage, q)
}

// Shares is the share tree, as far as the caller may see it.
func (c *Client) Shares(ctx context.Context) (*api.ShareList, error) {
	return get[api.ShareList](ctx, c, api.PathShares, nil)
}
