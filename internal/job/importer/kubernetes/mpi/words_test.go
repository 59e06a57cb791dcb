package mpi

import "testing"

func TestOnly(t *testing.T) {
	p := newPatterns()
	for words, want := range map[string]bool{
		" /usr/sbin/sshd -De": true,
		" /bin/sh -c mkdir -p /var/run/sshd; /usr/sbin/sshd -D -o Port=22":         true,
		" bash -c /usr/sbin/sshd -De -f /home/mpiuser/.sshd_config && sleep 365d;": true,
		" sleep infinity":                                 true,
		" sh -c setup.sh\n/usr/sbin/sshd -De":             false,
		" sh -c cache & sleep infinity":                   false,
		" python3 serve.py":                               false,
		" sh -c /usr/sbin/sshd -De && curl example.org":   false,
		" sh -c $(cat /cmd)":                              false,
		" /usr/sbin/sshd -De -f /etc/sshd `touch /tmp/x`": false,
	} {
		if got := p.only(words); got != want {
			t.Errorf("%q: %t, want %t", words, got, want)
		}
	}
}
