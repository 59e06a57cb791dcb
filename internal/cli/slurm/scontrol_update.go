package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
	"gbatch/internal/job/times"
)

// act does one thing with jobs: scontrol hold 12 13, scontrol requeue 12_3.
func (c *control) act(ctx context.Context, word, action string, args []string) error {
	ids := jobList(args)
	if len(ids) == 0 {
		return exit.Usagef("too few arguments for keyword:%s", word)
	}
	for i, id := range ids {
		if _, value, ok := strings.Cut(id, "="); ok { // jobid=12
			ids[i] = value
		}
	}
	if word == "hold" || word == "uhold" || word == "release" {
		named, err := c.named(ctx, ids)
		if err != nil {
			return err
		}
		ids = named
	}
	return c.do(ctx, action, &api.ActionRequest{IDs: ids})
}

// named puts the numbers of jobs in the place of name=NAME, as hold and release
// take it.
func (c *control) named(ctx context.Context, ids []string) (out []string, err error) {
	for _, id := range ids {
		if _, err := strconv.Atoi(strings.TrimRight(id, "_0123456789[]-,%")); err == nil || strings.Trim(id, "_0123456789[]-,%") == "" {
			out = append(out, id)
			continue
		}
		l, err := c.app.Client.Jobs(ctx, client.JobFilter{Name: id})
		if err != nil {
			return nil, err
		}
		if len(l.Jobs) == 0 {
			return nil, fmt.Errorf("%s %s", invalidID, id)
		}
		for _, j := range l.Jobs {
			out = append(out, jobs.ID(&j))
		}
	}
	return out, nil
}

// do asks for an action and says what could not be done, as Slurm does.
func (c *control) do(ctx context.Context, action string, q *api.ActionRequest) error {
	r, err := c.app.Client.Action(ctx, action, q)
	if err != nil {
		return err
	}
	failed := false
	for _, x := range r.Results {
		if x.Error == nil {
			continue
		}
		failed = true
		if !c.quiet {
			c.app.Say("%s for job %s", pick(x.Error.Code == api.CodeNotFound, invalidID, x.Error.Error()), x.ID)
		}
	}
	if failed {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// settings are the words KEY=VALUE of scontrol update, by key in small letters.
type settings struct {
	keys   []string
	values map[string]string
}

func parseSettings(args []string) (settings, error) {
	s := settings{values: map[string]string{}}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return s, exit.Usagef("Invalid input: %s; want KEY=VALUE", arg)
		}
		key = strings.TrimSuffix(strings.ToLower(key), "+")
		s.keys = append(s.keys, key)
		s.values[key] = value
	}
	return s, nil
}

// take is the value of a setting and whether it was there; it is not left over.
func (s *settings) take(names ...string) (value string, ok bool) {
	for _, name := range names {
		if v, there := s.values[name]; there {
			value, ok = v, true
			delete(s.values, name)
		}
	}
	return value, ok
}

// rest is an error that names what is not played.
func (s *settings) rest(instead map[string]string, known string) error {
	for _, key := range s.keys {
		if _, left := s.values[key]; !left {
			continue
		}
		for name, text := range instead {
			if name == key {
				return exit.Usagef("Update of this parameter is not supported: %s; %s", key, text)
			}
		}
		return exit.Usagef("Update of this parameter is not supported: %s; there are %s", key, known)
	}
	return nil
}

// update changes jobs or nodes: scontrol update JobId=12 TimeLimit=30.
func (c *control) update(ctx context.Context, args []string) error {
	if len(args) > 1 && !strings.Contains(args[0], "=") { // update job 12 TimeLimit=30
		args = append([]string{args[0] + "=" + args[1]}, args[2:]...)
	}
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	if ids, ok := s.take("jobid", "job"); ok {
		return c.updateJobs(ctx, jobList([]string{ids}), s)
	}
	if names, ok := s.take("nodename", "node"); ok {
		return c.updateNodes(ctx, names, s)
	}
	if name, ok := s.take("partitionname", "partition"); ok {
		state, _ := s.take("state")
		return exit.Usagef("scontrol update PartitionName=%s is not played here, as partitions are the site's rules: %s in gctld.yaml of the controller, then gadm policy reload; gadm drain takes nodes out", name, partitionRule(name, state))
	}
	if _, ok := s.take("reservationname", "reservation"); ok {
		return exit.Usagef("scontrol update ReservationName is not played here: use gadm unreserve and gadm reserve")
	}
	return exit.Usagef("No valid entity in update command; it begins with JobId= or NodeName=")
}

