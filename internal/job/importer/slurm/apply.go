package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/indexes"
	"gbatch/internal/job/nodelist"
	"gbatch/internal/job/times"
)

// What single options do.

// partition takes a cluster's number, or names of partitions of which one will do.
func (s *script) partition(v string) error {
	s.spec.Request.Resources.ClusterID, s.spec.Gbatch.Partitions = 0, nil
	if v == "" { // the default one
		return nil
	}
	if id, err := strconv.Atoi(v); err == nil {
		if id < 1 {
			return errors.New("want a cluster's number or a partition's name")
		}
		s.spec.Request.Resources.ClusterID = id
		return nil
	}
	for name := range strings.SplitSeq(v, ",") {
		if name == "" {
			return errors.New("has an empty name")
		}
		s.spec.Gbatch.Partitions = append(s.spec.Gbatch.Partitions, name)
	}
	return nil
}

// qos takes the name of a service class. Slurm's own class is called normal, and
// is what a job has that names none.
func (s *script) qos(v string) error {
	if s.spec.Gbatch.QOS = v; v == "normal" {
		s.spec.Gbatch.QOS = ""
		s.note(0, "--qos", "normal is the class that a job has without it")
	}
	return nil
}

// priority takes what is added to a job's priority, or taken from it if sign is -1.
func priority(sign int) func(*script, string) error {
	return func(s *script, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < -job.MaxPriority || n > job.MaxPriority {
			return fmt.Errorf("want a whole number from -%d to %[1]d", job.MaxPriority)
		}
		s.spec.Gbatch.Priority = sign * n
		return nil
	}
}

// maxNodes is how many a script may name.
const maxNodes = 10_000

func (s *script) nodeCount(v string) error {
	low, high, ranged := strings.Cut(v, "-")
	n, err := wholeNumber(low)
	most := n
	if err != nil || n < 1 || n > maxNodes {
		return errors.New("want a number of nodes, or LEAST-MOST")
	}
	if ranged {
		if most, err = wholeNumber(high); err != nil || most < n {
			return errors.New("want LEAST-MOST")
		}
	}
	s.nodes, s.mostNodes, s.nodesGiven = int(n), int(min(most, maxNodes)), true
	return nil
}

func (s *script) nodelist(v string) error {
	if strings.Contains(v, "/") {
		return errors.New("is a file: name the nodes")
	}
	names, err := nodelist.Parse(v)
	if err != nil {
		return err
	}
	s.spec.Gbatch.NodeNames = names
	return nil
}

// licenses takes names of the site's counters, each with how many of it: NAME or
// NAME:COUNT, with commas between.
func (s *script) licenses(v string) error {
	list := map[string]int{}
	for one := range strings.SplitSeq(v, ",") {
		name, count, counted := strings.Cut(one, ":")
		n, err := 1, error(nil)
		if counted {
			n, err = strconv.Atoi(count)
		}
		switch {
		case strings.ContainsAny(one, ";|"):
			return errors.New("has licences of which one would do: name the ones that the job takes, with commas between")
		case strings.Contains(name, "@"):
			return fmt.Errorf("%s is a licence of another server: name it as the site does, without @ and what follows", name)
		case name == "" || err != nil || n < 1 || list[name] > 0:
			return errors.New("want NAME or NAME:COUNT, with commas between")
		}
		list[name] = n
	}
	s.spec.Gbatch.Licenses = list
	return nil
}

func (s *script) timeLimit(v string) error {
	d, limited, err := times.ParseSlurmLimit(v)
	if err != nil {
		return err
	}
	if !limited {
		s.note(0, "--time", "is no limit: the site's longest is used")
		return nil
	}
	s.spec.Request.Scheduling.MaxDuration = d
	s.spec.Gbatch.LimitScope = job.LimitAttempt // Slurm counts anew after a requeue
	return nil
}

