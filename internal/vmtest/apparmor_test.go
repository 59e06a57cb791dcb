package vmtest

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gbatch/oci"
	"gbatch/oci/apparmor"
	"gbatch/oci/failure"
	"gbatch/oci/wire"
)

// checkAppArmor loads the profiles that the test compiled, and looks at what
// containers have of them.
func checkAppArmor(r *report) {
	r.check("apparmor_missing", func() error {
		if has, err := apparmor.Ready("gbatch-job"); !has || err == nil {
			return fmt.Errorf("before it is loaded: %v, %v", has, err)
		}
		b := newBox("nopolicy", "echo ran")
		b.req.AppArmor = "gbatch-job"
		exit, log, err := b.run()
		if err != nil || exit.Failure == nil || exit.Failure.Kind != failure.RuntimeFailed || log != "" {
			return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
		}
		return nil
	})
	r.check("apparmor_load", func() error {
		for _, name := range []string{"gbatch-job", "vmtest"} {
			text, err := os.ReadFile("/apparmor/" + name + ".policy")
			if err == nil {
				err = os.WriteFile("/sys/kernel/security/apparmor/.replace", text, 0)
			}
			if _, ready := apparmor.Ready(name); err != nil || ready != nil {
				return errors.Join(err, ready)
			}
		}
		return nil
	})
	for _, c := range []struct{ name, profile, script, want string }{
		{"apparmor_job", "gbatch-job", "cat /proc/self/attr/current /which; sleep 100 & kill $! && echo ended; cat /proc/kallsyms", "gbatch-job (enforce)\ntop\nended\ncat: can't open '/proc/kallsyms': Permission denied\n"},
		{"apparmor_enforced", "vmtest", "cat /proc/self/attr/current; cat /which", "vmtest (enforce)\ncat: can't open '/which': Permission denied\n"},
		{"apparmor_none", "", "cat /proc/self/attr/current", "unconfined\n"},
	} {
		r.check(c.name, func() error {
			b := newBox(c.name, c.script)
			b.req.AppArmor = c.profile
			exit, log, err := b.run()
			if err != nil || exit.Failure != nil || strings.ReplaceAll(log, "\r", "") != c.want {
				return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
			}
			return nil
		})
	}
	r.check("apparmor_exec", execConfined)
}

// execConfined: a command beside the job has the job's profile, and the daemon
// may end both.
func execConfined() error {
	b := newBox("confined", "echo ready; sleep 1000")
	b.req.AppArmor = "gbatch-job"
	if err := b.startElsewhere(); err != nil {
		return err
	}
	if err := b.awaitLog("ready"); err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	p, err := b.shim.Exec(wire.ExecRequest{Args: []string{"cat", "/proc/self/attr/current"}}, wire.ExecStdio{Stdout: in})
	in.Close()
	if err != nil {
		return err
	}
	text := make([]byte, 100)
	n, _ := out.Read(text)
	if code, err := p.Wait(); code != 0 || err != nil || string(text[:n]) != "gbatch-job (enforce)\n" {
		return fmt.Errorf("code %d, %v, output %q", code, err, text[:n])
	}
	if err := b.shim.Kill(); err != nil {
		return err
	}
	if _, err := b.exit(); err != nil {
		return err
	}
	return oci.Remove(b.dir)
}
