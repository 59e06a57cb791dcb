package job

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gbatch/internal/document"
)

// The tables of the document: one row for each key of each object. To add a
// field, add it to Spec, a row here, a section to docs/job-format.md and one
// good and one bad file to testdata.

var specFields = []field[Spec]{
	{"name", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Name, plain(1, maxNameRunes)) }, true},
	{"description", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Description, description) }, false},
	{"owner", readOwner, false},
	{"request", func(d *decoder, n *node, s *Spec) { document.Object(d, n, requestFields, &s.Request) }, true},
	{"gbatch", readGbatch, false},
	{"deploymentEnvironment", readDeployment, false},
}

var ownerFields = []field[Owner]{
	{"projectUrn", func(d *decoder, n *node, o *Owner) { d.str(n, &o.ProjectURN, projectURN) }, false},
	{"userUrn", func(d *decoder, n *node, o *Owner) { d.str(n, &o.UserURN, plain(0, 256)) }, false},
	{"userEmail", func(d *decoder, n *node, o *Owner) { d.str(n, &o.UserEmail, plain(0, 256)) }, false},
}

var requestFields = []field[Request]{
	{"resources", readResources, true},
	{"docker", readDocker, true},
	{"scheduling", readScheduling, false},
	{"extra", readExtra, false},
}

var resourcesFields = []field[Resources]{
	{"clusterId", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.ClusterID, 0, maxClusterID) }, false},
	{"slaveName", func(d *decoder, n *node, r *Resources) { d.str(n, &r.SlaveName, plain(1, 253)) }, false},
	{"gpus", func(d *decoder, n *node, r *Resources) { readGPUs(d, unquoted(n), r) }, false},
	{"cpus", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.CPUs, 1, maxCPUs) }, false},
	{"cpuMemoryGb", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.CPUMemoryGB, 1, maxMemoryGB) }, false},
	{"gpuModel", func(d *decoder, n *node, r *Resources) { d.strs(n, &r.GPUModel, plain(2, 128)) }, false},
	{"gpuMemoryGb", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.GPUMemoryGB, 1, maxGPUMemoryGB) }, false},
	{"minCudaVersion", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.MinCudaVersion, 0, maxCudaVersion) }, false},
	{"slaveInstanceId", readInstance, false},
	{"features", func(d *decoder, n *node, r *Resources) { d.strs(n, &r.Features, plain(2, 128)) }, false},
}

var dockerFields = []field[Docker]{
	{"image", readImage, false},
	{"command", readCommand, false},
	{"environment", readEnvironment, false},
	{"storage", func(d *decoder, n *node, c *Docker) { readMounts(d, n, c, storageFields) }, false},
	{"portMappings", readPorts, false},
	{"workingDir", func(d *decoder, n *node, c *Docker) { d.absolute(n, &c.WorkingDir) }, false},
	{"user", func(d *decoder, n *node, c *Docker) { d.str(n, &c.User, dockerUser) }, false},
	{"groupAdd", func(d *decoder, n *node, c *Docker) { d.strs(n, &c.GroupAdd, nameOrID) }, false},
	{"projectGidVariableName", func(d *decoder, n *node, c *Docker) { d.str(n, &c.ProjectGIDVariable, variableName) }, false},
}

