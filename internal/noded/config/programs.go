package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Program is one of the site's own, which the node runs as root. It belongs to
// root, and nobody else may change it or the directories above it.
type Program struct {
	// Path of the program, absolute. It is run without arguments.
	Path string `yaml:"path"`
	// Timeout is how long it may take; it and all that it started are ended then,
	// and it has failed. Default 5m, of health programs 1m; 1s to 1h.
	Timeout Duration `yaml:"timeout"`
}

// Reboot is how the machine is rebooted.
type Reboot struct {
	// Path of a program of the site's, as of a prolog. Default: systemctl reboot, or
	// shutdown -r now.
	Path string `yaml:"path"`
	// Timeout is how long it may take to set the reboot in motion. Default 5m; 1s to 1h.
	Timeout Duration `yaml:"timeout"`
}

// Programs are all of the site's.
func (c *Config) Programs() []Program {
	list := slices.Concat(c.Prolog, c.Epilog, c.Health.Programs)
	if c.Reboot.Path != "" {
		list = append(list, Program(c.Reboot))
	}
	return list
}

const maxPrograms = 16 // of one kind

func setTimeouts(list []Program, d time.Duration) {
	for i := range list {
		setDefault(&list[i].Timeout, Duration(d))
	}
}

func checkPrograms(c *Config, bad func(string, string, ...any)) {
	checkProgramList("prolog", c.Prolog, bad)
	checkProgramList("epilog", c.Epilog, bad)
	if c.Reboot.Path != "" && !filepath.IsAbs(c.Reboot.Path) {
		bad("reboot.path", "%q: must be an absolute path", c.Reboot.Path)
	}
	bounds[Duration]{Duration(time.Second), Duration(time.Hour)}.check(bad, "reboot.timeout", c.Reboot.Timeout)
}

func checkProgramList(key string, list []Program, bad func(string, string, ...any)) {
	if len(list) > maxPrograms {
		bad(key, "%d of them: at most %d", len(list), maxPrograms)
	}
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		if !filepath.IsAbs(p.Path) {
			bad(at+".path", "%q: must be an absolute path", p.Path)
		}
		bounds[Duration]{Duration(time.Second), Duration(time.Hour)}.check(bad, at+".timeout", p.Timeout)
	}
}
