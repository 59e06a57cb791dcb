package checks

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/noded/config"
)

// Machine is what is looked at, beside GPUs, which look after themselves.
type Machine struct {
	Root fs.FS // of the machine's files: /proc and /sys are read
	// Ask looks at a directory; it may take for ever.
	Ask func(path string) (Disk, error)
	// Skew is how far the clock is from the controller's; false: it cannot be told.
	Skew func(context.Context) (time.Duration, bool)
}

// Finding is something that keeps the machine from being fit for jobs.
type Finding struct {
	Check string `json:"check"` // as in health.skip, or program, or gpu
	Text  string `json:"text"`
}

// find makes all checks that the configuration asks for. Stored is what was found
// of the storage.
func (m *Machine) find(ctx context.Context, c *config.Config, ask *asker, stored []Storage) []Finding {
	var list []Finding
	for _, check := range []struct {
		name string
		find func() []string
	}{
		{config.CheckStorage, func() []string { return away(stored) }},
		{config.CheckMounts, func() []string { return slices.Concat(m.mounts(c.Health.Mounts), ask.mounts(ctx, c)) }},
		{config.CheckTime, func() []string { return m.time(ctx, time.Duration(c.Health.TimeOffset)) }},
		{config.CheckMemory, func() []string { return m.memory(int64(c.Health.FreeMemory)) }},
		{config.CheckEDAC, func() []string { return m.edac(c.Health.Uncorrected, c.Health.Corrected) }},
	} {
		if !c.Health.Makes(check.name) {
			continue
		}
		for _, text := range check.find() {
			list = append(list, Finding{check.name, text})
		}
	}
	return list
}

// mounts says which directories have nothing mounted.
func (m *Machine) mounts(want []string) (list []string) {
	if len(want) == 0 {
		return nil
	}
	b, err := fs.ReadFile(m.Root, "proc/self/mountinfo")
	if err != nil {
		return []string{fmt.Sprintf("what is mounted cannot be read: %v", err)}
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			has[unescape(f[4])] = true
		}
	}
	for _, at := range want {
		if !has[at] {
			list = append(list, fmt.Sprintf("nothing is mounted at %s: mount %s", at, at))
		}
	}
	return list
}

// unescape reads a path as the kernel writes it there: blanks in octal.
func unescape(s string) string {
	for _, c := range []string{" ", "\t", "\n", `\`} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\%03o`, c[0]), c)
	}
	return s
}

func (m *Machine) time(ctx context.Context, most time.Duration) []string {
	skew, told := m.Skew(ctx)
	if !told || skew.Abs() <= most {
		return nil
	}
	return []string{fmt.Sprintf("the clock is %s from the controller's, at most %s may be between: see chronyc tracking", skew.Abs().Round(time.Second), most)}
}

// memory looks at what programs could still have. Where the kernel does not tell,
// nothing is wrong.
func (m *Machine) memory(least int64) []string {
	b, err := fs.ReadFile(m.Root, "proc/meminfo")
	if err != nil {
		return nil
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if f := strings.Fields(sc.Text()); len(f) == 3 && f[0] == "MemAvailable:" {
			if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil && kb<<10 < least {
				return []string{fmt.Sprintf("%s of memory are left, at least %s must be: see what runs beside the jobs", config.FormatBytes(kb<<10), config.FormatBytes(least))}
			}
		}
	}
	return nil
}

// edac adds up the errors of all memory controllers since the machine was booted.
func (m *Machine) edac(uncorrected, corrected int) (list []string) {
	count := func(file string) (sum int) {
		found, _ := fs.Glob(m.Root, path.Join("sys/devices/system/edac/mc/mc[0-9]*", file))
		for _, name := range found {
			b, err := fs.ReadFile(m.Root, name)
			if n, perr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && perr == nil {
				sum += n
			}
		}
		return sum
	}
	if n := count("ue_count"); n > uncorrected {
		list = append(list, fmt.Sprintf("%d uncorrected errors of the machine's memory since it was booted: find the module by ras-mc-ctl --errors, replace it, reboot", n))
	}
	if n := count("ce_count"); corrected > 0 && n > corrected {
		list = append(list, fmt.Sprintf("%d corrected errors of the machine's memory since it was booted, more than %d: find the module by ras-mc-ctl --errors", n, corrected))
	}
	return list
}
