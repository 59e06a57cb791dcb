package job

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"gbatch/internal/document"
)

var gbatchFields = []field[Gbatch]{
	{"source", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.Source, word("-")) }, false},
	{"labels", readLabels, false},

	{"instanceType", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.InstanceType, plain(1, 128)) }, false},
	{"imageAlias", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.ImageAlias, plain(1, 128)) }, false},
	{"nodes", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.Nodes, 1, maxNodes) }, false},
	{"otherGroups", readGroups, false},
	{"ofRanks", readRanks, false},
	{"startOrder", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.StartOrder, oneOf(MasterFirst, WorkersFirst)) }, false},
	{"stopWhen", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.StopWhen, oneOf(MasterDone)) }, false},
	{"ranksPerNode", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.RanksPerNode, 1, maxNodes) }, false},
	{"stopRanks", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.StopRanks, 1, maxNodes) }, false},
	{"launch", func(d *decoder, n *node, g *Gbatch) {
		g.Launch = &Launch{}
		document.Object(d, n, launchFields, g.Launch)
	}, false},
	{"exclusive", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.Exclusive) }, false},
	{"allMemory", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.AllMemory) }, false},
	{"memoryByDefault", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.MemoryByDefault) }, false},
	{"minComputeCapability", readComputeCapability, false},
	{"anyFeatures", readAnyFeatures, false},
	{"partitions", func(d *decoder, n *node, g *Gbatch) { d.strsUpTo(maxPartitions, n, &g.Partitions, word(".-:+")) }, false},
	{"nodeNames", func(d *decoder, n *node, g *Gbatch) { d.strsUpTo(maxNodeNames, n, &g.NodeNames, plain(1, 253)) }, false},
	{"excludeNodes", func(d *decoder, n *node, g *Gbatch) { d.strsUpTo(maxNodeNames, n, &g.ExcludeNodes, plain(1, 253)) }, false},
	{"diskGb", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.DiskGB, 1, maxMemoryGB) }, false},

	{"entrypoint", readEntrypoint, false},
	{"expandVariables", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.ExpandVariables) }, false},
	{"network", func(d *decoder, n *node, g *Gbatch) {
		var word string
		d.str(n, &word, networkWord)
		g.Network = Network(word)
	}, false},
	{"privileged", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.Privileged) }, false},
	{"capabilities", readCapabilities, false},
	{"runtime", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.Runtime, CheckRuntime) }, false},
	{"stdio", readStdio, false},
	{"terminal", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.Terminal) }, false},
	{"shmSizeMb", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.ShmSizeMB, 1, maxMemoryGB*1024) }, false},

	{"qos", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.QOS, word(".-:+")) }, false},
	{"priority", func(d *decoder, n *node, g *Gbatch) { d.integer(n, &g.Priority, -MaxPriority, MaxPriority) }, false},
	{"maxQueued", func(d *decoder, n *node, g *Gbatch) { d.duration(n, &g.MaxQueued, 1) }, false},
	{"limitMin", func(d *decoder, n *node, g *Gbatch) { d.duration(n, &g.LimitMin, 1) }, false},
	{"licenses", readLicenses, false},
	{"limitScope", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.LimitScope, oneOf(LimitAttempt, LimitJob)) }, false},
	{"tasks", readTasks, false},
	{"retry", readRetry, false},
	{"dependencies", readDependencies, false},
	{"dependOnAny", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.DependOnAny) }, false},
	{"replace", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.Replace) }, false},
	{"cron", func(d *decoder, n *node, g *Gbatch) { d.strsUpTo(maxCronLines, n, &g.Cron, cronForm) }, false},
	{"cronOverlap", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.CronOverlap) }, false},
	{"cronZone", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.CronZone, word("/+-")) }, false},

	{"warnBefore", func(d *decoder, n *node, g *Gbatch) { d.duration(n, &g.WarnBefore, 1) }, false},
	{"warnSignal", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.WarnSignal, oneOf(warnSignals...)) }, false},
	{"shareOfNode", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.ShareOfNode) }, false},
	{"haltSignal", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.HaltSignal, oneOf(warnSignals...)) }, false},
	{"haltGrace", func(d *decoder, n *node, g *Gbatch) { d.duration(n, &g.HaltGrace, 1) }, false},
	{"stopSignal", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.StopSignal, oneOf(warnSignals...)) }, false},
	{"stopGrace", func(d *decoder, n *node, g *Gbatch) { d.duration(n, &g.StopGrace, 1) }, false},
	{"signalTo", func(d *decoder, n *node, g *Gbatch) { d.str(n, &g.SignalTo, oneOf(SignalProgram, SignalFirst)) }, false},
	{"idleGpu", func(d *decoder, n *node, g *Gbatch) {
		g.IdleGPU = &IdleGPU{}
		document.Object(d, n, idleFields, g.IdleGPU)
	}, false},

	{"notify", readNotify, false},

	{"before", readBefore, false},
	{"beside", readBeside, false},
	{"ownGpus", func(d *decoder, n *node, g *Gbatch) { g.OwnGPUs = d.optional(n, 0, maxGPUs) }, false},
	{"failTogether", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.FailTogether) }, false},

	{"files", readFiles, false},
	{"directories", readDirectories, false},
	{"inputs", readInputs, false},
	{"outputs", readOutputs, false},
	{"s3", func(d *decoder, n *node, g *Gbatch) {
		g.S3 = &S3{}
		document.Object(d, n, s3Fields, g.S3)
	}, false},
	{"secrets", readSecrets, false},
	{"progressFile", func(d *decoder, n *node, g *Gbatch) { d.absolute(n, &g.ProgressFile) }, false},
	{"requireProgress", func(d *decoder, n *node, g *Gbatch) { d.boolean(n, &g.RequireProgress) }, false},
}

