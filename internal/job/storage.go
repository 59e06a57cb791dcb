package job

import (
	"fmt"
	"strings"

	"gbatch/internal/document"
)

// Host paths with a meaning of their own.
const (
	TmpfsHostPath = "tmpfs" // memory, gone with the container
	SSHHostPath   = ".ssh"  // the user's own ssh directory

	// ScratchHostPath is a directory of the rank's own, gone with it. Mounts of one volume
	// show the same, also in what runs before the job.
	ScratchHostPath = "scratch"

	sshContainerPath = "/root/.ssh"
	shmPath          = "/dev/shm"

	// gpulabShare is what GPULab's own tools write for the project's storage.
	gpulabShare = "PROJECT_SHARE_AUTO"
	projectRoot = "/project"
)

var storageFields = []field[Storage]{
	{"hostPath", readHostPath, false},
	{"containerPath", func(d *decoder, n *node, s *Storage) { d.absolute(n, &s.ContainerPath) }, false},
	{"sizeGb", func(d *decoder, n *node, s *Storage) { d.integer(unquoted(n), &s.SizeGB, 1, maxMemoryGB) }, false},
	{"volume", func(d *decoder, n *node, s *Storage) { d.str(n, &s.Volume, word("-")) }, false},
	{"subPath", func(d *decoder, n *node, s *Storage) { d.str(n, &s.SubPath, subPath) }, false},
	{"ofMemory", func(d *decoder, n *node, s *Storage) { d.boolean(n, &s.OfMemory) }, false},
	{"readOnly", func(d *decoder, n *node, s *Storage) { d.boolean(n, &s.ReadOnly) }, false},
}

// readMounts reads an array of mounts, each an object by the table fields or
// the path alone.
func readMounts(d *decoder, n *node, c *Docker, fields []field[Storage]) {
	at := map[string]int{}
	d.elements(n, maxStorage, func(i int, n *node) {
		var s Storage
		before := d.Count()
		switch n.Kind {
		case document.StringKind:
			readHostPath(d, n, &s)
		case document.ObjectKind:
			document.Object(d, n, fields, &s)
		default:
			d.WrongKind(n, "a path or an object { }")
		}
		if d.Count() > before {
			return
		}
		completePaths(&s)
		if s.SizeGB > 0 && s.HostPath != TmpfsHostPath && !s.OfMemory {
			s.SizeGB = 0
			d.Note(n, "sizeGb is not used: a directory is as large as its file system; only a tmpfs has a size")
		}
		if message, hint := checkStorage(s); message != "" {
			d.Problem(n, message, hint)
			return
		}
		if first, ok := at[s.ContainerPath]; ok {
			d.Problem(n, fmt.Sprintf("mounts on %s, as entry [%d] does", document.Quote(s.ContainerPath), first), "give each mount its own containerPath")
			return
		}
		at[s.ContainerPath] = i
		c.Storage = append(c.Storage, s)
	})
}

func readHostPath(d *decoder, n *node, s *Storage) {
	switch {
	case n.Kind == document.StringKind && (n.Text == SSHHostPath || n.Text == SSHHostPath+"/"):
		s.HostPath = SSHHostPath
	case n.Kind == document.StringKind && (n.Text == TmpfsHostPath || n.Text == ScratchHostPath):
		s.HostPath = n.Text
	case n.Kind == document.StringKind && n.Text == gpulabShare:
		s.HostPath = projectRoot
		d.Note(n, gpulabShare+" is read as "+projectRoot+", the project's shared storage")
	case n.Kind == document.StringKind && !strings.HasPrefix(n.Text, "/"):
		d.Problem(n, fmt.Sprintf("must be an absolute path, \"tmpfs\", \"scratch\" or \".ssh\", is %s", document.Quote(n.Text)), "")
	default:
		d.absolute(n, &s.HostPath)
	}
}

// completePaths fills in the half of a mount that was left out.
func completePaths(s *Storage) {
	switch {
	case s.HostPath == TmpfsHostPath, s.HostPath == ScratchHostPath:
	case s.HostPath == SSHHostPath && s.ContainerPath == "":
		s.ContainerPath = sshContainerPath
	case s.ContainerPath == sshContainerPath && s.HostPath == "":
		s.HostPath = SSHHostPath
	case s.ContainerPath == "":
		s.ContainerPath = s.HostPath
	case s.HostPath == "":
		s.HostPath = s.ContainerPath
	}
}

// subPath wants a relative path without .. elements.
func subPath(s string) string {
	if s == "" || strings.HasPrefix(s, "/") {
		return "must be a path in the volume, such as \"data/one\""
	}
	return absolutePath("/" + s)
}

// Bytes is how much a file system in memory may hold, in a job with so much of it.
func (s Storage) Bytes(memory int64) int64 {
	if s.SizeGB == 0 {
		return memory
	}
	return int64(s.SizeGB) << 30
}

// checkStorage says what is wrong with a completed mount, and what to do.
func checkStorage(s Storage) (message, hint string) {
	tmpfs, scratch := s.HostPath == TmpfsHostPath, s.HostPath == ScratchHostPath
	switch {
	case s.HostPath == "" && s.ContainerPath == "":
		return "names no path", "give \"containerPath\", \"hostPath\" or both"
	case tmpfs && (s.ContainerPath == "" || s.SizeGB == 0 && !s.OfMemory):
		return "is a tmpfs without a path or size", `write { "hostPath": "tmpfs", "containerPath": "/scratch", "sizeGb": 2 }`
	case tmpfs && s.ReadOnly:
		return "is a read-only tmpfs, which nothing could be written to", "remove \"readOnly\""
	case scratch && (s.ContainerPath == "" || s.Volume == ""):
		return "is scratch space without a path or a volume", `write { "hostPath": "scratch", "volume": "work", "containerPath": "/work" }: mounts of one volume show the same directory`
	case !scratch && (s.Volume != "" || s.SubPath != ""):
		return "has a volume or subPath but is no scratch space", "remove them, or set \"hostPath\" to \"scratch\""
	case !tmpfs && !scratch && s.OfMemory:
		return "is of the memory but is no tmpfs", "remove \"ofMemory\", or set \"hostPath\" to \"tmpfs\""
	case s.HostPath == "/":
		return "mounts the whole file system of the node, which is not allowed", "name a directory in project storage"
	case s.ContainerPath == "/":
		return "mounts on /, which is the image's own root", "choose a directory below it"
	case tmpfs && s.ContainerPath == shmPath:
		return "", ""
	}
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if s.ContainerPath == own || strings.HasPrefix(s.ContainerPath, own+"/") {
			return fmt.Sprintf("mounts on %s, which belongs to the system", document.Quote(s.ContainerPath)), "choose another directory; only a tmpfs may be mounted on /dev/shm"
		}
	}
	return "", ""
}
