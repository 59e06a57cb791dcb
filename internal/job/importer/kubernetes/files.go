package kubernetes

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// filesOf are the files of a volume that is a directory of some, by their names below
// it: of a config map, a secret, fields of the pod, or several of these.
func (k *manifest) filesOf(d *decoder, n *node) volume {
	v := volume{files: []job.File{}}
	switch n.Key {
	case "configMap":
		v.files, v.bad = k.configFiles(d, n, executable(d, n.Given("defaultMode")))
	case "secret":
		v.files, v.secret = k.secretFiles(d, n, "secretName")
		v.bad = v.files == nil && v.secret == ""
	case "downwardAPI":
		v.files = k.fieldFiles(d, n)
	case "projected":
		sources := n.Given("sources")
		if sources == nil {
			d.Missing(n, "sources", "")
			break
		}
		program := executable(d, n.Given("defaultMode"))
		d.Elements(sources, func(n *node) { v.files = append(v.files, k.projected(d, n, program)...) })
	}
	return v
}

// projected are the files of one source of a volume that has several.
func (k *manifest) projected(d *decoder, n *node, program bool) (files []job.File) {
	for _, kid := range n.Kids {
		switch kid.Key {
		case "configMap":
			some, _ := k.configFiles(d, kid, program)
			files = append(files, some...)
		case "secret":
			some, unknown := k.secretFiles(d, kid, "name")
			if unknown != "" {
				d.Problem(kid, fmt.Sprintf("names the secret %s, which is not in the file: its keys are not known", document.Quote(unknown)),
					"put its manifest into the file, behind a line ---, give its file: gsubmit --with FILE, or name its keys by items")
			}
			files = append(files, some...)
		case "downwardAPI":
			files = append(files, k.fieldFiles(d, kid)...)
		default:
			d.Problem(kid, "is not supported: there is no Kubernetes that gives tokens or certificates", "remove it")
		}
	}
	return files
}

// configFiles are those of a config map. Absent: there is none, and there need not be,
// or it is told.
func (k *manifest) configFiles(d *decoder, n *node, program bool) (files []job.File, absent bool) {
	found := k.object(d, n, "ConfigMap", k.beside.maps)
	if found == nil {
		return nil, true
	}
	items := n.Given("items")
	if items == nil {
		for _, name := range found.names {
			files = append(files, job.File{Path: name, Text: found.values[name], Program: program})
		}
		return files, false
	}
	d.Elements(items, func(n *node) {
		name := itemPath(d, n)
		if text, ok := found.key(d, n); ok {
			files = append(files, job.File{Path: name, Text: text, Program: program || executable(d, n.Given("mode"))})
		}
	})
	return files, false
}

// itemPath is where below the volume an item's file is.
func itemPath(d *decoder, n *node) (name string) {
	if x := n.Given("path"); x != nil {
		name, _ = d.Str(x)
	} else {
		d.Missing(n, "path", "")
	}
	if path.IsAbs(name) || name != "" && path.Clean("/"+name) != "/"+name {
		d.Problem(n, fmt.Sprintf("has the path %s, which is not below the volume", document.Quote(name)), "")
	}
	return name
}

// secretFiles are those of a secret. Its name, if it is not in the file and its keys
// are not known.
func (k *manifest) secretFiles(d *decoder, n *node, nameKey string) (files []job.File, unknown string) {
	name := ""
	if x := n.Given(nameKey); x != nil {
		name, _ = d.Str(x)
	} else {
		d.Missing(n, nameKey, "")
		return nil, ""
	}
	found, optional := k.beside.secrets[name], false
	if x := n.Given("optional"); x != nil {
		optional, _ = d.Boolean(x)
	}
	switch items := n.Given("items"); {
	case found == nil && optional:
		return nil, ""
	case items != nil:
		files = []job.File{}
		d.Elements(items, func(n *node) {
			key, at := "", itemPath(d, n)
			if x := n.Given("key"); x != nil {
				key, _ = d.Str(x)
			} else {
				d.Missing(n, "key", "")
				return
			}
			if found != nil {
				if _, ok := found.key(d, n); !ok {
					return
				}
			}
			files = append(files, k.secretFile(d, fileSecret{of: name, key: key, at: n}, at))
		})
	case found == nil:
		return nil, name
	default:
		files = []job.File{}
		for _, key := range found.names {
			files = append(files, k.secretFile(d, fileSecret{of: name, key: key, at: n}, key))
		}
	}
	return files, ""
}

