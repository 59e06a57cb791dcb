package config

import (
	"fmt"
	"os"
	"strings"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/settings"
)

// File is where the daemon looks for its configuration.
const File = "/etc/gbatch/gnoded.yaml"

// Config is gnoded.yaml. It is fixed until the daemon restarts. The zero value
// of a field means its default; SetDefaults writes them in.
type Config struct {
	// Name of the node, as it is shown everywhere: letters, digits, dots and
	// dashes, at most 63. Default: the host name up to its first dot.
	Name string `yaml:"name"`

	// Controller is where gctld listens: https://HOST:PORT#PIN as `gadm
	// join-string` prints it, or unix:///PATH beside it.
	Controller string `yaml:"controller"`

	// Address by which other nodes reach this one: the ranks of a gang meet
	// there. Default: the address from which it reaches the controller.
	Address string `yaml:"address"`

	// JoinTokenFile holds the token of `gadm node-token create` by which this
	// machine becomes a node. It is needed once: the node then has a key and a
	// certificate of its own in its state directory. Default: none.
	JoinTokenFile string `yaml:"joinTokenFile"`

	// StateDir is where the daemon keeps what must outlive it, on a local file
	// system that overlayfs can use. Default /var/lib/gnoded.
	StateDir string `yaml:"stateDir"`

	// ClusterID is the cluster (partition) the node belongs to, from 1 on. Default 1.
	ClusterID int `yaml:"clusterId"`

	// Features that jobs can ask for, as SHARED_PROJECT_STORAGE or rack=3: 2 to
	// 128 letters, digits, blanks and _ - . / : = +. At most 64.
	Features []string `yaml:"features"`

	// Cores is how many cores the node offers. Default: what the machine has,
	// less the reserved ones. With more than that, ranks share cores and none
	// is bound to its own. At most 4096.
	Cores int `yaml:"cores"`

	// Reserve is kept from jobs, for the system and this daemon.
	Reserve Reserve `yaml:"reserve"`

	// Storage lists the host directories that jobs may mount. At most 64.
	Storage []StorageRoot `yaml:"storage"`

	// SSHDir is the directory that a job's ".ssh" mount gets, with {project}
	// and {user} in it. It is made on first use, mode 0700. Default: none, and
	// such mounts are refused.
	SSHDir string `yaml:"sshDir"`

	// TmpfsMax bounds the tmpfs mounts of one rank together. Default: no bound
	// but the rank's memory, which they count against.
	TmpfsMax Size `yaml:"tmpfsMax"`

	// ShmSize is the size of /dev/shm where the job says none. It lies inside
	// the job's memory. Default 64MiB; 1MiB to 1TiB.
	ShmSize Size `yaml:"shmSize"`

	// PidsMax bounds the processes and threads of one rank. All ranks together
	// have three quarters of what the machine can have. Default: an eighth of that,
	// 1024 to 16384; at least 64.
	PidsMax int `yaml:"pidsMax"`

	// AllowPrivileged lets jobs run here that ask to be privileged, of projects
	// that may: such a job is root on this machine while it runs, and has the
	// machine to itself. Default false.
	AllowPrivileged bool `yaml:"allowPrivileged"`

	// AllowCapabilities are what jobs may ask for here, of projects that may:
	// NET_RAW, SETFCAP, SYS_CHROOT, AUDIT_WRITE, MKNOD. They count for what
	// belongs to the container: NET_RAW in its own network, and MKNOD makes no
	// devices. Default: none.
	AllowCapabilities []job.Capability `yaml:"allowCapabilities"`

	// Runtimes are programs that run containers, for jobs that ask for one by its
	// name here, and for projects that require one. Default: none.
	Runtimes map[string]Runtime `yaml:"runtimes"`

	// AppArmor is the profile that jobs have, but privileged ones, where the
	// kernel has AppArmor: gbatch-job comes with the package. One that is not
	// loaded there keeps the node from taking jobs. Default: none.
	AppArmor string `yaml:"appArmor"`

	// IDsFrom is where the numbers of users and groups begin that containers may
	// have beside their own user's. The controller gives each user 65536; orders
	// with others are refused. No account or group may have a number from here to
	// 2147418112. Default 536870912, as the controller's; a multiple of 65536.
	IDsFrom uint32 `yaml:"idsFrom"`

	// GPU is how GPUs are found and given to jobs.
	GPU GPU `yaml:"gpu"`

	// Images is the image store.
	Images Images `yaml:"images"`

	// Logs bounds what jobs write to stdout and stderr.
	Logs Logs `yaml:"logs"`

	// Lease is how long ranks go on without contact to the controller where it
	// has not said so itself. Default 4m30s; 10s to 24h.
	Lease Duration `yaml:"lease"`

	// Data is about inputs and outputs of jobs.
	Data Data `yaml:"data"`

	// Metrics is who may read how the node and its GPUs fare.
	Metrics Metrics `yaml:"metrics"`

	// Network is how jobs see the network.
	Network Network `yaml:"network"`

	// Disk bounds what containers write here.
	Disk Disk `yaml:"disk"`

	// Launches is how many containers may be starting at once. Default: the
	// number of cores, and as many again up to 8; 1 to 256.
	Launches int `yaml:"launches"`

	// MinFree is the free space on the state directory's file system below
	// which the node takes no new ranks. Default 1GiB.
	MinFree Size `yaml:"minFree"`

	// Prolog are programs of the site's, run as root one after the other before a
	// container begins. If one fails, the job starts elsewhere and the node is
	// drained. At most 16. Default: none.
	Prolog []Program `yaml:"prolog"`

	// Epilog are those that are run when a container has ended, before what it had
	// is given to others. If one fails, the node is drained. Default: none.
	Epilog []Program `yaml:"epilog"`

	// Reboot is how the machine is rebooted when an operator orders it.
	Reboot Reboot `yaml:"reboot"`

	// Health is what the node looks at by itself.
	Health Health `yaml:"health"`
}

