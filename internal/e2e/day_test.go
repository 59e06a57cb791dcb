package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/hosttest"
)

// dayEnv is for how many minutes TestDay submits, dayRateEnv how many jobs a second; without the first it is not run.
const (
	dayEnv     = "GBATCH_BENCH_DAY"
	dayRateEnv = "GBATCH_BENCH_RATE"
)

// TestDay measures what a controller and a node are like while jobs come at the rate of a million in a
// day, each in a container of its own: memory, descriptors, goroutines and times of answers, which
// should all stay as they are. It asserts that each job succeeds and nothing else: make bench-day prints it.
func TestDay(t *testing.T) {
	minutes, err := strconv.Atoi(os.Getenv(dayEnv))
	if err != nil {
		t.Skip("a measurement, not a test: make bench-day")
	}
	rate, err := strconv.ParseFloat(os.Getenv(dayRateEnv), 64)
	if err != nil || rate <= 0 {
		t.Fatalf("%s=%q: give a number of jobs a second", dayRateEnv, os.Getenv(dayRateEnv))
	}
	metrics, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{made: besideCores, nodeConfig: fmt.Sprintf("metrics: {listen: %q}\n", metrics)})
	fmt.Println("| minutes | jobs | ended | submission, median and 99 % | list of 100 | gctld: MiB, files, goroutines, ms a job | gnoded: MiB, files, goroutines, ms a job | shims and programs, ms a job | MiB on the disk: gctld, gnoded |\n|---|---|---|---|---|---|---|---|---|")
	d := &day{s: s, t: t, api: &client.Client{Address: "unix://" + s.socket(), Timeout: patience}, node: metrics, submits: &times{}, lists: &times{}}
	defer d.api.Close()
	s.wait(s.submit(doc{command: []string{"true"}})) // the image is here then
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { d.submit(ctx, rate) })                                                          // ends with ctx
	wg.Go(func() { every(ctx, time.Second, d.list) })                                              // likewise
	wg.Go(func() { every(ctx, max(time.Minute, time.Duration(minutes)*time.Minute/12), d.print) }) // likewise
	wg.Wait()
	look := time.NewTicker(besideLook)
	defer look.Stop()
	for end := time.Now().Add(patience); d.ended("FINISHED") <= d.submitted; <-look.C { // the first one, too
		if time.Now().After(end) {
			t.Fatalf("%d of %d jobs are over\n%s%s", d.ended("FINISHED"), d.submitted+1, fileEnd(s.ctld.log), fileEnd(s.nodes[0].log))
		}
	}
	d.print(t.Context())
}

// day is one run of TestDay.
type day struct {
	s              *site
	t              *testing.T
	api            *client.Client // whose answers are not compared with the API's description
	node           string         // address of the node's metrics
	submits, lists *times         // since the last line
	began          time.Time
	submitted      int
	ctld, gnoded   used // at the last line
	of             int  // jobs submitted by then
}

// times are those of answers, of several goroutines.
type times struct {
	mu   sync.Mutex
	list []time.Duration
}

func (l *times) of(ask func() error) error {
	began := time.Now()
	err := ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, time.Since(began))
	return err
}

// take is what a line of the table says of them, and forgets them.
func (l *times) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Sorted(slices.Values(l.list))
	l.list = nil
	if len(list) == 0 {
		return "none"
	}
	ms := func(of float64) float64 { return list[int(of*float64(len(list)))].Seconds() * 1e3 }
	return fmt.Sprintf("%.0f, %.0f ms", ms(0.5), ms(0.99))
}

// every calls do again and again until ctx is over.
func every(ctx context.Context, d time.Duration, do func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// submit submits jobs one by one, as many as should have been by now.
func (d *day) submit(ctx context.Context, rate float64) {
	request := &api.SubmitRequest{Job: json.RawMessage(doc{command: []string{"echo", "a line"}}.json())}
	d.began = time.Now()
	every(ctx, time.Duration(float64(time.Second)/rate), func(ctx context.Context) {
		for float64(d.submitted) < rate*time.Since(d.began).Seconds() && ctx.Err() == nil {
			err := d.submits.of(func() error { _, err := d.api.Submit(ctx, request, ""); return err })
			if err != nil && ctx.Err() == nil {
				d.t.Errorf("submission %d: %v", d.submitted+1, err)
				return
			}
			d.submitted++
		}
	})
}

func (d *day) list(ctx context.Context) {
	err := d.lists.of(func() error {
		_, err := d.api.Jobs(ctx, client.JobFilter{Limit: 100, All: true})
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.t.Errorf("list: %v", err)
	}
}

// print writes a line of the table: of what went by since the last one.
func (d *day) print(context.Context) {
	ctld, node := usage(d.t, d.s.ctld), usage(d.t, d.s.nodes[0])
	before, jobs := d.of, d.submitted
	each := func(now, then int64) string {
		return fmt.Sprintf("%.2f", float64(now-then)*10/float64(max(1, jobs-before)))
	} // ms; the kernel tells hundredths of a second
	at := func(m map[string]float64) string {
		return fmt.Sprintf("%.0f, %.0f, %.0f", m["process_resident_memory_bytes"]/(1<<20), m["process_open_fds"], m["go_goroutines"])
	}
	fmt.Printf("| %.0f | %d | %d | %s | %s | %s, %s | %s, %s | %s | %d, %d |\n", time.Since(d.began).Minutes(), jobs, d.ended("FINISHED"), d.submits.take(), d.lists.take(),
		at(d.figures("unix")), each(ctld.own, d.ctld.own), at(d.figures("tcp")), each(node.own, d.gnoded.own), each(node.children, d.gnoded.children),
		size(d.s.dir+"/ctld")>>20, size(d.s.nodes[0].stateDir)>>20)
	d.ctld, d.gnoded, d.of = ctld, node, jobs
}

// ended is how many jobs have ended so.
func (d *day) ended(state string) (n int) {
	for name, value := range d.figures("unix") {
		if strings.HasPrefix(name, "gctld_jobs_ended_total{") && strings.Contains(name, fmt.Sprintf("state=%q", state)) {
			n += int(value)
		}
	}
	return n
}

// figures are those that the controller tells at its socket ("unix"), or the node ("tcp").
func (d *day) figures(network string) map[string]float64 {
	return figures(d.t, network, map[string]string{"unix": d.s.socket(), "tcp": d.node}[network])
}

// figures are those that a daemon tells at an address, by their names with labels.
func figures(t *testing.T, network, address string) map[string]float64 {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("http://localhost/metrics")
	if err != nil {
		t.Errorf("metrics at %s: %v", address, err)
		return nil
	}
	defer resp.Body.Close()
	figures := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ') // a route has some, too
		if v, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
			figures[lines.Text()[:max(at, 0)]] = v
		}
	}
	return figures
}

// size is how much of a disk a directory takes, in bytes, without what is mounted in it.
func size(dir string) (bytes int64) {
	var top syscall.Stat_t
	if err := syscall.Stat(dir, &top); err != nil {
		return 0
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err != nil || syscall.Lstat(path, &st) != nil {
			return nil // it went while we looked
		}
		if st.Dev != top.Dev && entry.IsDir() {
			return fs.SkipDir
		}
		bytes += st.Blocks * 512
		return nil
	})
	return bytes
}
