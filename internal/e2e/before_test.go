package e2e

import (
	"os"
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/oci/image/imagetest"
)

// tools is an image of its own, with a program that the other has not.
func tools(t *testing.T) string {
	t.Helper()
	ref, err := open.push("demo/tools:1", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
		{Name: "app/fetch", Body: []byte("#!/bin/sh\necho ${#1}\n"), Mode: 0o755}, {Name: "app/run", Body: []byte("of the other image\n")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// initManifest hands on what containers of another image make, in one volume that is at
// other places in each, and a file of it alone.
const initManifest = `apiVersion: batch/v1
kind: Job
metadata: {name: fetched}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      securityContext: {runAsUser: 1000}
      initContainers:
      - name: fetch
        image: OTHER
        command: [/app/fetch]
        args: ["$(WORD) $(TOKEN)"]
        env: [{name: WORD, value: hello}, {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: TOKEN}}}]
      - name: unpack
        image: OTHER
        securityContext: {runAsUser: 1001}
        command: [sh, -c, 'cp /app/run /shared/run && id -u > /shared/who && mkdir /shared/deep && chmod 777 /shared/deep && echo deep > /shared/deep/x && echo mem > /fast/y; echo "${WORD:-unset}"; exit CODE']
        volumeMounts: [{name: work, mountPath: /shared}, {name: fast, mountPath: /fast}]
      containers:
      - name: main
        image: IMAGE
        command: [sh, -c, 'cat /app/run /app/who /etc/run.conf /deep/x /data/fast/y; test ! -e /app/fetch && id -u; echo new > /deep/z && cat /app/deep/z; echo "${#URL}"']
        env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: TOKEN}}}, {name: URL, value: "db://me:$(TOKEN)@host"}]
        resources: {limits: {cpu: "1", memory: 128Mi}}
        volumeMounts: [{name: work, mountPath: /app}, {name: work, mountPath: /etc/run.conf, subPath: run}, {name: work, mountPath: /deep, subPath: deep}, {name: fast, mountPath: /data/fast}]
      volumes:
      - {name: work, emptyDir: {}}
      - {name: fast, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
`

// TestInitContainers: containers of other images run first, one after the other, as
// their users; what they leave is where the manifest says; and their failure is the job's.
func TestInitContainers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	const value = "s3cr3t-in-args"
	secret := func() string {
		return s.write("apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {TOKEN: " + value + "}\n")
	}
	manifest := func(code, image string) string {
		return strings.NewReplacer("OTHER", tools(t), "IMAGE", image, "CODE", code).Replace(initManifest)
	}
	file := secret()
	id := s.file(manifest("0", image), "--with", file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.well(id)
	want := "gbatch: fetch, 1 of 2 that run before the job\n20\n" +
		"gbatch: unpack, 2 of 2 that run before the job\nunset\n" +
		"gbatch: the job itself\nof the other image\n1001\nof the other image\ndeep\nmem\n1000\nnew\n27\n"
	if got := s.run("glog", id).out; got != want {
		t.Errorf("it says\n%s, want\n%s", got, want)
	}
	s.nowhere(value, id)

	id = s.file(manifest("7", image), "--with", secret())
	if d := s.wait(id); d.State != job.Failed || d.ExitCode == nil || *d.ExitCode != 7 || !strings.Contains(s.must("gqueue", "show", id), "unpack, which runs before the job: exit code 7") {
		t.Errorf("a job whose init container fails:\n%s", describe(d))
	}
	if got := s.run("glog", id).out; strings.Contains(got, "the job itself") {
		t.Errorf("it went on:\n%s", got)
	}
}

// TestInitContainersAndDaemons: a container that runs before the job outlives the node's
// daemon, the job goes on after it, and the time limit counts from its beginning.
func TestInitContainersAndDaemons(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	native := `{"name": "kept", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "IMAGE",
		"command": ["sh", "-c", "cat /w/x; echo main; sleep 1000"], "storage": [{"hostPath": "scratch", "volume": "w", "containerPath": "/w"}, "/project"]},
		"scheduling": {"maxDuration": "1 minute"}},
		"gbatch": {"before": [{"name": "wait", "image": "OTHER", "command": ["sh", "-c", "echo kept > /v/x; until [ -e /project/go ]; do sleep 0.2; done"],
			"storage": [{"hostPath": "scratch", "volume": "w", "containerPath": "/v"}, "/project"]}]}}`
	id := s.file(strings.NewReplacer("IMAGE", image, "OTHER", tools(t)).Replace(native))
	s.waitRunning(id)
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.nodes[0].start()
	s.waitNodes("up", 1)
	if err := os.WriteFile(s.inProject("go", ""), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Its time alone is as long as tests are patient.
	poll(patience, func() bool { return strings.Contains(s.run("gqueue", "show", id).out, "time limit of 1m0s reached") })
	d := s.wait(id)
	if got := s.run("glog", id).out; !strings.HasSuffix(got, "gbatch: the job itself\nkept\nmain\n") {
		t.Errorf("it says\n%s", got)
	}
	if d.Reason != string(job.MaxRuntime) {
		t.Errorf("want its time limit:\n%s", describe(d))
	}
}
