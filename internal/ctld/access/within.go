package access

import (
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control/launches"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// within is who asks from inside of a job: its user, with no more rights than any
// user has, whatever the user may do elsewhere. Only the node on which the job's rank
// runs may say so, and only while it runs there by what the controller has decided.
func (a *Authenticator) within(node Identity, text string) (Identity, *api.Error) {
	refused := Identity{User: node.User, Role: node.Role, From: node.From, Via: node.Via}
	words := strings.Fields(text)
	if len(words) != 3 {
		return refused, api.Errorf(api.CodeBadRequest, "the header %s is not NODE RANK UUID", api.HeaderWithin)
	}
	name := words[0]
	rank, err := job.ParseRankID(words[1])
	switch {
	case err != nil:
		return refused, api.Errorf(api.CodeBadRequest, "the header %s: %v", api.HeaderWithin, err)
	case !node.MayNode(name):
		return refused, api.Errorf(api.CodeDenied, "%s does not speak for jobs on node %s", node.User, name)
	case !a.rights.Conf().Batch.Commands:
		return refused, api.Errorf(api.CodeDenied, "this site does not let jobs call sbatch and the like (batch.commands)").
			WithHint("call it on the submitting machine")
	}
	j := a.job(rank.Job)
	if j != nil && !sameJob(j.Identity(), words[2]) {
		j = nil
	}
	if refusal := launches.Inside(j, name, rank); refusal != nil {
		return refused, api.Errorf(api.CodeDenied, "%s", refusal.Message)
	}
	return Identity{User: j.Owner.User, Role: RoleUser, From: node.From, Via: fmt.Sprintf("job %s on node %s", j.ID(), name), Ended: node.Ended,
		Within: j.Number, Project: j.Owner.Project, carrier: "node " + name}, nil
}

// sameJob needs the UUID, which only older daemons do not say.
func sameJob(of, said string) bool { return said != "" && node.SameJob(of, said) }

// Connection is who a request's connection is counted for, and whether that is
// somebody who is always let in: a node carries what its jobs ask.
func (id Identity) Connection() (name string, trusted bool) {
	if id.Within != 0 {
		return id.carrier, true
	}
	return id.User, id.Role == RoleNode || id.Operator()
}
