package accounting

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Charge is what one rank of an attempt holds, from Start until End, in Unix
// milliseconds.
type Charge struct {
	Project, User string
	Model         string // of its GPUs
	Cluster       int    // of its node
	MilliGPU      int64  // thousandths
	MilliCPU      int64
	MemMiB        int64
	Start, End    int64 // End is not looked at by Begin
}

// Amount is resources times milliseconds, or resources held at one time.
type Amount struct {
	MilliGPU int64 `json:"milliGpu"`
	MilliCPU int64 `json:"milliCpu"`
	MemMiB   int64 `json:"memMib"`
	Billed   int64 `json:"billed"` // thousandths of a GPU of weight 1000
}

// Row is the account of one user in one project. It is a plain value that the
// owner may store and give back to Load.
type Row struct {
	Project string           `json:"project"`
	User    string           `json:"user"`
	Total   Amount           `json:"total"`            // x milliseconds until AsOf; never decays
	Models  map[string]int64 `json:"models,omitempty"` // of Total.MilliGPU, by model
	Usage   int64            `json:"usage"`            // Total.Billed with its decay until AsOf
	AsOf    int64            `json:"asOf"`             // Unix milliseconds

	Rate       Amount           `json:"rate"` // what is held since AsOf
	ModelRates map[string]int64 `json:"modelRates,omitempty"`

	Began int64 `json:"began,omitempty"` // when an attempt of theirs began last
	Until int64 `json:"until,omitempty"` // until when their jobs have no more reason to go first for having waited long

	MonthBilled int64   `json:"monthBilled,omitempty"` // of Total.Billed, since AsOf's month began (UTC)
	Open        []Slice `json:"open,omitempty"`        // of AsOf's day
}

func (r Row) clone() Row {
	r.Models, r.ModelRates, r.Open = maps.Clone(r.Models), maps.Clone(r.ModelRates), slices.Clone(r.Open)
	for i := range r.Open {
		r.Open[i].Ended = maps.Clone(r.Open[i].Ended)
	}
	return r
}

// Ledger keeps the rows. Usage counts while a job runs: Begin raises what a row
// is charged per millisecond, End lowers it, and whoever reads a row reads it as
// of a moment. What all of Begin and End come to is, to the millisecond, the sum
// of the charges, in whatever order the two ends of them arrive.
type Ledger struct {
	config Config
	rows   map[key]*Row

	changed map[key]bool // since Changed was called last
	closed  []Day
}

// New makes an empty ledger.
func New(c Config) (*Ledger, error) {
	l := &Ledger{rows: map[key]*Row{}, changed: map[key]bool{}}
	return l, l.SetConfig(c)
}

// SetConfig replaces the configuration as a whole, or not at all. Call Rebase
// after it: what runs is billed by the new weights from then on.
func (l *Ledger) SetConfig(c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("set accounting: %w", err)
	}
	c.Models, c.Tree = maps.Clone(c.Models), maps.Clone(c.Tree)
	l.config = c
	return nil
}

// Load puts stored rows into the ledger in place of those of the same project
// and user.
func (l *Ledger) Load(rows ...Row) error {
	var errs []error
	for _, r := range rows {
		if r.Usage < 0 || r.Total.Billed < 0 || r.Total.MilliGPU < 0 || r.Total.MilliCPU < 0 || r.Total.MemMiB < 0 {
			errs = append(errs, fmt.Errorf("load usage of user %q in project %q: an amount is below 0", r.User, r.Project))
			continue
		}
		r = r.clone()
		l.rows[key{r.Project, r.User}] = &r
	}
	return errors.Join(errs...)
}

// Rate is what a rank costs per millisecond.
func (l *Ledger) Rate(c Charge) Amount { return l.config.Rate(c) }

// Begin charges a rank from its Start on, until End is called for it.
func (l *Ledger) Begin(c Charge) error {
	if err := c.check(); err != nil {
		return err
	}
	r := l.row(c)
	l.advance(r, c.Start)
	l.correct(r, c, c.Start, +1)
	r.hold(l.Rate(c), c, +1)
	return nil
}

