package checks

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/noded/config"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// site is a configuration with all checks, and a machine that passes them.
func site() (*config.Config, Machine) {
	c := &config.Config{Storage: []config.StorageRoot{
		{Name: "/project", Path: "/srv/project/{project}"}, {Name: "/scratch", Path: "/srv/scratch", Create: true}, {Name: "/data", Path: "/srv/data", ReadOnly: true}}}
	c.Health.Mounts, c.Health.Corrected, c.Health.FreeMemory = []string{"/srv/my project"}, 100, 64<<20
	c.SetDefaults()
	return c, Machine{
		Root: fstest.MapFS{
			"proc/self/mountinfo":                         file("36 35 98:0 / / rw - ext4 /dev/sda rw\n37 36 0:40 / /srv/my\\040project rw - nfs4 host:/x rw\n"),
			"proc/meminfo":                                file("MemTotal: 1000000 kB\nMemFree: 10 kB\nMemAvailable: 500000 kB\n"),
			"sys/devices/system/edac/mc/mc0/ue_count":     file("0\n"),
			"sys/devices/system/edac/mc/mc0/ce_count":     file("60\n"),
			"sys/devices/system/edac/mc/mc1/ce_count":     file("40\n"),
			"sys/devices/system/edac/mc/mc1/ue_count":     file("0\n"),
			"sys/devices/system/edac/mc/power/wakeup":     file("1\n"),
			"sys/devices/system/edac/mc/mc0/csrow0/other": file("9\n"),
		},
		Ask:  func(path string) (Disk, error) { return Disk{ReadOnly: path == "/srv/data", Total: 100, Free: 40}, nil },
		Skew: func(context.Context) (time.Duration, bool) { return -3 * time.Second, true },
	}
}

func TestFind(t *testing.T) {
	put := func(name, text string) func(*config.Config, *Machine) {
		return func(_ *config.Config, m *Machine) { m.Root.(fstest.MapFS)[name] = file(text) }
	}
	ask := func(f func(path string) (Disk, error)) func(*config.Config, *Machine) {
		return func(_ *config.Config, m *Machine) { m.Ask = f }
	}
	tests := map[string]struct {
		change func(*config.Config, *Machine)
		want   []Finding
	}{
		"all well": {nil, nil},
		"a directory hangs": {ask(func(path string) (Disk, error) {
			if path == "/srv/project" {
				<-time.After(time.Hour)
			}
			return Disk{}, nil
		}), []Finding{{"storage", "storage /project: directory /srv/project does not answer within 10s: see its server, and dmesg"}}},
		"a directory is gone": {ask(func(path string) (Disk, error) {
			if path == "/srv/my project" {
				return Disk{}, &fs.PathError{Op: "statfs", Path: path, Err: fs.ErrNotExist}
			}
			return Disk{}, nil
		}), []Finding{{"mounts", "directory /srv/my project is not there: mount it"}}},
		"stale handle": {ask(func(path string) (Disk, error) {
			if path == "/srv" {
				return Disk{}, errors.New("stale file handle")
			}
			return Disk{}, nil
		}), []Finding{{"storage", "storage /scratch: directory /srv cannot be read: stale file handle"}}},
		"read-only": {ask(func(string) (Disk, error) { return Disk{ReadOnly: true}, nil }), []Finding{
			{"storage", "storage /project: directory /srv/project is on a read-only file system: see dmesg"},
			{"storage", "storage /scratch: directory /srv is on a read-only file system: see dmesg"}}},
		"not mounted": {put("proc/self/mountinfo", "36 35 98:0 / / rw - ext4 /dev/sda rw\n"),
			[]Finding{{"mounts", "nothing is mounted at /srv/my project: mount /srv/my project"}}},
		"clock": {func(_ *config.Config, m *Machine) {
			m.Skew = func(context.Context) (time.Duration, bool) { return -40 * time.Second, true }
		}, []Finding{{"time", "the clock is 40s from the controller's, at most 10s may be between: see chronyc tracking"}}},
		"clock unknown": {func(_ *config.Config, m *Machine) {
			m.Skew = func(context.Context) (time.Duration, bool) { return time.Hour, false }
		}, nil},
		"memory": {put("proc/meminfo", "MemAvailable: 1024 kB\n"), []Finding{{"memory", "1.0 MiB of memory are left, at least 64 MiB must be: see what runs beside the jobs"}}},
		"uncorrected": {put("sys/devices/system/edac/mc/mc1/ue_count", "2\n"),
			[]Finding{{"edac", "2 uncorrected errors of the machine's memory since it was booted: find the module by ras-mc-ctl --errors, replace it, reboot"}}},
		"some are borne": {func(c *config.Config, m *Machine) {
			c.Health.Uncorrected = 2
			m.Root.(fstest.MapFS)["sys/devices/system/edac/mc/mc1/ue_count"] = file("2\n")
		}, nil},
		"corrected": {put("sys/devices/system/edac/mc/mc1/ce_count", "41\n"),
			[]Finding{{"edac", "101 corrected errors of the machine's memory since it was booted, more than 100: find the module by ras-mc-ctl --errors"}}},
		"skipped": {func(c *config.Config, m *Machine) {
			c.Health.Skip = []string{"storage", "mounts", "time", "memory", "edac"}
			m.Root, m.Ask = fstest.MapFS{}, func(string) (Disk, error) { return Disk{}, errors.New("gone") }
		}, nil},
		"nothing tells": {func(c *config.Config, m *Machine) {
			c.Health.Mounts, m.Root = nil, fstest.MapFS{}
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, m := site()
				if tc.change != nil {
					tc.change(c, &m)
				}
				ask := newAsker(m.Ask, time.Duration(c.Health.Answer))
				got := m.find(t.Context(), c, ask, ask.storage(t.Context(), c))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(2 * time.Hour) // what hangs answers
			})
		})
	}
}

// A directory that does not answer is asked by one goroutine, however often.
func TestHangingDirectoryIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		a := newAsker(func(string) (Disk, error) {
			asked++
			time.Sleep(time.Hour)
			return Disk{}, nil
		}, 10*time.Second)
		for range 5 {
			if text, _ := a.judge(t.Context(), "/nfs", false); text == "" {
				t.Error("it has not answered, and nothing is said")
			}
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		a.ask = func(string) (Disk, error) { return Disk{}, nil }
		if text, _ := a.judge(t.Context(), "/nfs", false); text != "" {
			t.Errorf("it answers, and this is said: %s", text)
		}
	})
}
