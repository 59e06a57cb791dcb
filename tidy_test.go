// Package gbatch holds no code. Its test reads the whole tree and enforces the
// rules of STYLE.md that a machine can check.
package gbatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "gbatch/"

// below says what each of our packages may import of ours: an arrow points
// down or is not there. A new package needs a line here, and a new arrow a
// reason in docs/design.
var below = map[string][]string{
	"accounting": {},
	"deploy":     {},
	"cgroups":    {},
	"sched":      {"accounting", "sched/due", "sched/fixed", "sched/licenses", "sched/mix", "sched/nodes", "sched/predict", "sched/spec", "sched/words"},
	"oci/ref":    {},
	"oci/image":  {"oci/atomicfile", "oci/boot", "oci/image/socket", "oci/image/unpack", "oci/ref", "oci/treesum"}, "oci/treesum": {},
	"oci/image/socket":    {},
	"oci/image/unpack":    {},
	"oci/image/imagetest": {"oci/ref"},
	"oci/netns":           {},
	"oci/logs":            {},
	"oci/lease":           {"cgroups", "oci/atomicfile", "oci/boot"},
	"oci":                 {"cgroups", "oci/image", "oci/netns", "oci/ref", "oci/atomicfile", "oci/userns", "oci/logs", "oci/hostnet", "oci/lease", "oci/overlay", "oci/runtimes", "oci/confine", "oci/signals", "oci/sysfilter", "oci/stdio", "oci/rootfs", "oci/changes"},
	"oci/confine":         {},
	"oci/changes":         {"oci/userns"},
	"oci/signals":         {},
	"oci/stdio":           {"oci/logs"},
	"oci/runtimes":        {},
	"oci/overlay":         {"oci/userns"},
	"oci/shim":            {"oci"},
	"internal/job":        {"internal/job/indexes", "oci/ref", "internal/document"}, "internal/job/indexes": {"internal/document"},
	"internal/job/importer": {"internal/job/indexes", "internal/job", "oci/ref", "internal/document", "internal/job/importer/ccluster",
		"internal/job/importer/dstack", "internal/job/importer/kubernetes", "internal/job/importer/nvct",
		"internal/job/importer/slurm", "internal/job/importer/tao"},
	"internal/units":           {"internal/job"},
	"internal/control/array":   {"sched", "internal/job", "internal/state"},
	"internal/control/depend":  {"sched", "internal/job", "internal/state"},
	"internal/control/ahead":   {"sched", "internal/job", "internal/node", "internal/state"},
	"internal/control/ask":     {"sched", "sched/words", "internal/control/need", "internal/control/partition", "internal/job", "internal/state"},
	"internal/control/fit":     {"sched", "sched/words", "internal/control/picture", "internal/job", "internal/node", "internal/state"},
	"internal/control/reboot":  {"sched", "internal/job", "internal/node", "internal/state"},
	"internal/control/idle":    {"sched", "internal/job", "internal/state"},
	"internal/control/picture": {"sched", "internal/control/need", "internal/job", "internal/state"},
	"internal/control/ranks":   {"sched", "sched/words", "internal/job", "internal/node", "internal/state"},
	"internal/control/retry":   {"sched", "internal/job", "internal/node", "internal/state"},
	"internal/control": {"internal/job/indexes", "internal/control/moments", "internal/control/partition", "sched", "accounting", "internal/job", "oci/ref", "internal/node", "internal/state", "sched/predict", "sched/words",
		"internal/control/ahead", "internal/control/ask", "internal/control/fit", "internal/control/idle", "internal/control/picture",
		"internal/control/ranks", "internal/control/reboot", "internal/control/retry", "internal/control/amend", "internal/control/array", "internal/control/depend", "internal/control/quota", "internal/control/launches", "internal/control/need", "internal/control/recur"},
	"internal/store":       {"internal/job", "internal/state", "internal/store/floor"},
	"internal/store/floor": {}, "internal/replica": {"internal/store", "oci/atomicfile", "oci/boot"},
	"internal/tree":            {},
	"internal/api":             {"internal/job", "internal/node", "internal/tree"},
	"internal/pki":             {"oci/atomicfile"},
	"internal/munge":           {},
	"internal/munge/mungetest": {},
	"internal/client":          {"internal/api", "internal/job", "internal/munge", "internal/pki", "internal/settings", "internal/tree"},
	"internal/cli": {"internal/cli/login", "internal/units", "internal/client", "internal/api", "internal/job", "internal/document", "internal/job/importer/nvct",
		"internal/job/importer/slurm", "internal/cli/exit", "internal/cli/human", "internal/cli/jobs", "internal/cli/manpage", "internal/cli/table"},
	"internal/ctld/controllers": {"internal/api", "internal/replica", "internal/ctld/access", "internal/ctld/backup", "internal/ctld/loop", "internal/ctld/site", "internal/pki"},
	"internal/ctld": {"internal/replica", "internal/ctld/controllers", "internal/api", "internal/control", "internal/ctld/access", "internal/ctld/backup", "internal/ctld/counts",
		"internal/ctld/events", "internal/ctld/jobs", "internal/ctld/jobstore", "internal/ctld/loop", "internal/ctld/mail",
		"internal/ctld/meter", "internal/ctld/nodes", "internal/ctld/route", "internal/ctld/rules", "internal/ctld/samples",
		"internal/ctld/site", "internal/ctld/streams", "internal/ctld/usage", "internal/job", "internal/metrics", "internal/pki",
		"internal/state", "internal/store", "sched", "internal/ctld/ids", "internal/ctld/conns", "internal/ctld/login", "internal/ctld/trees", "internal/tree", "internal/ctld/webhook", "internal/ctld/keep", "internal/ctld/curves", "internal/ctld/convert", "internal/ctld/archive", "internal/web", "internal/ctld/scrub", "internal/client"},
	"internal/ctld/keep": {"oci/logs"}, "internal/ctld/archive": {}, "internal/ctld/curves": {"internal/node", "oci/atomicfile"}, "internal/ctld/convert": {"internal/api", "internal/ctld/access", "internal/ctld/places", "internal/job", "internal/job/importer"},
	"internal/ctld/trees": {"internal/api", "internal/ctld/access", "internal/ctld/jobstore", "internal/job", "internal/tree", "oci/atomicfile"},
	"internal/ctld/access": {"internal/api", "internal/ctld/loop", "internal/ctld/site", "internal/ctld/wire", "internal/munge",
		"internal/pki", "internal/state", "internal/store", "internal/units", "internal/ctld/conns", "internal/ctld/notice",
		"internal/ctld/places"},
	"internal/ctld/scrub": {"internal/ctld/fsck", "internal/pace", "internal/state"}, "internal/pace": {},
	"internal/ctld/fsck": {"internal/control", "internal/ctld/access", "internal/ctld/site", "internal/job", "internal/state", "internal/store", "sched"},
	"internal/ctld/backup": {"internal/api", "internal/control", "internal/ctld/access", "internal/ctld/jobstore", "internal/ctld/loop",
		"internal/ctld/site", "internal/ctld/wire", "internal/job", "internal/state", "internal/store", "sched"},
	"internal/ctld/counts": {"accounting", "internal/control", "internal/ctld/keep", "internal/ctld/loop", "internal/ctld/meter", "internal/ctld/site",
		"internal/job", "internal/metrics", "internal/node", "internal/state", "sched"},
	"internal/ctld/events": {"internal/api", "internal/ctld/access", "internal/ctld/jobstore", "internal/ctld/loop",
		"internal/ctld/wire", "internal/job", "internal/state"},
	"internal/ctld/jobs": {"internal/job/indexes", "internal/ctld/keep", "internal/ctld/curves", "accounting", "internal/api", "internal/control", "internal/control/amend", "internal/ctld/access", "internal/ctld/jobstore",
		"internal/ctld/loop", "internal/ctld/meter", "internal/ctld/site", "internal/ctld/usage", "internal/ctld/wire", "internal/job", "internal/node",
		"internal/state", "sched", "internal/ctld/places"},
	"internal/ctld/jobstore": {"internal/api", "internal/control", "internal/ctld/wire", "internal/job", "internal/state", "internal/store"},
	"internal/ctld/loop": {"oci/atomicfile", "oci/boot", "internal/api", "internal/control", "internal/ctld/meter", "internal/ctld/wire", "internal/job",
		"internal/state", "internal/store", "sched", "internal/ctld/fair"},
	"internal/ctld/mail": {"internal/ctld/site", "internal/job", "internal/state"},
	"internal/ctld/webhook": {"internal/api", "internal/reach", "internal/control", "internal/ctld/jobstore", "internal/ctld/loop", "internal/ctld/mail", "internal/ctld/notice",
		"internal/ctld/site", "internal/job", "internal/state", "internal/store"},
	"internal/ctld/meter": {"internal/api", "internal/control", "internal/job", "internal/metrics", "internal/node", "internal/state", "sched"},
	"internal/ctld/nodes": {"internal/control/partition", "internal/api", "internal/control", "internal/control/idle", "internal/control/launches", "internal/ctld/access", "internal/ctld/jobstore",
		"internal/ctld/loop", "internal/ctld/samples", "internal/ctld/site", "internal/ctld/streams", "internal/ctld/wire",
		"internal/job", "internal/node", "internal/pki", "internal/state", "sched", "internal/ctld/ids", "internal/ctld/keep", "internal/ctld/curves", "internal/ctld/places"},
	"internal/ctld/login": {"internal/api", "internal/ctld/access", "internal/ctld/places", "internal/ctld/site"},
	"internal/ctld/route": {"internal/api", "internal/ctld/access", "internal/ctld/notice", "internal/ctld/wire", "internal/job", "internal/node",
		"internal/state", "internal/ctld/conns", "internal/ctld/fair", "internal/ctld/places"},
	"internal/ctld/rules": {"internal/api", "internal/control", "internal/ctld/access", "internal/ctld/loop", "internal/ctld/site",
		"internal/ctld/wire", "internal/state", "internal/store"},
	"internal/ctld/samples": {"internal/api", "internal/job", "internal/node"},
	"internal/ctld/site": {"internal/reach", "internal/control/partition", "internal/ctld/archive", "accounting", "internal/api", "internal/control", "internal/control/ask", "internal/document", "internal/job", "internal/settings", "internal/units", "oci/ref", "sched",
		"internal/node", "internal/control/quota"},
	"internal/ctld/streams": {"internal/api", "internal/ctld/access", "internal/ctld/jobstore", "internal/ctld/keep", "internal/ctld/loop", "internal/job", "internal/node", "internal/state", "oci/logs"},
	"internal/ctld/usage": {"accounting", "internal/api", "internal/control", "internal/ctld/access", "internal/ctld/jobstore",
		"internal/ctld/loop", "internal/ctld/samples", "internal/ctld/wire", "internal/job", "internal/node", "internal/state",
		"internal/store", "sched"},
	"internal/ctld/wire":       {"internal/api", "internal/job", "internal/state", "sched"},
	"internal/gpu":             {"internal/node", "oci/atomicfile"},
	"internal/metrics":         {},
	"internal/metricstest":     {},
	"internal/api/apitest":     {},
	"internal/sim":             {"internal/units", "internal/control", "internal/control/amend", "internal/control/ask", "internal/job", "sched", "accounting", "internal/node", "internal/state"},
	"internal/vmtest":          {},
	"internal/web":             {"internal/api"},
	"internal/web/bundle":      {},
	"internal/sparse":          {},
	"internal/reach":           {},
	"internal/transfer":        {"internal/reach", "internal/sparse", "oci/atomicfile", "oci/treesum"},
	"internal/transfer/s3test": {},
	"internal/noded": {"cgroups", "internal/pace", "internal/api", "internal/client", "internal/job", "internal/node", "internal/noded/config",
		"internal/noded/contact", "internal/noded/cores", "internal/noded/data", "internal/noded/devices", "internal/noded/exporter",
		"internal/noded/identity", "internal/noded/images", "internal/noded/network", "internal/noded/preflight",
		"internal/noded/rank", "internal/noded/reason", "internal/noded/storage", "internal/noded/streams", "oci", "oci/apparmor", "oci/lease", "internal/noded/inside", "internal/noded/launches", "internal/launch",
		"internal/noded/account", "internal/noded/disk", "oci/atomicfile", "oci/runtimes", "oci/boot", "internal/noded/hooks", "internal/noded/faults", "internal/noded/program", "internal/noded/checks", "internal/noded/reboot", "internal/noded/keep", "oci/logs"},
	"internal/noded/checks":  {"internal/client", "internal/noded/config", "oci/atomicfile"},
	"internal/noded/program": {"cgroups"},
	"internal/noded/reboot":  {"internal/client", "internal/node", "internal/noded/program", "oci/atomicfile"},
	"internal/noded/faults":  {"internal/node", "oci/atomicfile"},
	"internal/noded/hooks":   {"cgroups", "internal/job", "internal/node", "internal/noded/config", "internal/noded/program", "internal/noded/reason", "oci/atomicfile"},
	"internal/node":          {"internal/job"},
	"oci/atomicfile":         {}, "oci/boot": {},
	"internal/noded/config":   {"internal/reach", "internal/settings", "internal/units", "internal/client", "internal/gpu", "internal/job", "internal/transfer", "oci/netns"},
	"internal/noded/identity": {"internal/noded/config", "internal/api", "internal/client", "internal/job", "internal/pki", "cgroups", "oci/atomicfile"},
	"internal/noded/contact":  {"internal/node", "internal/api", "internal/client", "internal/noded/identity", "oci/lease", "oci/atomicfile", "oci/boot"},
	"internal/noded/data": {"internal/reach", "internal/node", "internal/api", "internal/client", "internal/job", "internal/noded/config", "internal/noded/reason",
		"internal/noded/rights", "internal/noded/storage", "internal/transfer", "internal/tree", "oci", "oci/atomicfile"},
	"internal/noded/exporter": {"internal/node", "internal/api", "internal/gpu", "internal/job", "internal/metrics",
		"internal/noded/config", "internal/noded/devices", "internal/noded/identity", "oci/image"},
	"internal/noded/network": {"internal/node", "internal/job", "internal/noded/config", "internal/noded/reason", "oci",
		"oci/netns", "internal/api", "oci/hostnet"},
	"internal/noded/preflight": {"internal/node", "cgroups", "internal/client", "internal/gpu", "internal/noded/config",
		"internal/noded/identity", "oci/apparmor", "oci/atomicfile", "oci/image", "oci/netns", "oci", "internal/noded/disk",
		"oci/hostnet", "oci/runtimes", "internal/noded/program"},
	"internal/noded/keep": {"internal/api", "internal/client", "internal/job", "oci/logs"},
	"internal/noded/rank": {"internal/node", "oci/logs", "oci/runtimes", "oci/stdio", "cgroups", "internal/api", "internal/client", "internal/job",
		"internal/noded/config", "internal/noded/contact", "internal/noded/cores", "internal/noded/data", "internal/noded/devices",
		"internal/noded/exporter", "internal/noded/identity", "internal/noded/images", "internal/noded/network",
		"internal/noded/reason", "internal/noded/rights", "internal/noded/storage", "internal/transfer", "oci", "oci/atomicfile",
		"oci/boot", "oci/image", "oci/lease", "oci/ref", "internal/noded/account", "oci/userns", "internal/noded/disk", "internal/noded/inside", "internal/noded/launches", "internal/launch", "internal/noded/hooks"},
	"internal/noded/streams": {"internal/node", "internal/api", "internal/client", "internal/job", "oci", "oci/changes", "oci/logs", "oci/netns"},
	"internal/noded/reason":  {"internal/job"},
	"internal/noded/devices": {"internal/node", "cgroups", "internal/api", "internal/gpu", "internal/job", "internal/noded/config",
		"internal/noded/reason"},
	"internal/noded/cores":   {"cgroups", "internal/job", "internal/noded/config"},
	"internal/noded/storage": {"internal/job", "internal/noded/config", "internal/noded/reason", "internal/noded/rights"},
	"internal/noded/rights":  {"oci/userns"},
	"internal/noded/images": {"internal/reach", "internal/node", "internal/api", "internal/client", "internal/job", "internal/noded/config",
		"internal/transfer", "oci/image", "oci/ref"},
	"internal/state":                            {"internal/job/indexes", "sched", "accounting", "internal/job", "internal/node"},
	"internal/document":                         {},
	"internal/settings":                         {"internal/document"},
	"internal/slurmsite":                        {"internal/job"},
	"internal/settings/settingstest":            {"internal/settings", "internal/document"},
	"internal/job/importer/foreign":             {"internal/document", "internal/job"},
	"internal/job/importer/foreign/foreigntest": {},
	"internal/job/importer/hostiletest":         {"internal/job", "internal/job/importer", "internal/job/importer/slurm"},
	"internal/job/importer/ccluster":            {"internal/job/indexes", "internal/job/importer/foreign", "internal/document", "internal/job", "oci/ref"},
	"internal/job/importer/dstack":              {"internal/job/importer/foreign", "internal/document", "internal/job", "oci/ref"},
	"internal/job/importer/kubernetes":          {"internal/job/indexes", "internal/job/importer/foreign", "internal/document", "internal/job"},
	"internal/job/importer/nvct":                {"internal/job/importer/foreign", "internal/document", "internal/job"},
	"internal/job/importer/slurm":               {"internal/job/indexes", "internal/job/importer/foreign", "internal/document", "internal/job", "internal/units", "oci/ref"},
	"internal/job/importer/tao":                 {"internal/job/importer/foreign", "internal/document", "internal/job", "oci/ref"},
	"sched/fixed":                               {},
	"sched/nodes":                               {"sched/spec", "sched/words"},
	"sched/predict":                             {"sched/fixed", "sched/spec"},
	"sched/spec":                                {},
	"sched/due":                                 {"sched/spec"}, "sched/mix": {"sched/nodes", "sched/spec"}, "sched/licenses": {"sched/spec", "sched/words"}, "sched/words": {"sched/spec"},
	"internal/cli/exit":    {"internal/client", "internal/api", "internal/job"},
	"internal/cli/human":   {},
	"internal/cli/table":   {"internal/cli/exit", "internal/cli/human"},
	"internal/cli/jobs":    {"internal/cli/exit", "internal/cli/human", "internal/cli/table", "internal/api", "internal/job"},
	"internal/cli/clitest": {"internal/cli", "internal/client", "internal/api", "internal/job", "internal/node"},
	"internal/cli/manpage": {},
	"internal/cli/manual":  {"internal/cli/manpage", "internal/document"},
	"internal/cli/watch":   {"internal/cli", "internal/cli/exit", "internal/client", "internal/api"},
	"internal/cli/login":   {"internal/cli/secret", "internal/client", "internal/api"},
	"internal/cli/secret":  {"internal/cli/exit", "internal/job"},
	"internal/cli/follow":  slices.Concat(command, []string{"internal/cli/watch", "internal/node"}),
	"internal/cli/exec":    slices.Concat(command, []string{"internal/cli/attach", "internal/cli/ssh", "internal/cli/watch"}), "internal/cli/attach": slices.Concat(command, []string{"internal/cli/follow", "internal/cli/watch"}),
	"internal/cli/save":   slices.Concat(command, []string{"oci/ref"}),
	"internal/cli/ssh":    {"internal/cli", "internal/client", "internal/api"},
	"internal/cli/logs":   slices.Concat(command, []string{"internal/cli/follow", "internal/cli/named", "internal/cli/watch"}),
	"internal/cli/named":  {"internal/cli", "internal/cli/exit", "internal/cli/jobs", "internal/client", "internal/api", "internal/job"},
	"internal/cli/cancel": command,
	"internal/cli/info":   slices.Concat(command, []string{"internal/cli/reserved", "internal/cli/watch"}), "internal/cli/reserved": {"internal/api", "internal/cli", "internal/cli/human", "internal/cli/table"},
	"internal/cli/acct":       slices.Concat(command, []string{"internal/node", "internal/document"}),
	"internal/cli/adm":        slices.Concat(command, []string{"internal/cli/manual", "internal/cli/reserved", "internal/cli/secret", "internal/cli/login", "internal/slurmsite"}),
	"internal/cli/queue":      slices.Concat(command, []string{"internal/cli/cancel", "internal/cli/follow", "internal/cli/named", "internal/cli/secret", "internal/cli/watch"}),
	"internal/cli/bring":      {"internal/api", "internal/cli/human", "internal/tree"},
	"internal/cli/submit":     slices.Concat(command, []string{"internal/cli/attach", "internal/cli/bring", "internal/cli/follow", "internal/cli/secret", "internal/job/importer", "internal/job/importer/nvct", "internal/job/importer/slurm", "internal/document", "oci/ref"}),
	"internal/cli/slurm":      slices.Concat(command, []string{"internal/cli/follow", "internal/cli/allocation", "internal/job/importer/slurm", "internal/document", "internal/job/indexes"}),
	"internal/cli/allocation": slices.Concat(command, []string{"internal/cli/exec", "internal/cli/watch", "internal/job/importer/slurm", "internal/launch", "internal/launch/srun"}),
	"oci/userns":              {},
	"internal/noded/inside":   {"oci/atomicfile"}, "internal/launch": {"internal/job"}, "internal/launch/rank": {"internal/launch", "internal/job"}, "internal/launch/srun": {"internal/launch", "internal/job"}, "internal/launch/scontrol": {"internal/launch", "internal/job"}, "internal/launch/sbcast": {"internal/launch", "internal/launch/srun", "internal/job"}, "internal/launch/program": {"internal/launch", "internal/launch/sbcast", "internal/launch/rank", "internal/launch/srun", "internal/launch/scontrol", "internal/launch/tool"}, "internal/launch/tool": {"internal/api"}, "internal/noded/launches": {"internal/launch"},
	"internal/control/launches": {"sched", "internal/job", "internal/state"},
	"oci/sysfilter":             {},
	"oci/rootfs":                {},
	"oci/apparmor":              {},
	"internal/noded/account":    {"internal/job", "internal/noded/reason", "oci/atomicfile", "oci/userns", "internal/node", "internal/units"},
	"internal/ctld/ids":         {"internal/ctld/loop", "internal/ctld/wire", "internal/node", "internal/state"},
	"internal/control/moments":  {"sched", "internal/job"}, "internal/control/partition": {"sched", "sched/words", "internal/job", "internal/state"},
	"internal/control/need":  {"internal/job", "internal/state"},
	"internal/control/amend": {"sched", "internal/job", "internal/state"},
	"internal/control/quota": {"sched", "internal/job", "internal/state"},
	"internal/control/recur": {"sched", "sched/spec", "internal/job", "internal/state"},
	"internal/ctld/notice":   {},
	"internal/ctld/conns":    {"internal/api", "internal/ctld/notice"},
	"internal/ctld/fair":     {},
	"internal/ctld/places":   {"internal/ctld/fair"},
	"internal/noded/disk":    {"cgroups", "internal/client", "internal/job", "internal/noded/config", "internal/sparse"},
	"oci/hostnet":            {"cgroups", "oci/netns"},
}