// before has a job fail that can no longer end by its deadline, as Slurm removes it.
func (s *script) before() {
	sched := &s.spec.Request.Scheduling
	switch {
	case s.deadline == 0:
	case sched.MaxDuration == 0:
		s.problem(0, "--deadline", "wants --time beside it: from when on the job can no longer end in time follows from both", "give --time")
	default:
		sched.NotAfter = s.deadline - job.Instant(sched.MaxDuration)*1000
	}
}

func (s *script) array(v string) error {
	set, most, err := indexes.ParseArray(bare(v))
	if err == nil {
		s.spec.Gbatch.Tasks = &job.Tasks{Indexes: set.String(), Parallelism: most}
	}
	return err
}

// bare takes off what Slurm does of an array's indexes: brackets around each part, and a
// percent sign that no number follows.
func bare(v string) string {
	parts := strings.Split(strings.TrimSuffix(v, "%"), ",")
	for i, p := range parts {
		list, most, bounded := strings.Cut(p, "%")
		if list = strings.TrimSuffix(strings.TrimPrefix(list, "["), "]"); bounded {
			list += "%" + strings.TrimSuffix(most, "]")
		}
		parts[i] = list
	}
	return strings.Join(parts, ",")
}

func (s *script) dependency(v string) (err error) {
	if v == "none" {
		return nil
	}
	s.spec.Gbatch.Dependencies, s.spec.Gbatch.DependOnAny, err = job.ParseDependencies(v)
	s.spec.Gbatch.DependOnAny = s.spec.Gbatch.DependOnAny && len(s.spec.Gbatch.Dependencies) > 1
	return err
}

// signal takes [{R|B}:]SIGNAL[@SECONDS].
func (s *script) signal(v string) error {
	who, rest, ok := strings.Cut(v, ":")
	if !ok {
		who, rest = "", v
	}
	if strings.Trim(who, "RB") != "" {
		return errors.New("want [B:]SIGNAL[@SECONDS]")
	}
	word, at, timed := strings.Cut(rest, "@")
	seconds := int64(60)
	if timed {
		n, err := wholeNumber(at)
		if err != nil || n < 1 || n > 65535 {
			return errors.New("want a number of seconds from 1 to 65535 behind the @")
		}
		seconds = n
	}
	word = strings.TrimPrefix(strings.ToUpper(word), "SIG")
	word = cmp.Or(map[string]string{"10": "USR1", "12": "USR2", "1": "HUP", "2": "INT", "15": "TERM"}[word], word)
	s.spec.Gbatch.WarnSignal, s.spec.Gbatch.WarnBefore = word, job.Duration(seconds)
	return nil
}

func (s *script) mounts(v string) error {
	all, err := Mounts(v)
	if err == nil {
		s.spec.Request.Docker.Storage = append(s.spec.Request.Docker.Storage, all...)
	}
	return err
}

func (s *script) network(v string) error {
	n := job.Network(v)
	if n != job.NetworkBridge && n != job.NetworkHost {
		return fmt.Errorf("want %s or %s", job.NetworkBridge, job.NetworkHost)
	}
	s.spec.Gbatch.Network = n
	return nil
}