var idleFields = []field[IdleGPU]{
	{"minUtilization", func(d *decoder, n *node, i *IdleGPU) { d.integer(n, &i.MinUtilization, 1, 100) }, true},
	{"window", func(d *decoder, n *node, i *IdleGPU) { d.duration(n, &i.Window, 300) }, true},
}

func readGbatch(d *decoder, n *node, s *Spec) {
	var g Gbatch
	if document.Object(d, n, gbatchFields, &g) && !empty(g) {
		s.Gbatch = &g
	}
}

// empty says that nothing is set in a value.
func empty(v any) bool { return reflect.ValueOf(v).IsZero() }

const (
	maxLabels     = 128
	maxLabelRunes = 1024

	// MaxComment bounds a job's comment, which at first is a label of its document.
	MaxComment = maxLabelRunes
)

// ValidComment says whether a job may have a comment.
func ValidComment(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxComment
}

func readLabels(d *decoder, n *node, g *Gbatch) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, `an object { "name": "value" }`)
		return
	}
	if len(n.Kids) > maxLabels {
		d.Problem(n, fmt.Sprintf("has %d labels, at most %d are allowed", len(n.Kids), maxLabels), "")
		return
	}
	for _, kid := range n.Kids {
		if _, ok := g.Labels[kid.Key]; ok {
			d.Repeated(kid)
			continue
		}
		if wrong := plain(1, maxNameRunes)(kid.Key); wrong != "" {
			d.Problem(kid, "is a label whose name "+wrong, "")
		}
		var value string
		if d.str(kid, &value, func(s string) string {
			if utf8.RuneCountInString(s) > maxLabelRunes {
				return fmt.Sprintf("has more than %d characters", maxLabelRunes)
			}
			return ""
		}) {
			if g.Labels == nil {
				g.Labels = map[string]string{}
			}
			g.Labels[strings.Clone(kid.Key)] = value
		}
	}
}

func readAnyFeatures(d *decoder, n *node, g *Gbatch) {
	d.elements(n, maxListEntries, func(_ int, n *node) {
		var any []string
		d.strs(n, &any, plain(2, 128))
		if len(any) > 0 {
			g.AnyFeatures = append(g.AnyFeatures, any)
		}
	})
}

// readEntrypoint reads an array, or one program.
func readEntrypoint(d *decoder, n *node, g *Gbatch) {
	var c Docker
	if n.Kind == document.StringKind {
		d.str(n, &c.Image, func(s string) string {
			if s == "" || strings.IndexByte(s, 0) >= 0 || len(s) > maxArgBytes {
				return "must name a program"
			}
			return ""
		})
		g.Entrypoint = []string{c.Image}
		return
	}
	if readCommandArray(d, n, &c); len(c.Command.Argv) > 0 {
		g.Entrypoint = c.Command.Argv
	}
}

func readComputeCapability(d *decoder, n *node, g *Gbatch) {
	x, ok := d.Number(n, "a number such as 8.0")
	tenths := math.Round(x * 10)
	switch {
	case !ok:
	case x < 1 || x > 99 || math.Abs(x*10-tenths) > 1e-9:
		d.Problem(n, fmt.Sprintf("is %s, which is no compute capability", document.Shorten(n.Text)), "write major.minor, such as 7.5 or 9.0")
	default:
		g.MinComputeCapability = tenths / 10
	}
}

// readLicenses reads how many of each of the site's licences the job has while it runs.
func readLicenses(d *decoder, n *node, g *Gbatch) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, `an object { "name": number }`)
		return
	}
	if len(n.Kids) > maxLicenses {
		d.Problem(n, fmt.Sprintf("names %d licences, at most %d are allowed", len(n.Kids), maxLicenses), "")
		return
	}
	for _, kid := range n.Kids {
		if _, ok := g.Licenses[kid.Key]; ok {
			d.Repeated(kid)
			continue
		}
		if wrong := word(".-")(kid.Key); wrong != "" {
			d.Problem(kid, "is a licence whose name "+wrong, "")
		}
		count := 0
		d.integer(kid, &count, 1, maxLicenseCount)
		if g.Licenses == nil {
			g.Licenses = map[string]int{}
		}
		g.Licenses[strings.Clone(kid.Key)] = count
	}
}