// command is what each command of the suite may import.
var command = []string{"internal/cli", "internal/cli/exit", "internal/cli/human", "internal/cli/jobs", "internal/cli/table", "internal/client", "internal/api", "internal/job", "internal/units"}

// unruled packages test the whole and may import anything.
var unruled = []string{"internal/e2e", "internal/chaos", "internal/fleet"}

// pure packages take now, seed and input and return values.
var pure = []string{"sched", "accounting", "internal/job", "internal/job/indexes", "internal/job/importer", "internal/units", "internal/control", "internal/control/ahead", "internal/control/ask", "internal/control/fit", "internal/control/idle", "internal/control/picture", "internal/control/ranks", "internal/control/reboot", "internal/control/retry", "internal/control/amend", "internal/control/launches", "internal/control/need", "internal/control/moments", "internal/control/partition", "internal/control/recur", "internal/control/array", "internal/control/depend", "internal/sim", "oci/ref", "internal/node", "internal/state", "internal/document", "internal/settings", "internal/slurmsite", "internal/job/importer/foreign", "internal/job/importer/ccluster", "internal/job/importer/dstack", "internal/job/importer/kubernetes", "internal/job/importer/nvct", "internal/job/importer/slurm", "internal/job/importer/tao", "sched/fixed", "sched/nodes", "sched/predict", "sched/spec", "sched/words", "sched/due", "sched/licenses", "sched/mix", "internal/control/quota", "internal/ctld/fair"}

