// Package checks looks at the machine now and then, by checks of its own and by
// programs of the site's, and says why it is not fit for jobs. A machine that was
// not fit is fit again when all checks and then all programs have passed, also if
// the daemon was killed in between.
//
// Whoever asks decides what follows. GPUs are looked at elsewhere: one that is unfit
// is taken out by itself; here counts only that the programs run again when it is
// back.
package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/noded/config"
	"gbatch/oci/atomicfile"
)

// Options are what a Watch needs of the node.
type Options struct {
	Config  *config.Config
	Machine Machine
	File    string // where it is kept that the machine is not fit
	Boot    string // of the machine: after another one the programs run first
	// Run runs a program of the site's. The error says what it found.
	Run func(context.Context, config.Program) error
	// GPUs are those that are not fit now, by UUID.
	GPUs    func() []string
	Changed func() // what Reasons says is another thing
	Log     *slog.Logger
}

// Watch is the eye on one machine.
type Watch struct {
	Options
	ask *asker

	// Of Run only.
	ran    time.Time // when the programs began last
	before []string  // GPUs that were not fit

	mu     sync.Mutex
	found  []Finding // at the last look
	stored []Storage // likewise
	saw    bool      // there was a look
	kept   kept
}

// kept is what outlives the daemon.
type kept struct {
	Boot string `json:"boot"`
	// Out is why the machine is not fit, or was before it has proven itself again,
	// the first of each check; empty: it is fit.
	Out []Finding `json:"out,omitempty"`
}

// lookEvery is how often the machine is looked at, and retry how soon programs that
// did not pass run again at the latest.
const (
	lookEvery = 15 * time.Second
	retry     = time.Minute
)

// Open reads what an earlier daemon found.
func Open(o Options) (*Watch, error) {
	w := &Watch{Options: o, ask: newAsker(o.Machine.Ask, time.Duration(o.Config.Health.Answer))}
	b, err := atomicfile.Read(o.File)
	if err == nil {
		err = json.Unmarshal(b, &w.kept)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		o.Log.Warn("whether the machine was fit is not known", "error", err)
		w.kept = kept{Boot: o.Boot, Out: []Finding{{config.CheckProgram, "what an earlier daemon found cannot be read"}}}
	}
	if w.kept.Boot != o.Boot && len(w.kept.Out) == 0 && len(o.Config.Health.Programs) > 0 {
		w.kept.Out = []Finding{{config.CheckProgram, "the machine was booted"}}
	}
	return w, nil
}

// Reasons are why the machine is not fit, sorted; none: it is.
func (w *Watch) Reasons() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.found) == 0 && len(w.kept.Out) > 0 {
		return []string{"to be proven fit again, after: " + strings.Join(texts(w.kept.Out), "; ")}
	}
	var list []string
	for _, f := range w.found {
		list = append(list, f.Text)
	}
	slices.Sort(list)
	return list
}

// Passed says that this daemon has made all checks, and that all have passed.
func (w *Watch) Passed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saw && len(w.found) == 0 && len(w.kept.Out) == 0
}

// Failing are the checks that found something at the last look, by name.
func (w *Watch) Failing() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]bool{}
	for _, f := range w.found {
		out[f.Check] = true
	}
	return out
}

// Watch looks until ctx ends.
func (w *Watch) Watch(ctx context.Context) {
	for {
		w.look(ctx)
		if client.Sleep(ctx, min(lookEvery, time.Duration(w.Config.Health.Every))) != nil {
			return
		}
	}
}

// look makes all checks once, and runs the programs if all pass and they are due.
func (w *Watch) look(ctx context.Context) {
	found := w.find(ctx)
	if ctx.Err() != nil {
		return
	}
	failed := w.programs()
	w.note(slices.Concat(found, failed), w.gpuCameBack())
	if len(found) > 0 || !w.due(len(failed) > 0) {
		return
	}
	if failed = w.runAll(ctx); ctx.Err() != nil {
		return
	}
	// What let them run must still be so.
	found = append(failed, w.find(ctx)...)
	switch {
	case ctx.Err() != nil:
	case len(found) > 0:
		w.note(found, nil)
	default:
		w.pass()
	}
}