// secretFile is the file of one key of a secret. The job's own secret has a name with a
// dot, so that it is no variable.
func (k *manifest) secretFile(d *decoder, s fileSecret, at string) job.File {
	const longest = 48
	name := s.of + "." + s.key
	if len(name) > longest && len(s.key) < longest-1 {
		name = strings.TrimRight(s.of[:longest-1-len(s.key)], ".-") + "." + s.key
	}
	if wrong := job.SecretName(name); wrong != "" {
		d.Problem(s.at, fmt.Sprintf("has the key %s, which is no name of a secret here: %s", document.Quote(s.key), wrong), "take it as a variable, by env and secretKeyRef")
		return job.File{Path: at}
	}
	if had := k.fileSecrets[name]; had != nil && (had.of != s.of || had.key != s.key) {
		d.Problem(s.at, fmt.Sprintf("is the secret %s, as another key is", name), "give one of both another name")
	}
	if found := k.beside.secrets[s.of]; found != nil {
		s.value = found.values[s.key]
	}
	k.fileSecrets[name] = &s
	return job.File{Path: at, Secret: name}
}

// fileSecret is a key of a secret that is to be a file.
type fileSecret struct {
	of, key, value string
	at             *node
}

// declareSecrets gives the job the secrets that are files of some container.
func (k *manifest) declareSecrets(d *decoder) {
	g := k.spec.Gbatch
	all := g.Files
	for _, b := range k.spec.Programs() {
		all = slices.Concat(all, b.Files)
	}
	for _, f := range all {
		s := k.fileSecrets[f.Secret]
		if s == nil || slices.ContainsFunc(g.Secrets, func(has job.Secret) bool { return has.Name == f.Secret }) {
			continue
		}
		d.Becomes(fmt.Sprintf("gbatch.secrets[%d]", len(g.Secrets)), s.at)
		g.Secrets = append(g.Secrets, job.Secret{Name: f.Secret})
		switch wrong := job.SecretValue(s.value); {
		case s.value == "" && k.beside.secrets[s.of] == nil:
			d.Note(s.at, fmt.Sprintf("is a secret whose value comes with the job: gsubmit --secret %s@FILE", f.Secret))
		case wrong != "":
			d.Problem(s.at, fmt.Sprintf("has the key %s, whose value %s", document.Quote(s.key), wrong), "")
		default:
			foreign.Set(&k.secrets, f.Secret, s.value)
		}
	}
}

// fieldFiles are files of what the downward API says of a pod, as far as it is known
// before the pod is.
func (k *manifest) fieldFiles(d *decoder, n *node) (files []job.File) {
	items := n.Given("items")
	if items == nil {
		return []job.File{}
	}
	d.Elements(items, func(n *node) {
		field := ""
		if ref := n.Given("fieldRef"); ref != nil {
			field, _ = d.Str(orNull(ref.Given("fieldPath")))
		}
		text, ok := k.fieldText(field)
		if !ok {
			d.Problem(n, "is not known before the job runs, or not at all", "take it as a variable: env with fieldRef or resourceFieldRef")
			return
		}
		files = append(files, job.File{Path: itemPath(d, n), Text: text})
	})
	return files
}

// fieldText is a field of the pod as a file has it: all labels are lines of
// KEY="VALUE".
func (k *manifest) fieldText(field string) (string, bool) {
	switch field {
	case "metadata.labels", "metadata.annotations":
		var lines []string
		for key, value := range k.podLabels {
			if name, ok := strings.CutPrefix(key, field+" "); ok {
				lines = append(lines, name+"="+strconv.Quote(value))
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n"), true
	case "metadata.namespace":
		return k.namespace, k.namespace != ""
	}
	kind, key, ok := bracketed(field)
	if !ok || key == indexField || k.ofPods[key] {
		return "", false
	}
	return k.podLabels[kind+" "+key], true
}

// bracketed takes metadata.labels['KEY'] apart.
func bracketed(field string) (kind, key string, ok bool) {
	kind, key, ok = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(field, "']"), "\"]"), "[")
	return kind, strings.TrimLeft(key, "'\""), ok && (kind == "metadata.labels" || kind == "metadata.annotations")
}

