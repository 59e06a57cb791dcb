package gpu

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/gpu/setup"
)

// TestCDIFields: what is done with each field of a site's CDI file, whatever stands
// there. The table is in docs/security.md.
func TestCDIFields(t *testing.T) {
	const null = "one has an empty entry"
	for edits, want := range map[string]string{ // what is in the spec, or the error
		`"env":["LD_PRELOAD=/x"]`: `"LD_PRELOAD=/x"`,
		`"env":["A"]`:             `invalid environment variable "A"`,
		`"env":["A=\u0000"]`:      "has a zero byte",

		`"deviceNodes":[null]`:                                                              null,
		`"deviceNodes":[{"path":""}]`:                                                       "invalid (empty) device path",
		`"deviceNodes":[{"path":"/dev/null"}]`:                                              `{"allow":true,"type":"c","major":1,"minor":3,"access":"rwm"}`,
		`"deviceNodes":[{"path":"/dev/null","permissions":"none"}]`:                         `{"allow":true,"type":"c","major":1,"minor":3}`,
		`"deviceNodes":[{"path":"/dev/null","permissions":"rwx"}]`:                          "invalid permissions",
		`"deviceNodes":[{"path":"/dev/x","type":"q"}]`:                                      "invalid type",
		`"deviceNodes":[{"path":"/dev/x","type":"c","major":-1,"minor":-1}]`:                "stands for all devices",
		`"deviceNodes":[{"path":"/dev/x","type":"c","major":1,"minor":3,"uid":0,"gid":99}]`: `"uid":0,"gid":99`,
		`"deviceNodes":[{"path":"/dev/x","hostPath":"/etc/passwd"}]`:                        "not a device node",
		`"deviceNodes":[{"path":"/dev/x","hostPath":"/nosuch"}]`:                            "no such file",
		`"deviceNodes":[{"path":"../../etc/x","hostPath":"/dev/null"}]`:                     "no path below /dev",
		`"deviceNodes":[{"path":"/dev/../etc/x","hostPath":"/dev/null"}]`:                   "no path below /dev",
		`"deviceNodes":[{"path":"/etc/x","hostPath":"/dev/null"}]`:                          "no path below /dev",
		`"mounts":[null]`: null,
		`"mounts":[{"hostPath":"/opt/x","containerPath":"/x","options":["ro"]}]`:              `{"destination":"/x","source":"/opt/x","options":["ro"]}`,
		`"mounts":[{"hostPath":"","containerPath":"/x"}]`:                                     "empty host path",
		`"mounts":[{"hostPath":"/","containerPath":"/","options":["rbind","suid","dev"]}]`:    "no path in a container",
		`"mounts":[{"hostPath":"/etc","containerPath":"../x"}]`:                               "no path in a container",
		`"mounts":[{"hostPath":"/etc","containerPath":"/a/../../x"}]`:                         "no path in a container",
		`"mounts":[{"hostPath":"o","containerPath":"/x","type":"overlay","options":["a=/"]}]`: "not mounted for jobs",
		`"hooks":[null]`: null,
		`"hooks":[{"hookName":"prestart","path":"/bin/true","env":["A=1"]}]`: `"hooks":{"prestart":[{"path":"/bin/true","env":["A=1"]}]}`,
		`"hooks":[{"hookName":"x","path":"/bin/true"}]`:                      "invalid hook name",
		`"hooks":[{"hookName":"createRuntime","path":""}]`:                   "empty path",
		`"hooks":[{"hookName":"createRuntime","path":"relative"}]`:           "no whole path",
		`"hooks":[{"hookName":"prestart","path":"/bin/true","timeout":-1}]`:  "timeout that is not above 0",
		`"hooks":[{"hookName":"prestart","path":"/bin/true","env":["A"]}]`:   "invalid environment variable",

		`"intelRdt":{"closID":"../../x"}`:                           "invalid ClosID",
		`"intelRdt":{"closID":"x","l3CacheSchema":"L3:0=1"}`:        "not done here",
		`"netDevices":[null]`:                                       null,
		`"netDevices":[{"hostInterfaceName":"eth0","name":"eth0"}]`: "not done here",
		`"netDevices":[{"hostInterfaceName":"","name":"x"}]`:        "empty HostInterfaceName",
		`"additionalGids":[0,44]`:                                   `"additionalGids":[44]`,
		`"additionalGids":[65536]`:                                  "a container has the ids 0 to 65535",
		`"additionalGids":[-1]`:                                     "cannot unmarshal",
		`"nothing":1`:                                               "field nothing not found",
		``:                                                          "empty device edits",
	} {
		t.Run(strings.ReplaceAll(edits, "/", "|"), func(t *testing.T) {
			for _, text := range []string{`"devices":[{"name":"all","containerEdits":{` + edits + `}}]`, // of the device, and of all in the file
				`"devices":[{"name":"all","containerEdits":{"env":["B=1"]}}],"containerEdits":{` + edits + `}`} {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "site.json"), []byte(`{"cdiVersion":"1.1.0","kind":"example.com/rdma",`+text+`}`), 0o600); err != nil {
					t.Fatal(err)
				}
				in, err := newInjector(InjectorConfig{SpecDirs: []string{dir}, Injection: setup.Injection{Devices: []string{"example.com/rdma=all"}}})
				if err != nil {
					t.Fatal(err)
				}
				spec := &specs.Spec{Process: &specs.Process{}, Linux: &specs.Linux{}}
				err = in.editCDI(spec, nil)
				got, _ := json.Marshal(spec)
				if err != nil {
					got = []byte(err.Error())
				}
				if edits == "" && err == nil {
					break // an empty part for all is none
				}
				if done := want[0] == '"' || want[0] == '{'; !strings.Contains(string(got), want) || done != (err == nil) {
					t.Errorf("%s gives %s, want %s", text, got, want)
				}
			}
		})
	}
}
