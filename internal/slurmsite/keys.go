package slurmsite

import (
	"maps"
	"slices"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

const unknownKey = "has no counterpart here; look whether you need what it did"

// usedKeys are those of slurm.conf that become keys, or decide what others mean.
var usedKeys = []string{"prioritytype", "prioritydecayhalflife", "prioritymaxage", "priorityweightage", "priorityweightfairshare", "priorityweightqos",
	"priorityweightjobsize", "priorityweightpartition", "defmempercpu", "maxmempernode", "priorityfavorsmall", "schedulertype", "preempttype", "preemptmode", "preemptexempttime", "killwait", "maxjobcount", "clustername", "licenses"}

// Reasons that many keys share.
const (
	ownDaemons  = "is about Slurm's own daemons"
	always      = "is so here always"
	byContainer = "containers and control groups do that here"
	boundCore   = "memory is bounded by node, not by core: see maxMiBPerNode of a partition"
)

// confKeys are other keys of slurm.conf with what becomes of what they say.
var confKeys = map[string]string{
	"slurmctldhost": "the controller is where gctld runs: see listen and advertise", "controlmachine": "the controller is where gctld runs: see listen and advertise",
	"backupcontroller": "there is one controller; jobs run on while it restarts", "slurmuser": ownDaemons, "slurmduser": ownDaemons, "statesavelocation": ownDaemons + ": see dir",
	"authtype": "users are known by the socket, tokens or MUNGE: see munge", "credtype": ownDaemons, "cryptotype": ownDaemons, "include": "",
	"proctracktype": byContainer, "taskplugin": byContainer, "taskpluginparam": byContainer, "switchtype": ownDaemons, "mpidefault": "srun in a batch script starts tasks; libraries in the image do the rest",
	"selecttype": "GPUs, cores and memory are given out one by one always", "selecttypeparameters": "GPUs, cores and memory are given out one by one always",
	"grestypes": "GPUs are found by themselves; other resources are not known", "returntoservice": "a node that was lost and comes back is used again",
	"accountingstoragetype": "all jobs are kept by the controller itself", "jobcomptype": "all jobs are kept by the controller itself",
	"accountingstorageenforce": always, "enforcepartlimits": always, "jobacctgathertype": byContainer, "jobacctgatherfrequency": byContainer,
	"maxarraysize": "arrays have at most as many tasks as limits.perUser.tasks",
	"firstjobid":   "numbers begin with 1",
	"prolog":       "is not run: name it in gnoded.yaml, under prolog, and look at what it uses", "epilog": "is not run: name it in gnoded.yaml, under epilog, and look at what it uses",
	"prologslurmctld": "is not run", "epilogslurmctld": "is not run", "taskprolog": "is not run", "taskepilog": "is not run", "srunprolog": "is not run", "srunepilog": "is not run",
	"healthcheckprogram": "is not run: name it in gnoded.yaml, under health.programs", "healthcheckinterval": "health.every in gnoded.yaml",
	"jobsubmitplugins": "is not run: the site's defaults are in gctld.yaml", "mailprog": "mail goes by SMTP: see mail",
	"rebootprogram": "nodes are rebooted by gadm drain --reboot", "prioritycalcperiod": "priorities are worked out in each round", "priorityusageresetperiod": "usage fades by halfLife; a project's budget may be for each month",
	"priorityflags": "shares are those of Fair Tree", "priorityweightassoc": "projects have shares and no priority",
	"priorityweighttres": "size counts by GPUs", "prioritysitefactorplugin": "is not run",
	"defmempernode": "a job that asks for no memory gets what its document's default is", "defmempergpu": "a job that asks for no memory gets what its document's default is",
	"maxmempercpu": boundCore, "defcpupergpu": "a job says its cores",
	"minjobage": "see keep", "inactivelimit": "idle jobs may be ended by gbatch.idleGpu of a job", "waittime": "a job on several nodes ends with its first failure",
	"overtimelimit": "jobs end at their limit", "jobrequeue": "a job says itself whether it may be restarted", "unkillablesteptimeout": byContainer,
	"topologyplugin": "the network's shape is not known", "x11parameters": "X11 is not forwarded", "debugflags": ownDaemons, "messagetimeout": ownDaemons,
	"fairsharedampeningfactor": "shares are those of Fair Tree", "disablerootjobs": "root may submit", "propagateresourcelimits": byContainer, "propagateresourcelimitsexcept": byContainer,
	"cliffilterplugins": "is not run", "launchparameters": ownDaemons, "federationparameters": "there is one cluster of daemons", "jobfileappend": "a job says how its files are opened",
	"vsizefactor": "memory is bounded as it is asked for", "tmpfs": "scratch of containers is bounded: see disk in gnoded.yaml", "downnodes": "drain nodes by gadm drain",
	"nodeset": "give nodes features",
}

// confPrefixes are families of keys.
var confPrefixes = []struct{ prefix, why string }{
	{"slurmctld", ownDaemons}, {"slurmd", ownDaemons}, {"slurmsched", ownDaemons}, {"accountingstorage", "all jobs are kept by the controller itself"}, {"accountingstore", "all jobs are kept by the controller itself"},
	{"jobcomp", "all jobs are kept by the controller itself"}, {"acctgather", byContainer}, {"suspend", "nodes are not switched off"}, {"resume", "nodes are not switched off"}, {"power", "nodes are not switched off"},
	{"schedulerparameters", "see policy"}, {"scheduler", "see policy"}, {"bcast", ownDaemons}, {"burstbuffer", "inputs and outputs of jobs are data"}, {"tree", ownDaemons}, {"comm", ownDaemons}, {"auth", ownDaemons},
	{"mcs", "others' jobs show neither name nor command always"}, {"private", "others' jobs show neither name nor command always"}, {"gpufreq", "clocks are left alone"}, {"cpufreq", "clocks are left alone"},
	{"health", "is not run"}, {"job", ownDaemons}, {"log", ownDaemons}, {"srun", ownDaemons}, {"keepalive", ownDaemons}, {"batch", ownDaemons}, {"tcp", ownDaemons}, {"ext", ownDaemons}, {"prep", "is not run"}, {"route", ownDaemons}, {"pre", "see policy.qos and limits.defaultMinDuration"},
}

// nodeKeys are those of a node that become nothing.
var nodeKeys = map[string]string{
	"weight": "the node for a job is chosen by policy.placement", "state": "drain nodes by gadm drain", "reason": "drain nodes by gadm drain", "port": ownDaemons, "bcastaddr": ownDaemons,
	"tmpdisk": "scratch of containers is bounded: see disk in gnoded.yaml", "cpuspeclist": "cores are kept free by their number: reserve.cores in gnoded.yaml", "cpubind": byContainer,
}

// partitionKeys are those of a partition that become nothing.
var partitionKeys = map[string]string{
	"hidden": "partitions are not hidden", "qos": "give what it bounds to the partition, to projects or to a class of service", "oversubscribe": "cores and GPUs belong to one job; GPUs can be shared by gpu.share in gnoded.yaml",
	"maxcpuspernode": "bounds all jobs of the partition on a node together; maxCpusPerNode is of each job", "maxcpuspersocket": "cores are not counted by socket",
	"defmempernode": "a job that asks for no memory gets what its document's default is", "defcpupergpu": "a job says its cores", "defmempergpu": "a job that asks for no memory gets what its document's default is", "maxmempercpu": boundCore,
	"gracetime": "see limits.grace and gbatch.haltGrace", "preemptmode": "jobs that may be restarted are halted and continued, others never", "tresbillingweights": "see policy.gpuWeights, cpuWeight and gibWeight, which are the same everywhere", "exclusiveuser": "nodes are shared by users; a job may ask for whole ones",
	"lln": "the node for a job is chosen by policy.placement", "disablerootjobs": "root may submit", "reqresv": "reservations are made by gadm reserve", "overtimelimit": "jobs end at their limit", "alternate": "jobs name all the partitions that will do: -p a,b", "allocnodes": "jobs come from wherever users may speak to the controller",
	"suspendtime": "nodes are not switched off", "resumetimeout": "nodes are not switched off", "suspendtimeout": "nodes are not switched off", "powerdownonidle": "nodes are not switched off", "selecttypeparameters": "GPUs, cores and memory are given out one by one always", "jobdefaults": "a job says what it needs",
}