var schedulingFields = []field[Scheduling]{
	{"interactive", func(d *decoder, n *node, s *Scheduling) { d.boolean(n, &s.Interactive) }, false},
	{"minDuration", func(d *decoder, n *node, s *Scheduling) { d.duration(n, &s.MinDuration, 1) }, false},
	{"killableAfter", func(d *decoder, n *node, s *Scheduling) { d.duration(n, &s.MinDuration, 1) }, false},
	{"maxDuration", func(d *decoder, n *node, s *Scheduling) { d.duration(n, &s.MaxDuration, 60) }, false},
	{"restartable", func(d *decoder, n *node, s *Scheduling) { d.boolean(n, &s.Restartable) }, false},
	{"allowHaltWithoutSignal", func(d *decoder, n *node, s *Scheduling) { d.boolean(n, &s.AllowHaltWithoutSignal) }, false},
	{"notBefore", func(d *decoder, n *node, s *Scheduling) { d.instant(n, &s.NotBefore) }, false},
	{"notAfter", func(d *decoder, n *node, s *Scheduling) { d.instant(n, &s.NotAfter) }, false},
	{"reservationIds", func(d *decoder, n *node, s *Scheduling) { d.strs(n, &s.ReservationIDs, uuid) }, false},
	{"reservationId", func(d *decoder, n *node, s *Scheduling) { d.strs(n, &s.ReservationIDs, uuid) }, false},
	{"maxSimultaneousJobs", func(d *decoder, n *node, s *Scheduling) {
		s.MaxSimultaneousJobs = &bucket{}
		document.Object(d, n, bucketFields, s.MaxSimultaneousJobs)
	}, false},
}

var bucketFields = []field[bucket]{
	{"bucketName", func(d *decoder, n *node, b *bucket) { d.str(n, &b.Name, bucketName) }, true},
	{"bucketMax", func(d *decoder, n *node, b *bucket) { d.integer(unquoted(n), &b.Max, 1, maxBucket) }, true},
}

// refused holds the keys of GPULab's documents that are understood and not
// accepted, with what to do instead. As null they are accepted.
var refused = map[string]string{
	"uuid":         isRecord,
	"state":        isRecord,
	"restartInfo":  isRecord,
	"userDetails":  isRecord,
	"userId":       isRecord,
	"projectId":    isRecord,
	"experimentId": isRecord,
}

const isRecord = "it is part of a submitted job's record: remove it"

// elsewhere is the object that a key belongs to which people put into another
// one, or "".
func elsewhere(key string) string {
	for _, object := range []struct {
		place string
		keys  []string
	}{
		{"gbatch", document.Names(gbatchFields)},
		{"request", document.Names(requestFields)},
		{"request.scheduling", document.Names(schedulingFields)},
		{"request.docker", document.Names(dockerFields)},
		{"request.resources", document.Names(resourcesFields)},
	} {
		if slices.Contains(object.keys, key) {
			return object.place
		}
	}
	return ""
}

func readDeployment(d *decoder, n *node, _ *Spec) {
	var name string
	if d.str(n, &name, plain(0, maxNameRunes)) {
		d.Note(n, "is not used: a job runs where it is submitted")
	}
}

func readOwner(d *decoder, n *node, s *Spec) {
	var o Owner
	if !document.Object(d, n, ownerFields, &o) || o == (Owner{}) {
		return
	}
	if o.UserURN != "" || o.UserEmail != "" {
		d.Note(n, "userUrn and userEmail are kept for information; the job belongs to whoever submits it")
	}
	s.Owner = &o
}

// readResources reads what a job needs. GPULab's number of a machine's daemon,
// which changes at each of its starts, says nothing beside the machine's name.
func readResources(d *decoder, n *node, r *Request) {
	if !document.Object(d, n, resourcesFields, &r.Resources) || r.Resources.SlaveName != "" {
		return
	}
	for _, kid := range n.Kids {
		if kid.Key == "slaveInstanceId" && kid.Kind == document.StringKind && kid.Text != "" {
			d.Problem(kid, "names a daemon that no node here has", "name the machine with \"slaveName\"")
		}
	}
}

func readInstance(d *decoder, n *node, _ *Resources) {
	var id string
	if d.str(n, &id, plain(0, 253)) && id != "" {
		d.Note(n, "is not used: slaveName says which machine")
	}
}