// Reserve is what jobs do not get.
type Reserve struct {
	Cores  int  `yaml:"cores"`  // default 0; less than the machine has
	Memory Size `yaml:"memory"` // default 1GiB, or a tenth of a machine below 10GiB
}

// Runtime is a program that runs containers: runc, or gVisor's runsc.
type Runtime struct {
	Path string   `yaml:"path"` // of the program, as /usr/local/bin/runsc
	Args []string `yaml:"args"` // for it, before each command, as --platform=kvm
}

// GPU configures the node's GPUs.
type GPU struct {
	// Mode is how containers get GPUs: cdi, which needs the driver only, or
	// hook, which runs a program of the machine's. Default cdi.
	Mode string `yaml:"mode"`
	// Hook is the program of mode hook, run as an OCI prestart hook. Default
	// /usr/bin/nvidia-container-runtime-hook.
	Hook string `yaml:"hook"`
	// Devices are given to every container with GPUs beside them, by the names
	// that the machine's CDI files have for them, as example.com/rdma=all.
	Devices []string `yaml:"devices"`
	// Share lets several jobs use one GPU, each with its part of gpus: 0.5. They
	// share its time; nothing keeps one from the memory of the others' part.
	// Default false: such jobs do not come here.
	Share bool `yaml:"share"`
	// Simulate pretends GPUs instead of looking for real ones: MODEL:N, several
	// with commas between, of a100, h100, h200 and b200, as h100:8. At most 64.
	Simulate string `yaml:"simulate"`
}

// StorageRoot is a host directory that jobs mount by name.
type StorageRoot struct {
	// Name is how a job's hostPath begins, as /project.
	Name string `yaml:"name"`
	// Path on the host, with {project} and {user} in it, as /srv/project/{project}.
	Path string `yaml:"path"`
	// Create makes missing directories, with the project's group: the site's up
	// to the last placeholder, and those that jobs name below where their user
	// may. Default false: a missing one is the job's error.
	Create bool `yaml:"create"`
	// Mode of directories made. Default "02770".
	Mode Mode `yaml:"mode"`
	// ReadOnly mounts it so, whatever the job says. Default false.
	ReadOnly bool `yaml:"readOnly"`
}

