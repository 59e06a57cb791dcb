package site

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gbatch/internal/ctld/archive"
)

// Where what jobs write is kept beside their nodes.
const (
	LogsOnNode     = "node" // nowhere else
	logsController = "controller"
	LogsS3         = "s3" // that, and when they are complete, as objects
)

// logPlaces are those that can be named.
var logPlaces = []string{LogsOnNode, logsController, LogsS3}

// Logs is where logs are kept, and how much of them.
type Logs struct {
	Keep       string  `yaml:"keep"`           // of logPlaces, of projects that do not say
	Dir        string  `yaml:"dir" own:"true"` // empty: logs in Config.Dir
	For        Seconds `yaml:"for"`            // after the last byte of each
	PerRankMiB int64   `yaml:"perRankMiB"`
	PerUserMiB int64   `yaml:"perUserMiB"`
	TotalMiB   int64   `yaml:"totalMiB" own:"true"`
	FreeMiB    int64   `yaml:"freeMiB" own:"true"` // that logs leave on their disk

	S3 *LogBucket `yaml:"s3"` // for LogsS3
}

// LogBucket is where complete logs go.
type LogBucket struct {
	URI      string `yaml:"uri"`
	Endpoint string `yaml:"endpoint"`
	Region   string `yaml:"region"`
	KeyFile  string `yaml:"keyFile" own:"true"`
}

// Place is the bucket as it is opened.
func (b *LogBucket) Place() archive.Place {
	return archive.Place{URI: b.URI, Endpoint: b.Endpoint, Region: b.Region, KeyFile: b.KeyFile}
}

func defaultLogs() Logs {
	return Logs{Keep: logsController, For: 30 * 86400, PerRankMiB: 64, PerUserMiB: 4096, TotalMiB: 51200, FreeMiB: 5120}
}

// minRankMiB is the least that is kept of a log.
const minRankMiB = 1

// MaxMiB is more than there is, and a number in bytes.
const MaxMiB = 1 << 40

func (l Logs) check(bad func(path, format string, a ...any)) {
	l.checkPlace("logs.keep", l.Keep, bad)
	if l.S3 != nil {
		if err := l.S3.Place().Check(); err != nil {
			bad("logs.s3", "%v", err)
		}
		if !filepath.IsAbs(l.S3.KeyFile) {
			bad("logs.s3.keyFile", "%q must be an absolute path", l.S3.KeyFile)
		}
	}
	if l.Dir != "" && !filepath.IsAbs(l.Dir) {
		bad("logs.dir", "%q must be an absolute path", l.Dir)
	}
	if l.For < 60 {
		bad("logs.for", "must be at least a minute")
	}
	if l.PerRankMiB < minRankMiB || l.PerRankMiB > l.PerUserMiB || l.PerUserMiB > l.TotalMiB || l.TotalMiB > MaxMiB {
		bad("logs", "perRankMiB must be at least %d and at most perUserMiB, and that at most totalMiB", minRankMiB)
	}
	if l.FreeMiB < 0 || l.FreeMiB > MaxMiB {
		bad("logs.freeMiB", "%d: want a number of MiB from 0 on", l.FreeMiB)
	}
}

func (l Logs) checkPlace(path, place string, bad func(path, format string, a ...any)) {
	if place == LogsS3 && l.S3 == nil {
		bad(path, "s3 needs logs.s3, which says where")
	}
	if !slices.Contains(logPlaces, place) {
		bad(path, "%q: want %s", place, strings.Join(logPlaces, ", "))
	}
}

// LogPlace is where the logs of a project are kept.
func (c Config) LogPlace(project string) string {
	if p, _ := c.Project(project); p.Logs != "" {
		return p.Logs
	}
	return c.Logs.Keep
}

// LogsPath is where the controller keeps them.
func (c Config) LogsPath() string {
	if c.Logs.Dir != "" {
		return c.Logs.Dir
	}
	return filepath.Join(c.Dir, logsDir)
}

// KeepFor is For as a length of time.
func (l Logs) KeepFor() time.Duration { return time.Duration(l.For) * time.Second }
