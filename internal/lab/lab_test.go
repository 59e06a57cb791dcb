package lab

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

var (
	days = flag.Float64("lab.days", 0.1, "simulated days in which people submit")
	seed = flag.Uint64("lab.seed", 1, "what is drawn")
)

func TestMain(m *testing.M) {
	flag.Parse()
	time.Local = time.UTC
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GBATCH_") {
			os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "gbatch-lab")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", dir)
	os.Setenv("XDG_STATE_HOME", dir)
	// Its goroutine begins outside of the bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestLab: days of a lab, operated by the documents' commands.
func TestLab(t *testing.T) {
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) // a Monday
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		s := &site{t: t, rand: rand.New(rand.NewPCG(*seed, 13)), began: time.Now(), dir: dir, logs: &journal{}, found: findings{t: t}}
		s.truth = &truth{s: s, alive: map[*run]bool{}}
		s.wire = s.bySocket()
		s.configure(limits{gpus: 32, matlab: 4, budget: 1_000_000})
		s.start()
		s.open()
		p := &people{s: s, all: map[job.Number]*sent{}}
		o := &oracle{s: s, p: p}
		live(s, p, o, time.Duration(*days*24*float64(time.Hour)))
		for _, m := range s.nodes {
			m.cut()
		}
		s.stop()
		report(t, s, o)
	})
}

// open makes tokens and has all nodes join.
func (s *site) open() {
	for i := range 30 {
		s.users = append(s.users, fmt.Sprintf("user%02d", i+1))
	}
	for _, u := range append([]string{"olga"}, s.users...) {
		s.must("root", "gadm", "token", "create", "-u", u, "--for", "366d", "--to", s.tokenFile(u))
	}
	join := filepath.Join(s.dir, "join.token")
	s.must("root", "gadm", "node-token", "create", "--uses", "20", "--to", join)
	for i := range 20 {
		if i < 16 {
			s.join(&machine{name: fmt.Sprintf("gpu%02d", i+1), model: "H100", gpus: 8, cores: 96}, join)
		} else {
			s.join(&machine{name: fmt.Sprintf("old%02d", i-15), model: "A100", gpus: 4, cores: 64}, join)
		}
	}
	for range 60 {
		time.Sleep(time.Second)
		if s.up() == len(s.nodes) {
			return
		}
	}
	s.t.Fatalf("%d of %d nodes are up:\n%s", s.up(), len(s.nodes), s.must("root", "ginfo"))
}

func (s *site) up() (n int) {
	var info api.ClusterInfo
	s.read(&info, "root", "ginfo", "--json")
	for _, x := range info.Nodes {
		if x.State == "up" {
			n++
		}
	}
	return n
}

// live has the days go by, and then waits until everything has ended.
func live(s *site, p *people, o *oracle, lasts time.Duration) {
	const step = 10 * time.Minute
	due := operations(s, o)
	end, looked := s.began.Add(lasts), time.Now()
	for time.Now().Before(end) {
		for len(due) > 0 && time.Since(s.began) >= due[0].at {
			s.t.Logf("%s: %s", time.Now().Format("Mon Jan 02 15:04"), due[0].what)
			due[0].do()
			due = due[1:]
		}
		p.work(step, 1)
		time.Sleep(step)
		if time.Since(looked) > 3*time.Hour {
			looked = time.Now()
			o.look()
		}
	}
	for until := time.Now().Add(8 * 24 * time.Hour); ; time.Sleep(time.Hour) {
		var list api.JobList
		s.read(&list, "root", "gqueue", "--json")
		if len(list.Jobs) == 0 {
			break
		}
		if time.Now().After(until) {
			s.found.wrong("%d jobs never end, as %s: %s", len(list.Jobs), list.Jobs[0].ID, list.Jobs[0].ReasonText)
			break
		}
	}
	o.look()
	o.final()
}

func report(t *testing.T, s *site, o *oracle) {
	told, kept, line := o.kept()
	t.Logf("%d looks; %s", o.looks, line)
	t.Logf("commands: %s", s.found.told())
	if told > 0 && kept*100 < told*70 {
		t.Errorf("of %d expected starts only %d came by then", told, kept)
	}
	for _, l := range s.found.first {
		t.Error(l)
	}
	if n := s.found.count; n > most {
		t.Errorf("and %d more", n-most)
	}
	if text := s.logs.text.String(); text != "" {
		t.Logf("the controller's log:\n%s", text[:min(len(text), 20000)])
	}
}
