package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// addConfig adds lines to gctld.yaml and has them taken.
func (s *site) addConfig(lines string) {
	s.t.Helper()
	f, err := os.OpenFile(s.ctld.config, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(lines)
		f.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.must("gadm", "policy", "reload")
}

// why is what a waiting job waits for.
func (s *site) why(id string) string {
	s.t.Helper()
	d := s.job(id)
	return d.Reason + ": " + d.ReasonText
}

// TestPartitions: jobs run on the nodes of the partition that they name, by its limits, or in
// the default one; what no partition takes is refused with the reason, and what is down waits.
func TestPartitions(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	config, err := os.ReadFile(s.ctld.config)
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("partitions:\n  - {name: short, nodes: [%s], default: true, maxDuration: 10 minutes}\n  - {name: long, nodes: [%s], defaultDuration: 3 hours}\n", s.nodeName(0), s.nodeName(1))
	s.addConfig(table)
	for flags, want := range map[string]struct{ node, partition string }{"": {s.nodeName(0), "short"}, "long": {s.nodeName(1), "long"}} {
		args := []string{"--image", image}
		if flags != "" {
			args = append(args, "-p", flags)
		}
		id := strings.TrimSpace(s.must("gsubmit", append(args, "--", "true")...))
		if d := s.wait(id); d.State != job.Finished || len(d.Nodes) != 1 || d.Nodes[0] != want.node || d.Partition != want.partition {
			t.Errorf("by -p %q:\n%s", flags, describe(d))
		}
	}
	if r := s.run("gsubmit", "--image", image, "-p", "short", "--time", "1:00:00", "--", "true"); r.code == 0 || !strings.Contains(r.err, "short") || !strings.Contains(r.err, "long") {
		t.Errorf("more time than the partition gives: %v", r)
	}
	if r := s.run("gsubmit", "--image", image, "-p", "moon", "--", "true"); r.code == 0 || !strings.Contains(r.err, "moon") {
		t.Errorf("a partition that is not there: %v", r)
	}
	if out := s.must("ginfo", "--partitions"); !strings.Contains(out, "short") || !strings.Contains(out, "long") {
		t.Errorf("ginfo --partitions:\n%s", out)
	}
	down := strings.Replace(table, "defaultDuration: 3 hours", "state: down", 1)
	if err := os.WriteFile(s.ctld.config, append(config, down...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("gadm", "policy", "reload")
	waits := strings.TrimSpace(s.must("gsubmit", "--image", image, "-p", "long", "--", "true"))
	eventually(t, "the job waits for its partition", func() bool { return strings.HasPrefix(s.why(waits), "Partition: ") })
	if err := os.WriteFile(s.ctld.config, append(config, table...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("gadm", "policy", "reload")
	if d := s.wait(waits); d.State != job.Finished {
		t.Errorf("when the partition is up again:\n%s", describe(d))
	}
}

// TestLicenses: jobs that together ask for more licences than there are do not run at once,
// are told why and with how many they would, and lists and metrics agree.
func TestLicenses(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: "licenses: {ansys: 3}\n"})
	submit := func(licenses string, command ...string) string {
		return strings.TrimSpace(s.must("gsubmit", append([]string{"--image", image, "-L", licenses, "--time", "10", "--"}, command...)...))
	}
	first := submit("ansys:2", idle...)
	s.waitRunning(first)
	second := submit("ansys:2", "true")
	eventually(t, "the second waits for licences", func() bool {
		return s.why(second) == "Licenses: 1 of 3 ansys licences are free, and the job asks for 2"
	})
	if out := s.must("gqueue", "explain", second); !strings.Contains(out, "ask for 1 ansys licence: would start now") {
		t.Errorf("the advice:\n%s", out)
	}
	third := submit("ansys", "true") // which is what the advice said
	if d := s.wait(third); d.State != job.Finished {
		t.Errorf("with one licence:\n%s", describe(d))
	}
	var list struct{ Licenses []api.License }
	if err := json.Unmarshal([]byte(s.must("ginfo", "--licenses", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if want := (api.License{Name: "ansys", Total: 3, Used: 2, Asked: 2}); len(list.Licenses) != 1 || list.Licenses[0] != want {
		t.Errorf("licences %+v, want %+v", list.Licenses, want)
	}
	for licenses, want := range map[string]string{"ansys:4": "ansys", "moon": "moon"} {
		if r := s.run("gsubmit", "--image", image, "-L", licenses, "--", "true"); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("-L %s: %v", licenses, r)
		}
	}
	s.must("gcancel", first)
	if d := s.wait(second); d.State != job.Finished || d.Started.Before(s.job(first).Ended) {
		t.Errorf("after the first:\n%s", describe(d))
	}
}

// TestReservationAgain: a reservation that comes again is listed with its next time, keeps
// its node from jobs that would still run then, and a time that is skipped is not kept.
func TestReservationAgain(t *testing.T) {
	s := newSite(t, siteOptions{})
	start := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Minute)
	out := s.must("gadm", "reserve", "night", "--nodes", s.nodeName(0), "--from", start.Format(time.RFC3339), "--for", "1 hour", "--every", "day", "--zone", "UTC", "--maintenance")
	if !strings.Contains(out, "again each day "+start.Format("15:04")) {
		t.Errorf("gadm reserve:\n%s", out)
	}
	next := func() time.Time {
		t.Helper()
		var list api.ReservationList
		if err := json.Unmarshal([]byte(s.must("ginfo", "--reservations", "--json")), &list); err != nil || len(list.Reservations) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		return list.Reservations[0].Start.UTC()
	}
	if got := next(); !got.Equal(start) {
		t.Errorf("the next time is %s, want %s", got, start)
	}
	if table := s.must("ginfo", "-T"); !strings.Contains(table, "night") || !strings.Contains(table, "each day "+start.Format("15:04")) {
		t.Errorf("ginfo -T:\n%s", table)
	}
	long := strings.TrimSpace(s.must("gsubmit", "--image", image, "--time", "3:00:00", "--", "true"))
	short := strings.TrimSpace(s.must("gsubmit", "--image", image, "--time", "10", "--", "true"))
	if d := s.wait(short); d.State != job.Finished {
		t.Errorf("a job that ends before:\n%s", describe(d))
	}
	eventually(t, "a job that would still run then waits for that", func() bool { return strings.Contains(s.why(long), "night") })
	s.ctld.kill()
	s.ctld.cmd = nil
	s.ctld.start()
	s.waitNodes("up", 1)
	s.must("gadm", "unreserve", "night", "--skip")
	if got, want := next(), start.AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("after a skipped time the next is %s, want %s", got, want)
	}
	if d := s.wait(long); d.State != job.Finished {
		t.Errorf("once that time is skipped:\n%s", describe(d))
	}
}