// find looks at the storage, which is told whatever is checked, and makes all checks.
func (w *Watch) find(ctx context.Context) []Finding {
	stored := w.ask.storage(ctx, w.Config)
	if ctx.Err() == nil {
		w.mu.Lock()
		changed := !slices.Equal(away(stored), away(w.stored))
		w.stored = stored
		w.mu.Unlock()
		if changed {
			w.Log.Warn("what jobs can mount here has changed", "away", away(stored))
			w.Changed()
		}
	}
	return w.Machine.find(ctx, w.Config, w.ask, stored)
}

// Stored is what was found of the storage that jobs can mount, by the order of the
// configuration. Before the first look all of it is taken to be there.
func (w *Watch) Stored() []Storage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stored == nil {
		for _, r := range w.Config.Storage {
			w.stored = append(w.stored, Storage{Name: r.Name})
		}
	}
	return slices.Clone(w.stored)
}

// due says whether the programs shall run now: a machine that is out waits for them,
// but not for such as have just failed.
func (w *Watch) due(failed bool) bool {
	every := time.Duration(w.Config.Health.Every)
	switch {
	case w.isOut() && !failed:
		return true
	case w.isOut():
		every = min(every, retry)
	case len(w.Config.Health.Programs) == 0:
		return false
	}
	return time.Since(w.ran) >= every
}

// gpuCameBack finds that a GPU was not fit at the look before and is now: the
// programs shall see it before jobs do.
func (w *Watch) gpuCameBack() []Finding {
	now := w.GPUs()
	i := slices.IndexFunc(w.before, func(id string) bool { return !slices.Contains(now, id) })
	var list []Finding
	if i >= 0 && len(w.Config.Health.Programs) > 0 {
		list = []Finding{{"gpu", fmt.Sprintf("GPU %s was not fit", w.before[i])}}
	}
	w.before = now
	return list
}

// runAll runs the site's programs, one after the other.
func (w *Watch) runAll(ctx context.Context) (failed []Finding) {
	w.ran = time.Now()
	for _, p := range w.Config.Health.Programs {
		if err := w.Run(ctx, p); err != nil {
			failed = append(failed, Finding{config.CheckProgram, fmt.Sprintf("health program %s: %v", p.Path, err)})
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// programs are the findings of the programs when they ran last.
func (w *Watch) programs() (list []Finding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.found {
		if f.Check == config.CheckProgram {
			list = append(list, f)
		}
	}
	return list
}

func (w *Watch) isOut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.kept.Out) > 0
}

// note takes in what is so now, and what has passed and has yet to be proven. Either
// takes the machine out, which is on disk before it is told.
func (w *Watch) note(found, past []Finding) {
	w.mu.Lock()
	out := slices.Clone(w.kept.Out)
	for _, f := range slices.Concat(found, past) {
		if !slices.ContainsFunc(out, func(had Finding) bool { return had.Check == f.Check }) {
			out = append(out, f)
		}
	}
	changed := len(out) != len(w.kept.Out) || !slices.Equal(found, w.found)
	if len(out) != len(w.kept.Out) {
		w.Log.Error("the machine is not fit for jobs", "reasons", texts(out))
		w.save(kept{w.Boot, out})
	}
	w.found = found
	first := !w.saw
	w.saw = true
	w.mu.Unlock()
	if changed || first {
		w.Changed()
	}
}

// pass puts the machine back.
func (w *Watch) pass() {
	w.mu.Lock()
	changed := len(w.found) > 0 || len(w.kept.Out) > 0
	if changed {
		w.Log.Info("the machine is fit for jobs again", "was", texts(w.kept.Out))
	}
	if changed || w.kept.Boot != w.Boot {
		w.save(kept{Boot: w.Boot})
	}
	w.found = nil
	w.mu.Unlock()
	if changed {
		w.Changed()
	}
}

// save is called with mu held.
func (w *Watch) save(k kept) {
	w.kept = k
	b, err := json.Marshal(k)
	if err == nil {
		err = atomicfile.WriteDurable(w.File, atomicfile.Sum(b))
	}
	if err != nil {
		w.Log.Error("a restart of the daemon could forget that the machine is not fit", "error", err)
	}
}

func texts(found []Finding) (list []string) {
	for _, f := range found {
		list = append(list, f.Text)
	}
	return list
}