// partitionRule is what to write for a state of a partition.
func partitionRule(name, state string) string {
	if state == "" {
		return fmt.Sprintf("change partition %s", name)
	}
	return fmt.Sprintf("write \"state: %s\" at partition %s", strings.ToLower(state), name)
}

// jobUpdates is what cannot be changed of a job, with what to do instead.
var jobUpdates = map[string]string{
	"partition": submitAgain, "admincomment": "there is one comment: Comment", "numnodes": submitAgain, "reqnodes": submitAgain,
	"features": submitAgain, "gres": submitAgain, "dependency": submitAgain, "starttime": submitAgain, "eligibletime": submitAgain, "deadline": submitAgain, "reqnodelist": submitAgain,
	"excnodelist": submitAgain, "reservationname": submitAgain, "workdir": submitAgain, "stdout": submitAgain, "requeue": submitAgain, "arraytaskthrottle": submitAgain,
	"numcpus": "of a job that runs gqueue update --cpus changes it", "mincpusnode": "of a job that runs gqueue update --cpus changes it", "minmemorynode": "of a job that runs gqueue update --mem changes it",
	"minmemorycpu": "of a job that runs gqueue update --mem changes it", "endtime": "use TimeLimit",
}

const submitAgain = "it is part of its document: cancel it and submit it again"

func (c *control) updateJobs(ctx context.Context, ids []string, s settings) error {
	var change api.JobChange
	hold := false
	if v, ok := s.take("priority"); ok {
		if v != "0" {
			return exit.Usagef("Priority=%s is not played here, as priorities are made of what waited and was used: Nice=N takes off or, with a minus, adds, and Priority=0 holds", v)
		}
		hold = true
	}
	if v, ok := s.take("nice"); ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			return exit.Usagef("Invalid Nice value %q", v)
		}
		n = -n
		change.Priority = &n
	}
	if v, ok := s.take("timelimit"); ok {
		limit, err := c.timeLimit(ctx, ids, v)
		if err != nil {
			return err
		}
		change.LimitS = limit
	}
	if v, ok := s.take("timemin"); ok {
		d, limited, err := times.ParseSlurmLimit(v)
		if err == nil && !limited && v != "0" {
			err = errors.New("want the least limit that will do, or 0 for none")
		}
		if err != nil {
			return exit.Usagef("Invalid TimeMin value %q: %w", v, err)
		}
		least := int64(d)
		change.LimitMinS = &least
	}
	change.Name, _ = s.take("jobname", "name")
	change.Project, _ = s.take("account")
	change.QOS, _ = s.take("qos")
	if v, ok := s.take("comment"); ok {
		change.Comment = &v
	}
	if err := s.rest(jobUpdates, "TimeLimit, TimeMin, Nice, JobName, Account, QOS, Comment, Priority=0"); err != nil {
		return err
	}
	if change != (api.JobChange{}) {
		if err := c.do(ctx, "update", &api.ActionRequest{IDs: ids, Change: &change}); err != nil {
			return err
		}
	}
	if hold {
		return c.do(ctx, "hold", &api.ActionRequest{IDs: ids})
	}
	return nil
}

// timeLimit reads a limit, or with a sign before it what is added to the job's.
func (c *control) timeLimit(ctx context.Context, ids []string, text string) (int64, error) {
	sign := int64(0)
	switch {
	case strings.HasPrefix(text, "+"):
		sign = 1
	case strings.HasPrefix(text, "-"):
		sign = -1
	}
	d, limited, err := times.ParseSlurmLimit(strings.TrimLeft(text, "+-"))
	if err == nil && !limited {
		err = errors.New("there is no way to take a limit away: give a long one")
	}
	if err != nil {
		return 0, exit.Usagef("Invalid TimeLimit value %q: %w", text, err)
	}
	if sign == 0 {
		return int64(d), nil
	}
	if len(ids) != 1 {
		return 0, exit.Usagef("TimeLimit=%s: with a sign it is for one job at a time", text)
	}
	j, err := c.app.Client.Job(ctx, ids[0], client.JobOptions{})
	if err != nil {
		return 0, err
	}
	if limit := j.LimitS + sign*int64(d); limit > 0 {
		return limit, nil
	}
	return 0, exit.Usagef("Invalid TimeLimit value %q: the job has %s", text, limitText(j.LimitS, "none"))
}

