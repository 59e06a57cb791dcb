package exporter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gbatch/internal/noded/devices"
)

// jobMap is a directory with a file for each GPU that jobs hold, named by the
// GPU's number and holding the jobs', one a line: NVIDIA's exporter labels its
// metrics by it. A file that is there for too long says that somebody uses what
// they do not, so what does not belong there goes, at the start too.
type jobMap struct {
	dir string // empty: none is wanted

	mu   sync.Mutex
	have map[string]string // as it was written
}

// mapName is what the exporter takes for such a file: a GPU, or an instance of one.
var mapName = regexp.MustCompile(`^\d+(\.\d+)?$`)

func newJobMap(dir string) *jobMap { return &jobMap{dir: dir} }

// put makes the directory what it shall be: text by the name of a file. What
// that is, is asked when nobody else can put anything older.
func (m *jobMap) put(wanted func() map[string]string) error {
	if m.dir == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	want := wanted()
	if m.have == nil {
		if err := m.findLocked(); err != nil {
			return err
		}
	}
	var errs []error
	for name := range m.have { // each by itself: order does not matter
		if _, ok := want[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(m.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		delete(m.have, name)
	}
	for name, text := range want {
		if m.have[name] == text {
			continue
		}
		if err := replaceFile(filepath.Join(m.dir, name), text); err != nil {
			errs = append(errs, err)
			continue
		}
		m.have[name] = text
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keep metrics.jobMap: %w", err)
	}
	return nil
}

// findLocked takes over what an earlier daemon left.
func (m *jobMap) findLocked() error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return fmt.Errorf("make metrics.jobMap: %w", err)
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("read metrics.jobMap: %w", err)
	}
	m.have = map[string]string{}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), mapTemp); mapName.MatchString(name) {
			m.have[e.Name()] = ""
		}
	}
	return nil
}

// mapTemp ends the name of a file that is being written: the exporter leaves
// such names alone.
const mapTemp = ".new"

// replaceFile writes a small file so that readers see the old one or the new.
func replaceFile(path, text string) error {
	if err := os.WriteFile(path+mapTemp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+mapTemp, path)
}

func (m *jobMap) clear() error { return m.put(func() map[string]string { return nil }) }

// MapJobs brings the directory of GPUs' jobs up to date.
func (e *Exporter) MapJobs() {
	err := e.jobMap.put(func() map[string]string {
		list, _ := e.Containers()
		want := map[string]string{}
		for _, g := range e.Devices.Readings() {
			if jobs := jobsOn(list, g.GPU.UUID); len(jobs) > 0 {
				want[dcgmName(g)] = strings.Join(jobs, "\n") + "\n"
			}
		}
		return want
	})
	if err != nil {
		e.Log.Warn("GPUs' jobs are not told to NVIDIA's exporter", "error", err)
	}
}

// jobsOn are the numbers of the jobs that hold a GPU.
func jobsOn(list []Container, uuid string) []string {
	var jobs []string
	for _, h := range list {
		if slices.Contains(h.GPUs, uuid) && !slices.Contains(jobs, h.Job) {
			jobs = append(jobs, h.Job)
		}
	}
	return jobs
}

// dcgmName is what the exporter calls a GPU, or an instance of one.
func dcgmName(g devices.Reading) string {
	if g.GPU.MIG != nil {
		return strconv.Itoa(g.Device) + "." + strconv.Itoa(g.GPU.MIG.Instance)
	}
	return strconv.Itoa(g.Device)
}