// executable says whether a mode, as YAML or JSON have it, lets its owner run a file.
func executable(d *decoder, n *node) bool {
	if n == nil {
		return false
	}
	text, _ := d.Scalar(n)
	base := 10
	if strings.HasPrefix(text, "0") {
		base = 8
	}
	mode, err := strconv.ParseInt(strings.TrimPrefix(text, "0o"), base, 32)
	if err != nil || mode < 0 || mode > 0o777 {
		d.Problem(n, fmt.Sprintf("is %s, which is no mode", document.Quote(text)), "write it as 0755")
	}
	return mode&0o100 != 0
}

// manyFiles is more files, and more mounts, than a job's own rules allow, so that a
// job with more is refused by them whatever the rest is.
const manyFiles = 1000

// mountFiles puts the files of a volume below where it is mounted, or the one that
// subPath names there.
func (k *manifest) mountFiles(d *decoder, n *node, m mountPoint, files []job.File) {
	g, sub := k.spec.Gbatch, strings.Trim(m.sub, "/")
	if sub != "" && len(files) > 0 && !slices.ContainsFunc(files, func(f job.File) bool { return f.Path == sub || strings.HasPrefix(f.Path, sub+"/") }) {
		d.Problem(n, fmt.Sprintf("has the subPath %s, which is no file of the volume", document.Quote(m.sub)), "its files have the names of its keys, or the paths of its items")
		return
	}
	for _, f := range files {
		if len(g.Files) > manyFiles {
			return
		}
		below := fileMount{m.path, m.name, n}
		rest, isBelow := strings.CutPrefix(f.Path, sub+"/")
		switch {
		case sub == "":
			f.Path = path.Join(m.path, f.Path)
		case sub == f.Path:
			f.Path, below.volume = m.path, ""
		case isBelow:
			f.Path = path.Join(m.path, rest)
		default:
			continue
		}
		if slices.Contains(g.Files, f) {
			continue // another container has it there, too
		}
		d.Becomes(k.path(fmt.Sprintf("gbatch.files[%d]", len(g.Files))), n)
		g.Files, k.fileMounts = append(g.Files, f), append(k.fileMounts, below)
	}
}

// fileMount is where the volume is mounted that a file is of.
type fileMount struct {
	path   string
	volume string // its name; "": the file alone is mounted there
	at     *node
}

// within says that a path is a directory's, or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// ownPlace gives the volume a directory of its own where it is mounted in another one, whose
// files there it hides.
func (k *manifest) ownPlace(d *decoder, of fileMount) {
	mounts := &k.spec.Request.Docker.Storage
	in := -1
	for i, m := range *mounts {
		if m.ContainerPath == of.path {
			return
		}
		if within(of.path, m.ContainerPath) {
			in = i
		}
	}
	if in < 0 {
		return
	}
	m, place := (*mounts)[in], "a file"
	if of.volume != "" {
		place = "a directory"
		d.Becomes(k.path(fmt.Sprintf("request.docker.storage[%d]", len(*mounts))), of.at)
		*mounts = append(*mounts, job.Storage{HostPath: job.ScratchHostPath, Volume: of.volume, ContainerPath: of.path})
	}
	if m.HostPath != job.ScratchHostPath && m.HostPath != job.TmpfsHostPath {
		d.Note(of.at, fmt.Sprintf("lies in what is mounted on %s: the place for it, %s that is empty, is made there and stays", document.Quote(m.ContainerPath), place))
	}
}

// uncover leaves out files of a volume in which something else is mounted over them.
func (k *manifest) uncover(d *decoder) {
	g := k.spec.Gbatch
	if len(g.Files) > manyFiles || len(k.spec.Request.Docker.Storage) > manyFiles {
		return
	}
	var kept []job.File
	var of []fileMount
	for i, f := range g.Files {
		m := k.fileMounts[i]
		if slices.ContainsFunc(k.spec.Request.Docker.Storage, func(s job.Storage) bool {
			return within(f.Path, s.ContainerPath) && s.ContainerPath != m.path && within(s.ContainerPath, m.path)
		}) {
			d.Note(m.at, fmt.Sprintf("has %s, which what is mounted there hides", document.Quote(f.Path)))
			continue
		}
		d.Becomes(k.path(fmt.Sprintf("gbatch.files[%d]", len(kept))), m.at)
		kept = append(kept, f)
		if !slices.Contains(of, m) {
			of = append(of, m)
		}
	}
	g.Files = kept
	for _, m := range of {
		k.ownPlace(d, m)
	}
}