// Mounts reads SRC:DST[:FLAGS] and SRC alone, with commas between.
func Mounts(v string) (all []job.Storage, err error) {
	for part := range strings.SplitSeq(v, ",") {
		f := strings.Split(part, ":")
		if len(f) > 3 || f[0] == "" {
			return nil, errors.New("want SOURCE:TARGET, or SOURCE:TARGET:ro")
		}
		m := job.Storage{HostPath: f[0], ContainerPath: f[0]}
		if len(f) > 1 {
			m.ContainerPath = f[1]
		}
		if len(f) == 3 {
			for flag := range strings.SplitSeq(f[2], "+") {
				switch flag {
				case "ro":
					m.ReadOnly = true
				case "rw":
				default:
					return nil, fmt.Errorf("has the flag %s: want ro or rw", document.Quote(flag))
				}
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// export takes NAME=VALUE, and NAME for a variable of whoever submits.
func (s *script) export(v string) error {
	if !strings.EqualFold(v, "ALL") {
		s.variable("SLURM_EXPORT_ENV", v)
		s.variable("SLURM_GET_USER_ENV", "1")
	}
	for part := range strings.SplitSeq(v, ",") {
		name, value, given := strings.Cut(part, "=")
		switch word := strings.ToUpper(name); {
		case word == "ALL" && !given && s.o.PassesOn:
			continue
		case word == "ALL" && !given:
			s.note(0, "--export", "ALL is not used: the container has its image's environment; name the variables that the job needs")
			continue
		case word == "NONE" && !given, word == "NIL" && !given:
			continue
		case !given:
			var ok bool
			if s.o.Env != nil {
				value, ok = s.o.Env(name)
			}
			if !ok { // as with Slurm, which has it unset then
				s.note(0, "--export", fmt.Sprintf("names the variable %s, which is not set where the job is submitted", document.Quote(name)))
				continue
			}
		}
		foreign.Set(&s.spec.Request.Docker.Environment, name, value)
	}
	return nil
}

// ExportsAll says whether the variables of the shell that a script is submitted from are
// to go along, as they are if --export says nothing else.
func ExportsAll(spec *job.Spec) bool {
	v, given := spec.Request.Docker.Environment["SLURM_EXPORT_ENV"]
	return !given || slices.ContainsFunc(strings.Split(v, ","), func(word string) bool { return strings.EqualFold(word, "ALL") })
}

// mails turns --mail-type and --mail-user into who is told of what.
func (s *script) mails() {
	if len(s.mailTypes) == 0 || slices.Contains(s.mailTypes, "NONE") {
		return
	}
	if s.mailUser == "" {
		s.note(0, "--mail-type", "is not used: nobody is told without --mail-user")
		return
	}
	if a, err := mail.ParseAddress(s.mailUser); err != nil || a.Address != s.mailUser || len(s.mailUser) > 254 {
		s.note(0, "--mail-user", fmt.Sprintf("is not used: %s is no mail address, so nobody is told", document.Quote(s.mailUser)))
		return
	}
	x := job.Notify{To: s.mailUser}
	for _, t := range s.mailTypes {
		events, known := mailEvents[t]
		switch g := s.spec.Gbatch; {
		case !known:
			s.note(0, "--mail-type", fmt.Sprintf("%s is not used: mails are sent for BEGIN, END, FAIL, REQUEUE and TIME_LIMIT, with _50, _80 and _90", document.Quote(t)))
		case t == "INVALID_DEPEND" && !slices.Contains(s.mailTypes, "END") && !slices.Contains(s.mailTypes, "ALL"):
			s.note(0, "--mail-type", "INVALID_DEPEND is not used: a job whose dependency cannot come true ends as CANCELLED, which END tells of")
		case strings.HasPrefix(t, "TIME_LIMIT_") && g.Tasks != nil && g.LimitScope != job.LimitJob:
			s.note(0, "--mail-type", t+" is not used: each task of an array has a time limit of its own, and mails are about the whole")
			continue
		}
		for _, e := range events {
			if !slices.Contains(x.On, e) {
				x.On = append(x.On, e)
			}
		}
	}
	if g := s.spec.Gbatch; len(x.On) > 0 {
		others := slices.DeleteFunc(slices.Clone(g.Notify), func(of job.Notify) bool { return of.To == x.To })
		g.Notify = append(others, x)
	}
}

// mailEvents is what of job.NotifyEvents each of sbatch's mail types asks for. ALL has
// those that it has there, which the time limit is not among.
var mailEvents = map[string][]string{
	"ALL": {"begin", "end", "fail", "requeue"}, "BEGIN": {"begin"}, "END": {"end"}, "FAIL": {"fail"}, "INVALID_DEPEND": {}, "REQUEUE": {"requeue"},
	"TIME_LIMIT": {"limit"}, "TIME_LIMIT_50": {job.Warning(50)}, "TIME_LIMIT_80": {job.Warning(80)}, "TIME_LIMIT_90": {job.Warning(90)},
}