var (
	impure      = regexp.MustCompile(`^(os|net|net/http|sync|log|context|testing|unsafe)$|^(os|net/http|sync|log|runtime)/|^(math|crypto)/rand$`)
	impureTime  = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
	impureOther = regexp.MustCompile(`github\.com/(prometheus|cockroachdb/pebble|opencontainers/runc)/`)
	nodeOnly    = regexp.MustCompile(`^gbatch/(oci|oci/image|oci/image/socket|oci/image/unpack|oci/treesum|oci/changes|oci/netns|oci/hostnet|oci/overlay|oci/runtimes|oci/confine|oci/signals|oci/userns|oci/sysfilter|oci/rootfs|oci/apparmor|cgroups|internal/gpu|internal/noded|internal/noded/.*|internal/transfer)$|opencontainers/(runc|cgroups)|go-nvml`)
	s3Library   = regexp.MustCompile(`minio/minio-go`) // of the node daemon, and of the controller
)

type goPackage struct {
	ImportPath, Name, Doc, Dir string
	Imports, Deps              []string
	TestImports, XTestImports  []string
}

func (p goPackage) short() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-buildvcs=false", "-tags", "seccomp",
		"-json=ImportPath,Name,Doc,Dir,Imports,Deps,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		if exec.Command("git", "check-ignore", "-q", p.Dir).Run() != nil {
			ps = append(ps, p)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := below[p.short()]
		free := strings.HasPrefix(p.short(), "cmd/") || strings.HasPrefix(p.short(), "scripts/") ||
			p.short() == "gbatch" || slices.Contains(unruled, p.short())
		if !known && !free {
			t.Errorf("%s: no rule says what it may import; add it to the table in tidy_test.go", p.ImportPath)
		}
		for _, i := range p.Imports {
			ours, is := strings.CutPrefix(i, module)
			if is && known && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, i)
			}
			if is && strings.HasPrefix(ours, "cmd/") {
				t.Errorf("%s imports the program %s", p.ImportPath, i)
			}
		}
	}
}

func TestImportsStayWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t) {
		s := p.short()
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "github.com/cockroachdb/pebble") && !strings.HasPrefix(s, "internal/store") {
				t.Errorf("%s imports %s: only internal/store does", p.ImportPath, i)
			}
			if strings.HasPrefix(i, "github.com/alecthomas/kong") && !strings.HasPrefix(s, "internal/cli") && !strings.HasPrefix(s, "cmd/") {
				t.Errorf("%s imports %s: only cmd and internal/cli do", p.ImportPath, i)
			}
			if !strings.HasSuffix(s, "test") && s != "internal/e2e" && (i == "testing" || strings.HasSuffix(i, "/imagetest") && !strings.HasPrefix(s, "scripts/")) {
				t.Errorf("%s imports %s outside its tests", p.ImportPath, i)
			}
		}
		if strings.HasPrefix(s, "internal/ctld") || strings.HasPrefix(s, "internal/cli") || strings.HasPrefix(s, "cmd/") && s != "cmd/gnoded" {
			for _, d := range p.Deps {
				if strings.HasPrefix(s, "internal/cli") && s3Library.MatchString(d) {
					t.Errorf("%s depends on %s, which only daemons may", p.ImportPath, d)
				}
				if nodeOnly.MatchString(d) {
					t.Errorf("%s depends on %s, which only the node daemon may", p.ImportPath, d)
				}
			}
		}
		if slices.Contains(pure, s) {
			checkPureImports(t, p)
		}
	}
}