// End stops the charge of a rank. It must name what Begin named.
func (l *Ledger) End(c Charge) error {
	if err := c.check(); err != nil {
		return err
	}
	r := l.row(c)
	end := max(c.End, c.Start)
	l.advance(r, end)
	l.correct(r, c, end, -1)
	r.hold(l.Rate(c), c, -1)
	return nil
}

// Add charges a rank that has come and gone: Begin and End in one.
func (l *Ledger) Add(c Charge) error {
	if err := l.Begin(c); err != nil {
		return err
	}
	return l.End(c)
}

// Defer says until when the user's jobs in the project do not go first any more
// for having waited long. It never moves back.
func (l *Ledger) Defer(c Charge, until int64) {
	r := l.row(c)
	r.Until = max(r.Until, until)
}

func (c Charge) check() error {
	if c.MilliGPU < 0 || c.MilliCPU < 0 || c.MemMiB < 0 || max(c.MilliGPU, c.MilliCPU, c.MemMiB) > 1<<40 {
		return fmt.Errorf("charge user %q in project %q: an amount is below 0 or too large: %+v", c.User, c.Project, c)
	}
	return nil
}

func (l *Ledger) row(c Charge) *Row {
	k := key{c.Project, c.User}
	r := l.rows[k]
	if r == nil {
		r = &Row{Project: c.Project, User: c.User, AsOf: cmp.Or(c.Start, c.End)}
		l.rows[k] = r
	}
	l.changed[k] = true
	return r
}

// advance brings a row to a later moment. It never goes back: a clock that does
// is answered by correct.
func (l *Ledger) advance(r *Row, now int64) {
	span := now - r.AsOf
	if span <= 0 {
		return
	}
	l.changed[key{r.Project, r.User}] = true
	l.closed = append(l.closed, r.daysTo(now)...)
	l.sums(r, now)
}

// sums brings a row's sums, which know no days, to a later moment.
func (l *Ledger) sums(r *Row, now int64) {
	span := now - r.AsOf
	if span <= 0 {
		return
	}
	r.monthTo(now)
	r.AsOf = now
	r.Usage = plus(int64(scaled(uint64(r.Usage), remaining(span, l.config.HalfLifeMS))), accrued(r.Rate.Billed, span, l.config.HalfLifeMS))
	r.Total.add(r.Rate, span)
	for m, rate := range r.ModelRates { // each by itself: order does not matter
		r.addModel(m, times(rate, span))
	}
}

// correct makes up for what happened before the row's AsOf.
func (l *Ledger) correct(r *Row, c Charge, at int64, sign int64) {
	span := r.AsOf - at
	if span <= 0 {
		return
	}
	rate := l.Rate(c)
	r.Usage = max(plus(r.Usage, sign*accrued(rate.Billed, span, l.config.HalfLifeMS)), 0)
	r.Total.add(rate, sign*span)
	r.MonthBilled = max(plus(r.MonthBilled, sign*times(rate.Billed, span)), 0)
	r.slice(c).Used.add(rate, sign*span) // in the day that is open: the others are told
	r.addModel(c.Model, sign*times(rate.MilliGPU, span))
}

func (a *Amount) add(rate Amount, span int64) {
	sign := int64(1)
	if span < 0 {
		sign, span = -1, -span
	}
	a.MilliGPU = plus(a.MilliGPU, sign*times(rate.MilliGPU, span))
	a.MilliCPU = plus(a.MilliCPU, sign*times(rate.MilliCPU, span))
	a.MemMiB = plus(a.MemMiB, sign*times(rate.MemMiB, span))
	a.Billed = plus(a.Billed, sign*times(rate.Billed, span))
}

func (r *Row) addModel(model string, amount int64) {
	if amount == 0 {
		return
	}
	if r.Models == nil {
		r.Models = map[string]int64{}
	}
	r.Models[model] = plus(r.Models[model], amount)
}

// hold changes what the row is charged from AsOf on. Rates do not go below 0:
// an End without its Begin cannot make time run backwards.
func (r *Row) hold(rate Amount, c Charge, sign int64) {
	r.Rate.hold(rate, sign)
	r.slice(c).Rate.hold(rate, sign)
	if c.MilliGPU == 0 {
		return
	}
	if r.ModelRates == nil {
		r.ModelRates = map[string]int64{}
	}
	r.ModelRates[c.Model] += sign * c.MilliGPU
	if r.ModelRates[c.Model] <= 0 {
		delete(r.ModelRates, c.Model)
	}
}

