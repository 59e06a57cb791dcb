package job

import (
	"fmt"
	"strings"

	"gbatch/internal/document"
)

// checkSpec checks what spans several parts of the document.
func (d *decoder) checkSpec(n *node, s *Spec) {
	g := s.Gbatch
	if g == nil {
		g = &Gbatch{}
	}
	d.checkGiven(n, g)
	if s.Gbatch == nil {
		return
	}
	gn := n.Child("gbatch")
	d.checkNetwork(gn, s)
	if s.Gbatch.Privileged && len(s.Gbatch.Capabilities) > 0 {
		d.ProblemAt(gn, "capabilities", "cannot be combined with \"privileged\", which has all of them", "remove one of them")
	}
	d.checkRuntime(gn, s)
	d.checkPrograms(gn, s)
	d.checkWarning(gn, s)
	d.checkHalt(gn, s)
	d.checkShm(gn, s)
	d.checkGang(gn, g)
	d.checkGroups(gn, s)
	d.checkRanks(gn, g)
	d.checkShared(gn, s)
	d.checkWhen(gn, s)
	d.checkReuse(gn, s)
	d.checkData(gn, s)
}

// checkGiven looks for what may be left out only if the site has a table for it.
func (d *decoder) checkGiven(n *node, g *Gbatch) {
	request := n.Child("request")
	if request == nil {
		return
	}
	need := func(object string, keys ...string) {
		on := request.Child(object)
		if on == nil || on.Kind != document.ObjectKind {
			return
		}
		for _, key := range keys {
			if kid := on.Child(key); kid == nil {
				d.Missing(on, key, "")
			} else if kid.Kind == document.NullKind {
				d.Problem(kid, "is required and must not be null", "")
			}
		}
	}
	if g.InstanceType == "" {
		need("resources", "gpus", "cpus", "cpuMemoryGb")
	}
	if g.ImageAlias == "" {
		need("docker", "image")
	} else if docker := request.Child("docker"); docker != nil && docker.Given("image") != nil {
		d.ProblemAt(n.Child("gbatch"), "imageAlias", "cannot be combined with request.docker.image", "keep one of them")
	}
}

func (d *decoder) checkShm(gn *node, s *Spec) {
	g := s.Gbatch
	if wrong := s.ShmProblem(); wrong != "" {
		d.ProblemAt(gn, "shmSizeMb", wrong, "raise request.resources.cpuMemoryGb")
	}
	for i, m := range s.Request.Docker.Storage {
		if g.ShmSizeMB > 0 && m.ContainerPath == shmPath {
			d.ProblemAt(gn, "shmSizeMb", fmt.Sprintf("sets the size of /dev/shm, as request.docker.storage[%d] does", i), "keep one of them")
		}
	}
}

// ShmProblem says what is wrong with the size of a job's shared memory, once its
// memory is known; empty: nothing.
func (s *Spec) ShmProblem() string {
	memory := s.Request.Resources.CPUMemoryGB * 1024
	if s.Gbatch == nil || memory <= 0 || s.Gbatch.ShmSizeMB <= memory {
		return ""
	}
	return fmt.Sprintf("must be at most the job's memory, %d, is %d", memory, s.Gbatch.ShmSizeMB)
}

func (d *decoder) checkGang(gn *node, g *Gbatch) {
	if g.Launch != nil && g.StartOrder != "" {
		d.ProblemAt(gn, "startOrder", "cannot be combined with \"launch\": the command runs on the first rank alone", "remove one of them")
	}
	if g.StopRanks > 0 && (g.StopWhen != MasterDone || g.StopRanks >= g.ranks()) {
		d.ProblemAt(gn, "stopRanks", fmt.Sprintf("is how many of the first ranks end the others by \"stopWhen\": \"master-done\", and the job has %d ranks", g.ranks()), "give both, and fewer than all ranks, or remove it")
	}
	for key, word := range map[string]string{"startOrder": g.StartOrder, "stopWhen": g.StopWhen} {
		if word != "" && g.ranks() < 2 {
			d.ProblemAt(gn, key, "is about a job on several nodes, and this one has one", "set \"nodes\", or remove it")
		}
	}
}

