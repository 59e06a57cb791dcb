package usage

import (
	"fmt"
	"math"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// tooShort is a run, in seconds, that says nothing of what the job needs.
const tooShort = 60

// Advise has u say what j could have asked for instead, in at most two sentences, what
// costs most first. It is what `gacct eff` and the web page show.
func Advise(j *state.Job, u *api.Used) {
	switch {
	case u == nil || u.NodesKnown == 0 || u.Cores == 0:
		return
	case u.ElapsedS < tooShort:
		u.Advice = []string{fmt.Sprintf("it ran for %d s: too short for advice", u.ElapsedS)}
		return
	}
	a := advice{used: u, ranks: len(j.Last().Ranks)}
	a.gpus()
	a.cores()
	a.memory()
	if limit := int64(j.LimitNow() / 1000); j.State == job.Finished && limit > 600 && u.ElapsedS < limit/2 {
		minutes := int64(float64(u.ElapsedS)*1.3/60+0.5) + 1
		a.add("it took %.0f%% of its time limit: -t %d:%02d:00 lets it start sooner", 100*float64(u.ElapsedS)/float64(limit), minutes/60, minutes%60)
	}
	u.Advice = a.list[:min(len(a.list), 2)]
}

// advice is what is said of one job.
type advice struct {
	used  *api.Used
	ranks int
	list  []string
}

func (a *advice) add(format string, args ...any) {
	a.list = append(a.list, fmt.Sprintf(format, args...))
}

func (a *advice) gpus() {
	if g := a.used.GPU; g != nil && g.Samples > 0 && !g.Simulated && g.Utilization < 30 {
		a.add("its GPUs were busy %.0f%% of the time: ask for fewer or for a share (--gpus 0.5), or feed them faster", g.Utilization)
	}
}

func (a *advice) cores() {
	each := a.used.Cores / a.ranks
	busy := a.used.CPUTimeS / float64(a.used.ElapsedS) / float64(a.ranks)
	if want := max(int(math.Ceil(busy*1.25)), 1); each > 1 && busy < float64(each)/2 && want < each {
		a.add("%.1f of its %d cores were busy: --cpus %d would do", busy, each, want)
	}
}

func (a *advice) memory() {
	peak, mem := a.used.PeakMem, a.used.MemBytes
	const gib = 1 << 30
	switch want := int64(math.Ceil(float64(peak) * 1.2 / gib)); {
	case peak <= 0 || mem <= 0:
	case peak > mem/10*9:
		a.add("it came within %.0f%% of its memory: --mem %dG is safer", max(100-100*float64(peak)/float64(mem), 0), want)
	case peak < mem/2 && want < mem/gib:
		a.add("it used %s of %s at most: --mem %dG would do", size(peak), size(mem), want)
	}
}

// size is as --mem takes it.
func size(n int64) string {
	value, unit := float64(n)/(1<<20), "M"
	if value >= 1024 {
		value, unit = value/1024, "G"
	}
	return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64) + unit
}
