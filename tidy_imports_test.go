package gbatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// nodeOnly packages touch the machine that they run on.
var nodeOnly = regexp.MustCompile(`^gbatch/(oci|oci/image|oci/image/layout|oci/image/socket|oci/image/share|oci/image/bounds|oci/image/unpack|oci/treesum|oci/changes|oci/netns|oci/hostnet|oci/overlay|oci/runtimes|oci/confine|oci/signals|oci/slack|oci/userns|oci/sysfilter|oci/rootfs|oci/apparmor|oci/failure|oci/users|oci/wire|cgroups|internal/gpu|internal/noded|internal/noded/.*|internal/transfer)$|opencontainers/(runc|cgroups)|go-nvml`)

// s3Library is for the daemons alone.
var s3Library = regexp.MustCompile(`minio/minio-go`)

type goPackage struct {
	ImportPath, Name, Doc, Dir string
	Imports, Deps              []string
	TestImports, XTestImports  []string
}

func (p goPackage) short() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []goPackage {
	t.Helper()
	ps, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return ps
}

// listed are the packages of the tree, without those in folders that git ignores: it has node_modules.
var listed = sync.OnceValues(func() ([]goPackage, error) {
	out, err := exec.Command("go", "list", "-e", "-buildvcs=false", "-tags", "seccomp",
		"-json=ImportPath,Name,Doc,Dir,Imports,Deps,TestImports,XTestImports", "./...").Output()
	if err != nil {
		return nil, err
	}
	var ps []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ps, nil
		} else if err != nil {
			return nil, err
		}
		if exec.Command("git", "check-ignore", "-q", p.Dir).Run() != nil {
			ps = append(ps, p)
		}
	}
})

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := below[p.short()]
		free := strings.HasPrefix(p.short(), "cmd/") || strings.HasPrefix(p.short(), "scripts/") ||
			p.short() == "gbatch" || slices.Contains(unruled, p.short())
		if !known && !free {
			t.Errorf("%s: no rule says what it may import; add it to the table in tidy_test.go", p.ImportPath)
		}
		for _, i := range p.Imports {
			ours, is := strings.CutPrefix(i, module)
			if is && known && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, i)
			}
			if is && strings.HasPrefix(ours, "cmd/") {
				t.Errorf("%s imports the program %s", p.ImportPath, i)
			}
		}
	}
}

func TestImportsStayWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t) {
		s := p.short()
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "github.com/cockroachdb/pebble") && !strings.HasPrefix(s, "internal/store") {
				t.Errorf("%s imports %s: only internal/store does", p.ImportPath, i)
			}
			if strings.HasPrefix(i, "github.com/alecthomas/kong") && !strings.HasPrefix(s, "internal/cli") && !strings.HasPrefix(s, "cmd/") {
				t.Errorf("%s imports %s: only cmd and internal/cli do", p.ImportPath, i)
			}
			if !strings.HasSuffix(s, "test") && s != "internal/e2e" && (i == "testing" || strings.HasSuffix(i, "/imagetest") && !strings.HasPrefix(s, "scripts/")) {
				t.Errorf("%s imports %s outside its tests", p.ImportPath, i)
			}
		}
		if strings.HasPrefix(s, "internal/ctld") || strings.HasPrefix(s, "internal/cli") || strings.HasPrefix(s, "cmd/") && s != "cmd/gnoded" {
			for _, d := range p.Deps {
				if strings.HasPrefix(s, "internal/cli") && s3Library.MatchString(d) {
					t.Errorf("%s depends on %s, which only daemons may", p.ImportPath, d)
				}
				if nodeOnly.MatchString(d) {
					t.Errorf("%s depends on %s, which only the node daemon may", p.ImportPath, d)
				}
			}
		}
		if slices.Contains(pure, s) {
			checkPureImports(t, p)
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && p.ImportPath != "gbatch" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