// updateNodes takes nodes out of scheduling, or puts them back.
func (c *control) updateNodes(ctx context.Context, list string, s settings) error {
	state, _ := s.take("state")
	reason, _ := s.take("reason")
	if err := s.rest(map[string]string{"weight": "set policy.placement in gctld.yaml", "features": "set features in the node's gnoded.yaml", "gres": "the node finds its GPUs", "comment": "give it as Reason"},
		"State=DRAIN with Reason, State=RESUME"); err != nil {
		return err
	}
	nodes, err := jobs.ParseNodes([]string{list})
	if err != nil {
		return err
	}
	switch state = strings.ToUpper(state); {
	case slices.Contains([]string{"RESUME", "UNDRAIN", "IDLE"}, state):
		return c.eachNode(nodes, func(name string) error { return c.app.Client.Resume(ctx, name, api.DrainRequest{}) })
	case state == "DRAIN" && reason == "":
		return fmt.Errorf("You must specify a reason when DOWNING or DRAINING a node. Request denied") //nolint:staticcheck // Slurm's words
	case state == "DRAIN":
		return c.eachNode(nodes, func(name string) error {
			_, err := c.app.Client.Drain(ctx, name, api.DrainRequest{Reason: reason})
			return err
		})
	}
	return exit.Usagef("State=%s is not played here: DRAIN lets the node's jobs end, RESUME puts it back; gcancel ends the jobs of a node that must be empty now", state)
}

// eachNode does something to each node, and goes on with the others where one
// is not known.
func (c *control) eachNode(nodes []string, do func(name string) error) error {
	var failed error
	for _, name := range nodes {
		err := do(name)
		if client.IsCode(err, api.CodeNotFound) {
			err = fmt.Errorf("Invalid node name specified: %s", name) //nolint:staticcheck // Slurm's words
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// reboot has nodes rebooted when they are empty:
// scontrol reboot [ASAP] [nextstate=RESUME] [reason=TEXT] NODES. Until then they take
// no more jobs, which is what ASAP asks for.
func (c *control) reboot(ctx context.Context, word string, args []string) error {
	reason, list, asap := "reboot requested by scontrol", "", false
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case strings.EqualFold(arg, "asap"):
			asap = true
		case ok && strings.EqualFold(key, "nextstate") && strings.EqualFold(value, "resume"):
		case ok && strings.EqualFold(key, "nextstate"):
			return exit.Usagef("nextstate=%s is not played here: a node takes jobs again when it is back and its checks have passed. To keep it out, drain it first by scontrol update NodeName=... State=DRAIN Reason=..., then reboot it: it stays drained", value)
		case ok && strings.EqualFold(key, "reason"):
			reason = value
		case list == "":
			list = arg
		default:
			return exit.Usagef("scontrol reboot wants one list of nodes; %q is too much", arg)
		}
	}
	nodes, err := jobs.ParseNodes([]string{list})
	if err != nil {
		return err
	}
	switch {
	case len(nodes) == 0 || strings.EqualFold(list, "ALL"):
		return exit.Usagef("scontrol %s wants a list of nodes", word)
	case word == "cancel_reboot":
		return c.eachNode(nodes, func(name string) error { return c.app.Client.Resume(ctx, name, api.DrainRequest{Reboot: true}) })
	}
	err = c.eachNode(nodes, func(name string) error {
		_, err := c.app.Client.Drain(ctx, name, api.DrainRequest{Reason: reason, Reboot: true})
		return err
	})
	if err == nil && !asap {
		c.app.Say("scontrol: %s takes no more jobs until it was rebooted, as with ASAP", list)
	}
	return err
}