// Images configures the image store.
type Images struct {
	// Dir of the store. Default: images below the state directory.
	Dir string `yaml:"dir"`
	// MaxSize of what is kept; images in use are never removed. Default 100GiB; at least 100MiB.
	MaxSize Size `yaml:"maxSize"`
	// Hosts inside the site that pulls may reach: registries, their token
	// services and the stores that they redirect to, as HOST, HOST:PORT, or a
	// network as 10.2.0.0/16. Those in insecure and mirrors need not be named
	// again. Default: none; addresses of the internet always.
	Hosts []string `yaml:"hosts"`
	// Insecure lists registries (HOST or HOST:PORT) spoken to in plain http.
	Insecure []string `yaml:"insecure"`
	// Mirrors maps a registry to those that are tried before it.
	Mirrors map[string][]string `yaml:"mirrors"`
	// DockerConfig is a directory with docker's config.json: the node's own logins.
	DockerConfig string `yaml:"dockerConfig"`
	// CertsDir has CA certificates (*.crt) of registries, those of one registry in HOST:PORT/.
	CertsDir string `yaml:"certsDir"`
	// LocalRoots are directories whose images (oci:, oci-archive: and
	// docker-archive: references) jobs may run. Default: none.
	LocalRoots []string `yaml:"localRoots"`
	// PullTimeout is how long one pull may take, retries included. Default 30m; 1s to 24h.
	PullTimeout Duration `yaml:"pullTimeout"`
	// Peers is how image layers are shared with other nodes. Default: they are not.
	Peers ImagePeers `yaml:"peers"`
}

// Logs configures what is kept of ranks' output.
type Logs struct {
	// Quota is how much of one rank's output is kept: the newest. Default 256MiB; at least 64KiB.
	Quota Size `yaml:"quota"`
	// Keep is how long a log stays on the node after its rank has ended. Default 24h.
	Keep Duration `yaml:"keep"`
	// KeepSize is how much of ended ranks' logs is kept together, the newest. Default 10GiB.
	KeepSize Size `yaml:"keepSize"`
}

// Load reads and checks the file at path. The error has all that is wrong.
func Load(path string) (Config, error) {
	c, file, err := open(path)
	if err != nil {
		return Config{}, err
	}
	c.SetDefaults()
	file.Faults(c.Validate())
	if err := file.Err(); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Read parses the file at path: no defaults, no checks of values, so
// that flags can be laid over it first.
func Read(path string) (Config, error) {
	c, file, err := open(path)
	if err != nil {
		return Config{}, err
	}
	if err := file.Err(); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

func open(path string) (c Config, file *settings.Source, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return c, nil, fmt.Errorf("read configuration: %w", err)
	}
	file = settings.Read(b, &c)
	return c, file, nil
}

// Parse parses the text of a file as Read does.
func Parse(b []byte) (c Config, err error) {
	file := settings.Read(b, &c)
	return c, file.Err()
}

// SetDefaults fills in what was not given.
func (c *Config) SetDefaults() {
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name, _, _ = strings.Cut(host, ".")
	}
	setDefault(&c.StateDir, "/var/lib/gnoded")
	setDefault(&c.ClusterID, 1)
	setDefault(&c.ShmSize, 64<<20)
	setDefault(&c.Images.Dir, c.StateDir+"/images")
	setDefault(&c.Images.MaxSize, 100<<30)
	setDefault(&c.Images.PullTimeout, Duration(30*time.Minute))
	c.Images.Peers.setDefaults()
	setDefault(&c.Logs.Quota, 256<<20)
	setDefault(&c.Logs.Keep, Duration(24*time.Hour))
	setDefault(&c.Logs.KeepSize, 10<<30)
	setDefault(&c.Lease, Duration(4*time.Minute+30*time.Second))
	c.Network.setDefaults()
	setDefault(&c.Disk.Mode, DiskAuto)
	c.Data.setDefaults(c.StateDir)
	setDefault(&c.PidsMax, min(max(MaxProcesses()/8, 1024), 16384))
	setDefault(&c.MinFree, 1<<30)
	setDefault(&c.Launches, defaultLaunches())
	setDefault(&c.IDsFrom, 0x20000000)
	setDefault(&c.Reserve.Memory, defaultReservedMemory())
	c.Health.setDefaults(c.Reserve.Memory)
	setTimeouts(c.Prolog, 5*time.Minute)
	setTimeouts(c.Epilog, 5*time.Minute)
	setDefault(&c.Reboot.Timeout, Duration(5*time.Minute))
	for i := range c.Storage {
		setDefault(&c.Storage[i].Mode, 0o2770)
	}
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