// readGPUs reads -1, a whole number, or a share of one GPU in hundredths.
func readGPUs(d *decoder, n *node, r *Resources) {
	x, ok := d.Number(n, "a number")
	if !ok {
		return
	}
	hundredths := math.Round(x * 100)
	switch {
	case x > maxGPUs:
		d.Problem(n, fmt.Sprintf("must be at most %d, is %s", maxGPUs, document.Shorten(n.Text)), "")
	case x == -1 || x >= 0 && x == math.Trunc(x):
		r.GPUs = x + 0 // a negative zero becomes zero
	case 0 < x && x < 1 && hundredths >= 1 && math.Abs(x*100-hundredths) < 1e-9:
		r.GPUs = hundredths / 100
	default:
		d.Problem(n, fmt.Sprintf("is %s, which is no number of GPUs", document.Shorten(n.Text)),
			"write 0 for none, a whole number, -1 for all GPUs of one node, or a share of one GPU from 0.01 to 0.99 in steps of 0.01")
	}
}

// absolute reads an absolute path and keeps it without doubled and trailing
// slashes.
func (d *decoder) absolute(n *node, to *string) {
	if d.str(n, to, absolutePath) {
		*to = path.Clean(*to)
	}
}

// description may have several lines.
func description(s string) string {
	if n := utf8.RuneCountInString(s); n > maxDescriptionRunes {
		return fmt.Sprintf("must have at most %d characters, has %d", maxDescriptionRunes, n)
	}
	if strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' && c != '\r' }) {
		return "must not contain control characters other than line breaks and tabs"
	}
	return ""
}

// projectURN wants urn:publicid:IDN+AUTHORITY+project+NAME, or only NAME.
func projectURN(s string) string {
	name := s
	if strings.HasPrefix(s, "urn:") {
		parts := strings.Split(s, "+")
		if len(parts) != 4 || parts[0] != "urn:publicid:IDN" || parts[1] == "" || parts[2] != "project" || plain(1, 256)(s) != "" {
			return fmt.Sprintf(`is %s: want a project's name, or "urn:publicid:IDN+AUTHORITY+project+NAME"`, document.Quote(s))
		}
		name = parts[3]
	}
	if name != "" && !document.IsNameByte(name[0]) {
		return fmt.Sprintf("names the project %s: it must start with a letter, a digit or _", document.Quote(name))
	}
	if wrong := word(".-@")(name); wrong != "" {
		return "names a project that " + wrong
	}
	return ""
}

// dockerUser wants a name or id, with an optional :group.
func dockerUser(s string) string {
	user, group, ok := strings.Cut(s, ":")
	if word(".-")(user) != "" || ok && word(".-")(group) != "" {
		return fmt.Sprintf("is %s: want a user's name or id, or user:group", document.Quote(s))
	}
	if wrong := nameOrID(user); wrong != "" || !ok {
		return wrong
	}
	return nameOrID(group)
}

// nameOrID wants a user or a group of the image: a name, or a number that the
// kernel has and that means somebody.
func nameOrID(s string) string {
	if wrong := word(".-")(s); wrong != "" {
		return wrong
	}
	if n, err := strconv.ParseUint(s, 10, 64); s[0] == '-' || n >= math.MaxUint32 && !errors.Is(err, strconv.ErrSyntax) {
		return fmt.Sprintf("has %s, which is no id: these go from 0 to %d", s, uint32(math.MaxUint32-1))
	}
	return ""
}

func bucketName(s string) string {
	if s != "" && !document.IsNameByte(s[0]) {
		return "must start with a letter, a digit or _, is " + document.Quote(s)
	}
	return word("-@.")(s)
}

// uuid wants the text form of a UUID, of any version.
func uuid(s string) string {
	if !IsUUID(s) {
		return fmt.Sprintf("is %s, which is no UUID such as a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8", document.Quote(s))
	}
	return ""
}

// IsUUID says that s is the text form of a UUID.
func IsUUID(s string) bool {
	for i := range len(s) {
		dash, hex := i == 8 || i == 13 || i == 18 || i == 23, isDigit(s[i]) || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'f'
		if dash != (s[i] == '-') || !dash && !hex {
			return false
		}
	}
	return len(s) == 36
}