// checkWhen looks at what says when a job runs and how often.
func (d *decoder) checkWhen(gn *node, s *Spec) {
	g, sc := s.Gbatch, s.Request.Scheduling
	cron, depends := len(g.Cron) > 0, len(g.Dependencies) > 0
	const atOnce = "cannot be combined with \"interactive\": an interactive job starts at once or fails"
	const remove = "remove one of them"
	for _, c := range []struct {
		wrong              bool
		key, message, hint string
	}{
		{g.MaxQueued > 0 && sc.Interactive, "maxQueued", atOnce, remove},
		{depends && sc.Interactive, "dependencies", atOnce, remove},
		{g.Tasks != nil && sc.Interactive, "tasks", "cannot be combined with \"interactive\"", remove},
		{g.LimitScope != "" && sc.MaxDuration == 0, "limitScope", "says what request.scheduling.maxDuration is counted over, which is not given", "give it, or remove limitScope"},
		{g.LimitMin > 0 && sc.MaxDuration > 0 && g.LimitMin > sc.MaxDuration, "limitMin", "is longer than request.scheduling.maxDuration", "make it shorter, or remove it"},
		{g.LimitMin > 0 && g.LimitScope == LimitJob, "limitMin", "cannot be combined with \"limitScope\": \"job\", which counts waits and all tasks", remove},
		{g.Tasks != nil && g.LimitScope != LimitJob && len(s.Warnings()) > 0, "notify", "asks to be told how much of the time limit is used, and each task has its own: of an array people are told as of a whole", "add \"limitScope\": \"job\" if the limit is the whole array's, or let each task be sent a signal by warnBefore"},
		{g.DependOnAny && len(g.Dependencies) < 2, "dependOnAny", "needs two or more dependencies", "remove it"},
		{g.Replace && (g.DependOnAny || sc.Interactive), "replace", "waits for the jobs that it replaces, and cannot be combined with \"dependOnAny\" and \"interactive\"", remove},
		{g.CronOverlap && (!cron || g.Replace), "cronOverlap", "says that jobs of \"cron\" may run at the same time, and needs that, without \"replace\"", "remove cronOverlap or replace, or give cron"},
		{!cron && g.CronZone != "", "cronZone", "says by whose clock \"cron\" goes, which is not given", "give it, or remove cronZone"},
		{cron && sc.Interactive, "cron", "cannot be combined with \"interactive\"", remove},
		{cron && depends, "cron", "cannot be combined with \"dependencies\": its jobs are made at their times, whatever others do", remove},
		{cron && (sc.NotBefore != 0 || sc.NotAfter != 0), "cron", "cannot be combined with notBefore and notAfter: it says itself when jobs are made", remove},
	} {
		if c.wrong {
			d.ProblemAt(gn, c.key, c.message, c.hint)
		}
	}
}

// under says whether a path is another or below it.
func under(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// checkData looks at what data and secrets need of each other.
func (d *decoder) checkData(gn *node, s *Spec) {
	d.checkFiles(gn, s)
	d.checkVariables(gn, s)
	g := s.Gbatch
	if g.RequireProgress && g.ProgressFile == "" {
		d.ProblemAt(gn, "requireProgress", "needs the \"progressFile\" that it is about", "")
	}
	mounted := map[string]int{}
	for i, m := range s.Request.Docker.Storage {
		mounted[m.ContainerPath] = i
		if m.HostPath != TmpfsHostPath && !m.OfMemory {
			continue
		}
		for k, out := range g.Outputs {
			if under(out.Path, m.ContainerPath) {
				d.ProblemAt(gn, "outputs", fmt.Sprintf("[%d] is on what is in memory at %s, which is gone when the program has ended", k, document.Quote(m.ContainerPath)), "write it to a path outside of it")
			}
		}
	}
	for i, in := range g.Inputs {
		if k, ok := mounted[in.Path]; ok && in.Path != "" {
			d.ProblemAt(gn, "inputs", fmt.Sprintf("[%d] has the path of request.docker.storage[%d], %s", i, k, document.Quote(in.Path)), "give it a path of its own, below the mount for example")
		}
	}
}

// checkVariables tells of variables that no program sees, as a secret has their name.
func (d *decoder) checkVariables(gn *node, s *Spec) {
	for _, secret := range s.Gbatch.Secrets {
		if _, ok := s.Request.Docker.Environment[secret.Name]; ok {
			d.Note(gn.Child("secrets"), fmt.Sprintf("name %s, as request.docker.environment does: the program gets the secret", document.Quote(secret.Name)))
		}
	}
}

// warnSignals are those that a program can be told something by.
var warnSignals = []string{"USR1", "USR2", "HUP", "INT", "TERM"}

// checkWarning finds warnings that would never be sent, and gives a warning
// without a signal its own.
func (d *decoder) checkWarning(gn *node, s *Spec) {
	g := s.Gbatch
	limit := s.Request.Scheduling.MaxDuration
	switch {
	case g.WarnBefore == 0 && g.WarnSignal != "":
		d.ProblemAt(gn, "warnSignal", "is never sent without \"warnBefore\"", "say how long before the time limit, as \"5 minutes\"")
	case g.WarnBefore > 0 && limit > 0 && g.WarnBefore >= limit:
		d.ProblemAt(gn, "warnBefore", fmt.Sprintf("must be less than request.scheduling.maxDuration, %s, is %s", limit, g.WarnBefore), "")
	case g.WarnBefore > 0 && g.WarnSignal == "":
		g.WarnSignal = warnSignals[0]
	}
}

// maxHaltGrace bounds how long others wait for a job that makes room for them.
const maxHaltGrace Duration = 3600

func (d *decoder) checkHalt(gn *node, s *Spec) {
	g := s.Gbatch
	if g.HaltGrace > maxHaltGrace {
		d.ProblemAt(gn, "haltGrace", fmt.Sprintf("must be at most %s, is %s", maxHaltGrace, g.HaltGrace), "")
	}
	if (g.HaltSignal != "" || g.HaltGrace > 0) && !s.Request.Scheduling.Restartable {
		d.Note(gn, "haltSignal and haltGrace matter for restartable jobs only, and this job is not restartable")
	}
}
