package vmtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// suites are tests of other packages whose subject is the kernel's part of a
// node: by package, and by name of what must pass in the guest, which is slow: of
// some only the parts that another kernel, or its control groups, may answer otherwise.
var suites = []struct {
	dir   string
	tests string
}{
	{"internal/noded", "TestUserIsWhoSubmitted TestPrologAndEpilog TestHostNetworkIsFiltered TestLease TestLimitWithoutDaemon TestFence/stopped " +
		"TestHostileJobs/(forks|needs-more|fills-its-shm|eats|writes-to-sys|kills-all) " +
		"TestMountsAsUser TestUserWithoutMaps TestNetworkRules TestDiskBound/project_quotas TestDiskRates"},
	{"oci/hostnet", "TestFilter"},
	{"oci", "TestKillMoved TestDevices TestMappedStorage TestMappedReads TestMappedOwn TestMappedExec TestMappedDevices TestMappedHook TestMappedQuotas " +
		"TestMappedKeyring TestBlame/(hook_eats_memory|hook_crashes|dev_link|proc_link) TestKeptHostile TestPidsLimit TestForeignOOM " +
		"TestMappedInside/(limit|devices|terminal) TestFiltersOfAll TestPartsOfOthersIDs TestPod TestPodFails/(memory|together) TestPodMemory TestPodIsStopped/KILL TestPodIsEntered TestShimOfPodIsKilled TestAnnex TestAnnexEnds/memory"},
	{"oci/image", "TestWorkersHaveNoRights TestPullsReachOnlyWhatTheyMay TestPrivateImages"},
	{"oci/netns", "TestGangTakesNothingFromStrangers TestGangAfterKill TestNetworksAreApart"},
}

// programs are what these tests call, beside busybox. Each package is one of
// scripts/deps or always there.
var programs = []string{"mkfs.ext4", "e2fsck", "mount", "umount", "truncate", "cp", "ip", "runc"}

// TestSuites boots a guest with control groups v2 alone, one disk with project
// quotas and the kernel's network modules, and runs tests of other packages in it.
func TestSuites(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED, the virtual machine is one of amd64")
	}
	what := missing()
	for _, p := range programs {
		if look(p) != nil {
			what = p
		}
	}
	if stat(kernelDir+"/lib/modules") != nil {
		what = "the modules of a kernel; run: make deps"
	}
	if what != "" {
		if os.Getenv("GBATCH_VMTEST_REQUIRED") != "" {
			t.Fatal("no virtual machine without " + what)
		}
		t.Skip("SKIPPED, no virtual machine without " + what)
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	fillSuites(t, root)
	initrd := filepath.Join(dir, "initrd")
	command(t, root, "sh", "-c", "find . | cpio --quiet -o -H newc -R 0:0 >"+initrd)
	console := boot(t, initrd, guest{processors: 1, memory: "3072", options: "cgroup_no_v1=all", patience: 6 * bootTimeout})
	readSuites(t, console)
	if t.Failed() || testing.Verbose() {
		t.Logf("console:\n%s", console)
	}
}

func fillSuites(t *testing.T, root string) {
	t.Helper()
	copyFile(t, "testdata/suites", root+"/init")
	copyFile(t, busybox, root+"/bin/busybox")
	command(t, ".", "cp", "-r", kernelDir+"/lib", root+"/lib")
	// Shims are the program that gnoded carries: all of a test's program takes long to start
	// where each of its instructions has to be translated first.
	embed := t.TempDir()
	command(t, "../..", "scripts/build-shim", embed)
	var list bytes.Buffer
	for _, s := range suites {
		name := strings.ReplaceAll(s.dir, "/", "-")
		program := filepath.Join(root, "suites", name)
		command(t, "../..", "go", "test", "-c", "-buildvcs=false", "-tags", "seccomp embedshim", "-ldflags", "-s -w", "-overlay", embed+"/overlay.json", "-o", program, "./"+s.dir)
		copyLibraries(t, root, program)
		src := filepath.Join(root, "src", s.dir)
		write(t, src+"/.keep", nil)
		if data := filepath.Join("../..", s.dir, "testdata"); stat(data) == nil {
			command(t, ".", "cp", "-r", data, src)
		}
		fmt.Fprintf(&list, "%s %s %s\n", name, s.dir, pattern(s.tests))
	}
	write(t, root+"/suites/list", list.Bytes())
	command(t, "../..", "env", "CGO_ENABLED=0", "go", "build", "-o", filepath.Join(root, "suites/keeper"), "./internal/launch/program")
	for _, p := range programs {
		path, err := exec.LookPath(p)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, "usr/sbin", p)
		copyFile(t, path, to)
		copyLibraries(t, root, to)
	}
	write(t, root+"/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nbin:x:2:2::/:/bin/sh\n"))
	write(t, root+"/etc/group", []byte("root:x:0:\nbin:x:2:\n"))
	write(t, root+"/etc/hosts", []byte("127.0.0.1 localhost\n"))
	copyFile(t, "/etc/mke2fs.conf", root+"/etc/mke2fs.conf")
}

// pattern is that of go test for a list of names, some with their parts after a slash.
func pattern(tests string) string {
	var all []string
	for test := range strings.FieldsSeq(tests) {
		name, parts, _ := strings.Cut(test, "/")
		all = append(all, strings.TrimSuffix("^"+name+"$/"+parts, "/"))
	}
	return strings.Join(all, "|")
}

var libraryPath = regexp.MustCompile(`/\S+\.so\S*`)

// copyLibraries copies what the loader says that a program is linked with.
func copyLibraries(t *testing.T, root, program string) {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return // a static one
	}
	for _, path := range libraryPath.FindAllString(string(out), -1) {
		if to := filepath.Join(root, path); stat(to) != nil {
			copyFile(t, path, to)
		}
	}
}

var testLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \((.*)\)`)

// readSuites has a subtest for each test that was to run in the guest. One that
// was skipped there proves nothing, so it fails, as does one of which all parts were, or one
// that was named with its parts.
func readSuites(t *testing.T, console []byte) {
	results := map[string]string{}
	text := strings.ReplaceAll(string(console), "\r", "")
	for _, m := range testLine.FindAllStringSubmatch(text, -1) {
		results[m[2]] = m[1] + " after " + m[3]
	}
	for _, s := range suites {
		name := strings.ReplaceAll(s.dir, "/", "-")
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(text, "\nvmtest-suite "+name+" 0\n") {
				t.Error("the tests did not end well")
			}
			for test := range strings.FieldsSeq(s.tests) {
				t.Run(test, func(t *testing.T) {
					name, _, parts := strings.Cut(test, "/")
					t.Log(results[name])
					if !strings.HasPrefix(results[name], "PASS") {
						t.Errorf("in the guest: %q", results[name])
					}
					ran, skipped := 0, 0
					for part, result := range results {
						if strings.HasPrefix(part, name+"/") {
							ran++
							if strings.HasPrefix(result, "SKIP") {
								skipped++
							}
						}
					}
					if parts && (ran == 0 || skipped > 0) || ran > 0 && skipped == ran {
						t.Errorf("of %d parts %d were skipped in the guest", ran, skipped)
					}
				})
			}
		})
	}
}
