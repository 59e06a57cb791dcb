package sched

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gbatch/accounting"
)

// In a closed load, where everybody always has jobs waiting, what each uses goes
// to their shares.
func TestUsageConvergesToShares(t *testing.T) {
	c := accounting.DefaultConfig()
	c.Tree = accounting.Tree{
		"vision": {Shares: 2, Users: map[string]int64{"ann": 3, "bob": 1}},
		"speech": {Shares: 1, Users: map[string]int64{"ann": 1, "bob": 1}},
		"robots": {Shares: 1, Users: map[string]int64{"ann": 1, "bob": 1}},
	}
	want := map[string]int64{"vision/ann": 375, "vision/bob": 125, "speech/ann": 125, "speech/bob": 125, "robots/ann": 125, "robots/bob": 125}
	ledger, err := accounting.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	p.Weights = Weights{FairShare: 10_000}
	p.MaxWaitBoost = 0
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := Node{Name: "n", MilliCPU: 64_000, MemMiB: 1 << 20}
	for g := range 8 {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(g), Model: "A100"})
	}
	if err := s.SetNode(n); err != nil {
		t.Fatal(err)
	}
	next, now := JobID(0), Time(0)
	shape := &Shape{MilliGPU: 1000, MilliCPU: 1000}
	feed := func(project, user string) {
		next++
		if err := s.Enqueue(Job{ID: next, Project: project, User: user, Shape: shape, Submitted: now, Limit: Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for _, project := range slices.Sorted(maps.Keys(c.Tree)) {
		for range 8 {
			feed(project, "ann")
			feed(project, "bob")
		}
	}
	drawn := newSharePlot(want)
	for hour := range 600 {
		for _, id := range slices.Sorted(maps.Keys(s.running)) {
			s.End(id)
		}
		plan := Decide(Input{Now: now, State: s, Shares: ledger.Shares(int64(now))})
		for _, st := range plan.Starts {
			j, _ := s.Waiting(st.Job)
			if err := s.Start(Running{Job: j, Ranks: st.Ranks, Start: now}); err != nil {
				t.Fatal(err)
			}
			charge := accounting.Charge{Project: j.Project, User: j.User, MilliGPU: 1000, Start: int64(now), End: int64(now + Hour)}
			if err := ledger.Add(charge); err != nil {
				t.Fatal(err)
			}
			feed(j.Project, j.User)
		}
		now += Hour
		if hour%4 == 3 {
			drawn.add(hour+1, ledger.Rows(int64(now)))
		}
	}
	for name, share := range want {
		if got := drawn.used[name]; got < share-15 || got > share+15 {
			t.Errorf("%s used %d thousandths, its share is %d", name, got, share)
		}
	}
	drawn.compare(t, "../docs/figures/fair-share.svg")
}

// sharePlot draws what part of everything each user has used by when, beside
// what is due to them. It counts in integers, so that equal runs are equal files.
type sharePlot struct {
	names []string         // by share, largest first
	due   map[string]int64 // thousandths
	used  map[string]int64 // thousandths of all so far
	lines map[string]*strings.Builder
}

// The panel of the plot, in tenths of a pixel; the top is half of the machine.
const (
	plotLeft, plotTop, plotWide, plotHigh = 600, 400, 6400, 3000
	plotHours, plotMost                   = 600, 500
)

func newSharePlot(due map[string]int64) *sharePlot {
	p := &sharePlot{names: slices.Sorted(maps.Keys(due)), due: due, used: map[string]int64{}, lines: map[string]*strings.Builder{}}
	slices.SortStableFunc(p.names, func(a, b string) int { return cmp.Compare(due[b], due[a]) })
	for _, name := range p.names {
		p.lines[name] = &strings.Builder{}
	}
	return p
}

func tenths(n int64) string { return fmt.Sprintf("%d.%d", n/10, n%10) }

func (p *sharePlot) y(thousandths int64) int64 {
	return plotTop + plotHigh - min(thousandths, plotMost)*plotHigh/plotMost
}

func (p *sharePlot) add(hour int, rows []accounting.Row) {
	var all int64
	for _, r := range rows {
		all += r.Total.MilliGPU
	}
	for _, r := range rows {
		name := r.Project + "/" + r.User
		p.used[name] = r.Total.MilliGPU * 1000 / all
		fmt.Fprintf(p.lines[name], "%s,%s ", tenths(plotLeft+int64(hour)*plotWide/plotHours), tenths(p.y(p.used[name])))
	}
}

func (p *sharePlot) svg() string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 380" font-family="sans-serif" font-size="12">` + "\n" +
		`<rect width="920" height="380" fill="white"/>` + "\n" +
		`<text x="60" y="24">part of all GPU time so far, by hours of a closed load; dashed: what is due</text>` + "\n")
	for i := range int64(6) {
		y, hour := tenths(p.y(i*100)), i*plotHours/5
		fmt.Fprintf(&b, `<line x1="60" y1="%s" x2="700" y2="%s" stroke="#ddd"/><text x="54" y="%s" text-anchor="end">%d %%</text>`+"\n", y, y, y, i*10)
		fmt.Fprintf(&b, `<text x="%s" y="358" text-anchor="middle">%d h</text>`+"\n", tenths(plotLeft+hour*plotWide/plotHours), hour)
	}
	for i, name := range p.names {
		color := []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"}[i]
		due := tenths(p.y(p.due[name]))
		fmt.Fprintf(&b, `<line x1="60" y1="%s" x2="700" y2="%s" stroke="#888" stroke-dasharray="4 3"/>`+"\n", due, due)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", color, strings.TrimSpace(p.lines[name].String()))
		fmt.Fprintf(&b, `<text x="716" y="%d" fill="%s">%s: %s %%, due %s %%</text>`+"\n", 60+i*20, color, name, tenths(p.used[name]), tenths(p.due[name]))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// compare says whether the figure in the documents is the one that was drawn,
// and with GBATCH_FIGURES set makes it so.
func (p *sharePlot) compare(t *testing.T, file string) {
	t.Helper()
	if os.Getenv("GBATCH_FIGURES") != "" {
		if err := os.WriteFile(file, []byte(p.svg()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != p.svg() {
		t.Errorf("%s is another figure: run this test with GBATCH_FIGURES=1", file)
	}
}

// A user whose jobs have waited for longer than all patience gets no more of the
// machine by it than their share: others who come later get theirs.
func TestOldBacklogGainsNothing(t *testing.T) {
	w := newClosed(t, DefaultPolicy())
	for range 10_000 {
		w.feed(Job{User: "ann"})
	}
	w.now += 22 * Day
	for range 16 {
		w.feed(Job{User: "bob"})
	}
	const hours = 300
	for range hours {
		for _, j := range w.hour() {
			if j.User == "bob" {
				w.feed(Job{User: "bob"})
			}
		}
	}
	if got := w.began["bob"] * 100 / (hours * 8); got < 48 || got > 52 {
		t.Errorf("the user who came later got %d %% of the machine, whose share is half", got)
	}
}

// A job that is always passed goes first once it has waited for long enough,
// whatever the points say, and the next one as soon as its owner's share, here
// half of the machine, has paid for it.
func TestPatienceIsRewarded(t *testing.T) {
	p := DefaultPolicy()
	p.MaxWaitBoost = 2 * Day
	w := newClosed(t, p)
	wide := &Shape{MilliGPU: 8000, MilliCPU: 1000}
	for range 3 {
		w.feed(Job{User: "ann", Shape: wide, Priority: -1_000_000})
	}
	var hours []Time
	for hour := range Time(10 * 24) {
		for len(w.s.waiting) < 19 {
			w.feed(Job{User: "bob"})
		}
		for _, j := range w.hour() {
			if j.User == "ann" {
				hours = append(hours, hour)
			}
		}
	}
	if want := []Time{48, 50, 52}; !slices.Equal(hours, want) {
		t.Errorf("wide jobs began after %v hours, want %v", hours, want)
	}
}

// closed is a machine of 8 GPUs on which every job takes an hour.
type closed struct {
	t      *testing.T
	s      *State
	ledger *accounting.Ledger
	now    Time
	next   JobID
	began  map[string]int // by user
}

func newClosed(t *testing.T, p Policy) *closed {
	ledger, err := accounting.New(accounting.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := Node{Name: "n", MilliCPU: 64_000, MemMiB: 1 << 20}
	for g := range 8 {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(g), Model: "A100"})
	}
	if err := s.SetNode(n); err != nil {
		t.Fatal(err)
	}
	return &closed{t: t, s: s, ledger: ledger, began: map[string]int{}}
}

// feed queues a job, by default of one GPU.
func (w *closed) feed(j Job) {
	w.next++
	j.ID, j.Project, j.Submitted, j.Limit = w.next, "lab", w.now, Hour
	if j.Shape == nil {
		j.Shape = &Shape{MilliGPU: 1000, MilliCPU: 1000}
	}
	if err := w.s.Enqueue(j); err != nil {
		w.t.Fatal(err)
	}
}

// hour ends what runs, starts what may, and lets an hour pass.
func (w *closed) hour() (began []Job) {
	for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
		w.s.End(id)
	}
	in := Input{Now: w.now, State: w.s, Shares: w.ledger.Shares(int64(w.now))}
	for _, st := range Decide(in).Starts {
		j, _ := w.s.Waiting(st.Job)
		if err := w.s.Start(Running{Job: j, Ranks: st.Ranks, Start: w.now}); err != nil {
			w.t.Fatal(err)
		}
		began = append(began, j)
		w.began[j.User]++
		charge := accounting.Charge{Project: j.Project, User: j.User, MilliGPU: j.Shape.MilliGPU, Start: int64(w.now), End: int64(w.now + Hour)}
		if err := w.ledger.Add(charge); err != nil {
			w.t.Fatal(err)
		}
		w.ledger.CountStart(charge, 0)
		w.ledger.Defer(charge, int64(st.Until))
	}
	w.now += Hour
	return began
}