func (a *Amount) hold(rate Amount, sign int64) {
	a.MilliGPU = max(a.MilliGPU+sign*rate.MilliGPU, 0)
	a.MilliCPU = max(a.MilliCPU+sign*rate.MilliCPU, 0)
	a.MemMiB = max(a.MemMiB+sign*rate.MemMiB, 0)
	a.Billed = max(a.Billed+sign*rate.Billed, 0)
}

// Over is what holding a rate for some milliseconds comes to.
func (a Amount) Over(span int64) (out Amount) {
	out.add(a, max(span, 0))
	return out
}

// Plus is the sum of two amounts.
func (a Amount) Plus(b Amount) Amount {
	a.add(b, 1)
	return a
}

// Rebase sets what all rows are charged from now on to what is running, after
// the weights changed or rows were loaded that may not agree with it. Rows that
// agree are not touched.
func (l *Ledger) Rebase(now int64, running []Charge) error {
	want, err := l.rates(running)
	if err != nil {
		return err
	}
	for _, c := range running {
		if l.rows[key{c.Project, c.User}] == nil {
			l.row(c)
		}
	}
	var due []*Row
	for k, r := range l.rows { // sorted below
		if !r.holdsAs(want[k]) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, byOwner)
	for _, r := range due {
		k := key{r.Project, r.User}
		l.changed[k] = true
		l.advance(r, now)
		for i := range r.Open {
			r.Open[i].Rate = Amount{}
		}
		r.Rate, r.ModelRates = Amount{}, nil
		if w := want[k]; w != nil {
			r.Rate, r.ModelRates = w.Rate, w.ModelRates
			for _, s := range w.Open {
				r.slice(Charge{Model: s.Model, Cluster: s.Cluster}).Rate = s.Rate
			}
		}
	}
	return nil
}

// Check verifies that the rows are charged for what is running, and for nothing
// else.
func (l *Ledger) Check(running []Charge) error {
	want, err := l.rates(running)
	if err != nil {
		return err
	}
	for k := range want { // any of them: order does not matter
		if l.rows[k] == nil {
			return fmt.Errorf("user %q in project %q has no account", k.user, k.project)
		}
	}
	for k, r := range l.rows { // any of them: order does not matter
		if !r.holdsAs(want[k]) {
			return fmt.Errorf("user %q in project %q is charged %+v, and not for what runs", k.user, k.project, r.Rate)
		}
	}
	return nil
}

// rates is rows that are charged for what is running.
func (l *Ledger) rates(running []Charge) (map[key]*Row, error) {
	out := map[key]*Row{}
	for _, c := range running {
		if err := c.check(); err != nil {
			return nil, err
		}
		k := key{c.Project, c.User}
		if out[k] == nil {
			out[k] = &Row{}
		}
		out[k].hold(l.Rate(c), c, +1)
	}
	return out, nil
}

// holdsAs says whether two rows hold the same in the same places; nil holds nothing.
func (r *Row) holdsAs(o *Row) bool {
	if o == nil {
		o = &Row{}
	}
	held := func(list []Slice) []Slice {
		return slices.DeleteFunc(slices.Clone(list), func(s Slice) bool { return s.Rate == Amount{} })
	}
	return r.Rate == o.Rate && maps.Equal(r.ModelRates, o.ModelRates) &&
		slices.EqualFunc(held(r.Open), held(o.Open), func(a, b Slice) bool { return bySlice(a, b) == 0 && a.Rate == b.Rate })
}

// Copy is the ledger as it is now, for readers: nothing that is done to the one
// changes the other.
func (l *Ledger) Copy() *Ledger {
	out := &Ledger{config: l.config, rows: make(map[key]*Row, len(l.rows)), changed: map[key]bool{}}
	for k, r := range l.rows {
		c := r.clone()
		out.rows[k] = &c
	}
	return out
}

// Rows is all rows as of now, by project and user.
func (l *Ledger) Rows(now int64) []Row {
	out := make([]Row, 0, len(l.rows))
	for _, r := range l.rows {
		c := r.clone()
		c.daysTo(now)
		l.sums(&c, now)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Row) int { return byOwner(&a, &b) })
	return out
}
