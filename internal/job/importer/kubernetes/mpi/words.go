package mpi

import (
	"fmt"
	"regexp"
	"strings"

	"gbatch/internal/document"
)

// patterns find what texts of containers do. They are compiled for a file with an MPIJob:
// each start of a command would pay for them else.
type patterns struct{ elsewhere, shell, waits *regexp.Regexp }

func newPatterns() patterns {
	return patterns{
		// Ways to reach workers but mpirun's own, and names that pods have in a cluster.
		elsewhere: regexp.MustCompile(`\b(ssh|pdsh|plm|horovodrun|deepspeed|hydra|hostfile|machinefile|OMPI_MCA_plm|OMPI_MCA_orte_default_hostfile)\b|--?host\b|(^|\s)-H(\s|$)|/etc/mpi|-worker-[0-9$]`),
		shell:     regexp.MustCompile(`^(/usr)?(/bin/)?(ba)?sh( -l)? -[a-z]*c `),
		waits:     regexp.MustCompile(`^(exec |sudo )?((/usr/sbin/)?sshd( -\S+| /\S+| \S+=\S+)*|mkdir -p (/var)?/run/sshd|service ssh start|/etc/init\.d/ssh start|sleep \S+|tail -f /dev/null)?$`),
	}
}

// check finds texts that mean hosts or logins of a cluster.
func (p patterns) check(d *decoder, n *node) {
	for _, kid := range n.Kids {
		p.check(d, kid)
	}
	if n.Kind != document.StringKind {
		return
	}
	if word := p.elsewhere.FindString(n.Text); word != "" {
		d.Problem(n, fmt.Sprintf("has %s: here mpirun knows the nodes by itself, and starts tasks there without ssh", document.Quote(strings.TrimSpace(word))), "remove it and what belongs to it")
	}
}

// only says that a command does nothing but wait for logins.
func (p patterns) only(words string) bool {
	words = p.shell.ReplaceAllString(strings.Join(strings.Fields(strings.ReplaceAll(words, "\n", " ; ")), " "), "")
	for piece := range strings.SplitSeq(strings.NewReplacer("&&", ";", "&", ";").Replace(words), ";") {
		if !p.waits.MatchString(strings.TrimSpace(piece)) {
			return false
		}
	}
	return true
}