func checkPureImports(t *testing.T, p goPackage) {
	for _, i := range p.Imports {
		if impure.MatchString(i) {
			t.Errorf("%s is pure and imports %s", p.ImportPath, i)
		}
	}
	for _, d := range p.Deps {
		if impureOther.MatchString(d) {
			t.Errorf("%s is pure and depends on %s", p.ImportPath, d)
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && p.ImportPath != "gbatch" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// source is one Go file of the tree.
type source struct {
	name string
	text []byte
	file *ast.File
	fset *token.FileSet
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// files calls f with each file of the tree that git does not ignore, by its
// path from here.
func files(t *testing.T, f func(name string, text []byte)) {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("SKIPPED: this is no git checkout: ", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		f(name, text)
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	files(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" {
			return
		}
		s := source{name: name, text: text, fset: token.NewFileSet()}
		var err error
		if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments); err != nil {
			t.Errorf("parse: %v", err)
			return
		}
		out = append(out, s)
	})
	return out
}

// What fits a screen, and a head.
const (
	maxFile, wantFile = 500, 400
	maxFunc           = 70
	maxTestFunc       = 125
	maxParams         = 4 // a context and a *testing.T do not count
)

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		switch n := bytes.Count(s.text, []byte("\n")); {
		case n > maxFile:
			t.Errorf("%s has %d lines, more than %d", s.name, n, maxFile)
		case n > wantFile:
			t.Logf("%s has %d lines; think of splitting it", s.name, n)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				checkFunc(t, s, f)
			}
		}
	}
}

func checkFunc(t *testing.T, s source, f *ast.FuncDecl) {
	limit := maxFunc
	if s.test() {
		limit = maxTestFunc
	}
	if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > limit {
		t.Errorf("%s:%d: %s has %d lines, more than %d", s.name, s.line(f.Pos()), f.Name.Name, n, limit)
	}
	if n := countParams(f.Type.Params); n > maxParams {
		t.Errorf("%s:%d: %s has %d parameters; use a struct of options", s.name, s.line(f.Pos()), f.Name.Name, n)
	}
}

func countParams(l *ast.FieldList) int {
	n := l.NumFields()
	if n == 0 {
		return 0
	}
	kind := l.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if sel, ok := kind.(*ast.SelectorExpr); ok && slices.Contains([]string{"Context", "T", "B", "TB", "F"}, sel.Sel.Name) {
		n--
	}
	return n
}

func TestFormat(t *testing.T) {
	for _, s := range sources(t) {
		if want, err := format.Source(s.text); err != nil || !bytes.Equal(want, s.text) {
			t.Errorf("%s is not formatted by gofmt", s.name)
		}
	}
}

func TestPureCode(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !slices.Contains(pure, path.Dir(filepath.ToSlash(s.name))) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := impureNode(n); what != "" {
				t.Errorf("%s:%d: %s in pure code", s.name, s.line(n.Pos()), what)
			}
			return true
		})
	}
}

func impureNode(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
		return "a channel"
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		if x != nil && x.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
		if x != nil && x.Name == "rand" && !strings.HasPrefix(n.Sel.Name, "New") && ast.IsExported(n.Sel.Name) && n.Sel.Name != "Rand" && n.Sel.Name != "Source" {
			return "rand." + n.Sel.Name
		}
	}
	return ""
}
